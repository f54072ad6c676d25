"""Texts in memory: which terms each of them has, as arrays, and the best ones for several terms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct

from memservice.domain.ranking import HitTable
from memservice.spi.index_filter import IndexFilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Short = NDArray[np.int32]
    Small = NDArray[np.integer[Any]]
    """Of the smallest type that has all of its numbers."""
    Mask = NDArray[np.bool_]

COLUMNS = "r.id, r.session_key, r.author_key, r.observer_key, r.observed_key, r.level"
"""The columns of a text that `block_of` needs, besides its terms."""
ID, SESSION, AUTHOR, OBSERVER, OBSERVED = range(5)
NULL = -1
"""Stands for a key that a text does not have."""
BYTES_PER_TERM = 150
"""Of a distinct term in the vocabulary, roughly."""


class SearchTerm(NamedTuple):
    """A term of a search."""

    stored: str
    """As the storage writes it."""
    weight: float
    names: Sequence[str]
    """The terms of the query that are stored as this one."""


class TextBlock(Struct, frozen=True):
    """Indexed texts of one kind in a workspace. Never changes."""

    facts: Integers
    """5 × n: id, session, author, observer and observed peer."""
    levels: Sequence[str | None]
    level_numbers: NDArray[np.int8]
    """Of each text the position of its level in `levels`."""
    lengths: Short
    """The number of terms of each text."""
    vocabulary: dict[str, int]
    """Term → its number. The texts that contain it are those from `starts[number]` to
    `starts[number + 1]` in `rows`, and `counts` says how often."""
    starts: Integers
    rows: Small
    counts: Small

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        arrays = (self.facts, self.level_numbers, self.lengths, self.starts, self.rows, self.counts)
        return sum(each.nbytes for each in arrays) + BYTES_PER_TERM * len(self.vocabulary)

    def frequency(self, term: str) -> int:
        """The number of texts that contain a term."""
        number = self.vocabulary.get(term)
        return 0 if number is None else int(self.starts[number + 1] - self.starts[number])

    def postings(self, term: str) -> tuple[Small, Small]:
        """The texts that contain a term, by position, and how often each does."""
        number = self.vocabulary.get(term)
        here = slice(0) if number is None else slice(self.starts[number], self.starts[number + 1])
        return self.rows[here], self.counts[here]

    def fitting(self, index_filter: IndexFilter) -> Mask | None:
        """Which texts fit a filter without times; None: all."""
        mask: Mask | None = None
        if index_filter.levels is not None:
            numbers = [
                number for number, level in enumerate(self.levels) if level in index_filter.levels
            ]
            if not numbers:
                return np.zeros(len(self), np.bool_)
            if len(numbers) < len(self.levels):
                mask = _one_of(self.level_numbers, numbers)
        for column, keys in (
            (SESSION, index_filter.sessions),
            (AUTHOR, index_filter.authors),
            (OBSERVER, index_filter.observers),
            (OBSERVED, index_filter.observed),
        ):
            if keys is not None:
                mask = _both(mask, _one_of(self.facts[column], keys))
        return mask


def _one_of(values: NDArray[Any], numbers: Sequence[int]) -> Mask:
    return (
        values == numbers[0] if len(numbers) == 1 else np.isin(values, np.array(numbers, np.int64))
    )


def _both(one: Mask | None, other: Mask) -> Mask:
    return other if one is None else one & other


def numbered(values: Iterable[str]) -> tuple[Short, list[str]]:
    """Of each value the position of its first occurrence among the distinct ones, and these."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    return np.fromiter(map(numbers.__getitem__, values), np.int32), list(numbers)


def block_of(
    texts: Sequence[Sequence[Any]],
    lengths: Sequence[int],
    sizes: Sequence[int],
    numbers: Short,
    counts: Short,
    vocabulary: Sequence[str],
) -> TextBlock:
    """A block of texts (`COLUMNS`). `sizes`: how many distinct terms each has; `numbers` and
    `counts` of all these terms, text by text: the position in `vocabulary`, and how often."""
    levels = dict[str | None, int]()
    facts = (NULL if value is None else value for text in texts for value in text[:5])
    level_numbers = [levels.setdefault(text[5], len(levels)) for text in texts]
    return _block(
        np.ascontiguousarray(np.fromiter(facts, np.int64, 5 * len(texts)).reshape(-1, 5).T),
        list(levels),
        np.array(level_numbers, np.int8),
        np.array(lengths, np.int32),
        np.repeat(np.arange(len(texts), dtype=np.int32), sizes),
        numbers,
        counts,
        {term: number for number, term in enumerate(vocabulary)},
    )


def _block(
    facts: Integers,
    levels: Sequence[str | None],
    level_numbers: NDArray[np.int8],
    lengths: Short,
    rows: Small,
    numbers: Short,
    counts: Small,
    vocabulary: dict[str, int],
) -> TextBlock:
    """`rows`, `numbers` and `counts`: text, term and count of each posting, in any order."""
    order = np.argsort(numbers, kind="stable")
    starts = np.zeros(len(vocabulary) + 1, np.int64)
    np.cumsum(np.bincount(numbers, minlength=len(vocabulary)), out=starts[1:])
    return TextBlock(
        facts,
        levels,
        level_numbers,
        lengths,
        vocabulary,
        starts,
        _small(rows)[order],
        _small(counts)[order],
    )


def _small(numbers: Small) -> Small:
    """The same numbers, none negative, in as few bytes as the greatest needs."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))), copy=False)


def merged(first: TextBlock, second: TextBlock) -> TextBlock:
    """The texts of two blocks."""
    vocabulary = dict(first.vocabulary)
    renumbered = np.array(
        [vocabulary.setdefault(term, len(vocabulary)) for term in second.vocabulary], np.int32
    )
    levels = list(dict.fromkeys([*first.levels, *second.levels]))
    relevelled = np.array([levels.index(level) for level in second.levels], np.int8)
    return _block(
        np.concatenate([first.facts, second.facts], axis=1),
        levels,
        np.concatenate([first.level_numbers, relevelled[second.level_numbers]]),
        np.concatenate([first.lengths, second.lengths]),
        np.concatenate([first.rows, _moved(second.rows, len(first))]),
        np.concatenate([_numbers(first), renumbered[_numbers(second)]]),
        np.concatenate([first.counts, second.counts]),
        vocabulary,
    )


def only(block: TextBlock, chosen: Mask) -> TextBlock:
    """The texts of a block at these positions."""
    position = (np.cumsum(chosen) - 1).astype(np.int32)
    remaining = chosen[block.rows]
    return _block(
        block.facts[:, chosen],
        block.levels,
        block.level_numbers[chosen],
        block.lengths[chosen],
        position[block.rows[remaining]],
        _numbers(block)[remaining],
        block.counts[remaining],
        block.vocabulary,
    )


def _numbers(block: TextBlock) -> Short:
    """The term of each posting of a block."""
    return np.repeat(np.arange(len(block.vocabulary), dtype=np.int32), np.diff(block.starts))


def best(
    blocks: Sequence[TextBlock], terms: Sequence[SearchTerm], index_filter: IndexFilter, k: int
) -> HitTable:
    """The `k` texts whose terms have the greatest total weight (ties: the greatest id), best first,
    with the count of each term."""
    masks = [block.fitting(index_filter) for block in blocks]
    if all(mask is not None and not mask.any() for mask in masks):
        nothing = np.empty(0, np.int64)
        return _hits(nothing, nothing.astype(np.int32), np.empty((0, len(terms)), np.int32), terms)
    ids = np.concatenate([block.facts[ID] for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    rows, numbers, counts_of_rows = _postings(blocks, masks, terms)
    term_weights = np.array([term.weight for term in terms])
    # Summed in the order of the terms, so that equal sums are equal numbers.
    weights = np.bincount(rows, term_weights[numbers], len(ids))
    chosen = np.flatnonzero(np.bincount(rows, minlength=len(ids)))
    if len(chosen) > k:
        at_least = np.partition(weights[chosen], len(chosen) - k)[len(chosen) - k]
        chosen = chosen[weights[chosen] >= at_least]
    chosen = chosen[np.lexsort((ids[chosen], weights[chosen]))[::-1][:k]]
    # The position of each text in the result; -1: not in it.
    positions = np.full(len(ids), -1, np.int32)
    positions[chosen] = np.arange(len(chosen), dtype=np.int32)
    position_of_row = positions[rows]
    is_chosen = np.flatnonzero(position_of_row >= 0)
    counts = np.zeros((len(chosen), len(terms)), np.int32)
    counts[position_of_row[is_chosen], numbers[is_chosen]] = counts_of_rows[is_chosen]
    return _hits(ids[chosen], lengths[chosen], counts, terms)


def best_of_rows(
    ids: Integers, lengths: Short, counts: Short, terms: Sequence[SearchTerm], k: int
) -> HitTable:
    """The same of texts that were read from the database. `counts`: texts × terms, how often each
    text contains each term."""
    weights = np.zeros(len(ids))
    for number, term in enumerate(terms):  # in the order of the terms, see `best`
        weights += np.where(counts[:, number] > 0, term.weight, 0.0)
    order = np.lexsort((ids, weights))[::-1]
    chosen = order[counts[order].any(axis=1)][:k]
    return _hits(ids[chosen], lengths[chosen], counts[chosen], terms)


def _hits(ids: Integers, lengths: Short, counts: Short, terms: Sequence[SearchTerm]) -> HitTable:
    columns = [number for number, term in enumerate(terms) for _ in term.names]
    names = [name for term in terms for name in term.names]
    if len(names) > len(terms):
        counts = counts[:, columns]
    return HitTable(ids // 4, lengths, names, counts)


def _postings(
    blocks: Sequence[TextBlock], masks: Sequence[Mask | None], terms: Sequence[SearchTerm]
) -> tuple[Small, Small, Small]:
    """The texts of all blocks that contain a term and fit, numbered through; the position of the
    term in `terms`; and the count. Those of a block in the order of the terms."""
    parts: list[tuple[Small, Small, Small]] = []
    start = 0
    for block, mask in zip(blocks, masks, strict=True):
        postings = [block.postings(term.stored) for term in terms]
        rows = np.concatenate([rows_of_term for rows_of_term, _ in postings])
        counts = np.concatenate([counts_of_term for _, counts_of_term in postings])
        sizes = [len(rows_of_term) for rows_of_term, _ in postings]
        numbers = np.repeat(np.arange(len(terms), dtype=np.int32), sizes)
        if mask is not None:
            fits = np.flatnonzero(mask[rows])
            rows, numbers, counts = rows[fits], numbers[fits], counts[fits]
        parts.append((_moved(rows, start), numbers, counts))
        start += len(block)
    if len(parts) == 1:
        return parts[0]
    all_rows, all_numbers, all_counts = zip(*parts, strict=True)
    return np.concatenate(all_rows), np.concatenate(all_numbers), np.concatenate(all_counts)


def _moved(rows: Small, by: int) -> Small:
    return rows.astype(np.int32) + np.int32(by) if by else rows
