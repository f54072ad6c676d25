"""Postings of several terms are combined into the heaviest rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memservice.spi.text import TextHit
from memservice_postgres.postings import Postings, heaviest

ROWS = {n * 4 + 1: 10 + n for n in range(12)}
"""Id → number of terms."""
COUNTS = st.dictionaries(st.sampled_from(sorted(ROWS)), st.integers(1, 9), min_size=1)


def posting_list(names: list[str], weight: int, counts: dict[int, int]) -> Postings:
    lengths = [ROWS[id] for id in counts]
    return Postings(
        names,
        weight,
        *(np.array(each, np.int64) for each in ([*counts], lengths, [*counts.values()])),
    )


def plainly(by_term: dict[str, dict[int, int]], weights: dict[str, int]) -> list[tuple[int, int]]:
    """(weight, id) of each row, best first."""
    ids = {id for counts in by_term.values() for id in counts}
    return sorted(
        ((sum(weights[term] for term in by_term if id in by_term[term]), id) for id in ids),
        reverse=True,
    )


@given(
    st.dictionaries(st.sampled_from(["ash", "oak", "elm"]), COUNTS),
    st.lists(st.integers(1, 2), min_size=3, max_size=3),
    st.integers(1, 15),
)
def test_the_heaviest_rows_come_first_and_of_equal_ones_the_newest(
    by_term: dict[str, dict[int, int]], some_weights: list[int], limit: int
) -> None:
    weights = dict(zip(("ash", "oak", "elm"), some_weights, strict=True))
    postings = [posting_list([term], weights[term], counts) for term, counts in by_term.items()]
    ids = [id for _, id in plainly(by_term, weights)][:limit]
    assert heaviest(postings, limit) == [
        TextHit(
            id // 4,
            {term: counts[id] for term, counts in by_term.items() if id in counts},
            ROWS[id],
        )
        for id in ids
    ]


def test_terms_that_are_stored_as_one_have_the_same_counts() -> None:
    (hit,) = heaviest([posting_list(["cut-1", "cut-2"], 3, {5: 2})], 10)
    assert hit == TextHit(1, {"cut-1": 2, "cut-2": 2}, ROWS[5])
