"""Postings of several terms, combined into the rows with the greatest total weight."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memservice.spi.text import TextHit

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Postings(NamedTuple):
    """The rows that contain one term, each once: item `n` of each list belongs to the same row."""

    names: Sequence[str]
    """The terms of the query that are stored as this one."""
    weight: int
    ids: NDArray[np.int64]
    lengths: NDArray[np.int64]
    """The number of terms of each row."""
    counts: NDArray[np.int64]
    """How often each row contains the term."""


def heaviest(postings: Sequence[Postings], limit: int) -> list[TextHit]:
    """The `limit` rows with the greatest total weight (ties: the greatest id), best first, with the
    count of each term."""
    if not postings:
        return []
    ids, first_posting, row_of_posting = _combined(postings)
    rows = _heaviest(postings, row_of_posting, limit)
    # The position of each row in the result; -1: not in it.
    positions = np.full(len(ids), -1)
    positions[rows] = np.arange(len(rows))
    position_of_posting = positions[row_of_posting]
    terms: list[dict[str, int]] = [{} for _ in range(len(rows))]
    start = 0
    for each in postings:
        end = start + len(each.ids)
        position_of_row = position_of_posting[start:end]
        is_chosen = position_of_row >= 0
        chosen_positions = position_of_row[is_chosen].tolist()
        chosen_counts = each.counts[is_chosen].tolist()
        for name in each.names:
            for position, count in zip(chosen_positions, chosen_counts, strict=True):
                terms[position][name] = count
        start = end
    lengths = np.concatenate([each.lengths for each in postings])[first_posting]
    return list(
        map(  # pyrefly: ignore[bad-specialization]
            tuple.__new__,
            repeat(TextHit),
            zip((ids[rows] // 4).tolist(), terms, lengths[rows].tolist(), strict=True),
        )
    )


def _combined(
    postings: Sequence[Postings],
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """The distinct ids, ascending; of each the number of its first posting; of each posting the
    number of its id."""
    ids = np.concatenate([each.ids for each in postings])
    distinct, first_posting, row_of_posting = np.unique(ids, return_index=True, return_inverse=True)
    return distinct, first_posting, row_of_posting


def _heaviest(
    postings: Sequence[Postings], row_of_posting: NDArray[np.intp], limit: int
) -> NDArray[np.intp]:
    """The numbers of the rows with the greatest weight, best first."""
    posting_weights = np.repeat(
        [each.weight for each in postings], [len(each.ids) for each in postings]
    )
    # The weights are integers, so these sums are exact. Rows are numbered by their ids, so a
    # stable order has ties by id.
    weights = np.bincount(row_of_posting, posting_weights)
    return np.argsort(weights, kind="stable")[::-1][:limit]
