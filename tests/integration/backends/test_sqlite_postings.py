"""Postings of several terms, combined into the rows with the greatest total weight."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from memservice_sqlite.postings import Postings

TERMS = st.lists(
    st.tuples(st.sets(st.integers(1, 30)).map(sorted), st.sampled_from([0.0, 0.1, 0.3, 2.5])),
    max_size=6,
)


@given(TERMS, st.integers(1, 40))
def test_the_rows_with_the_greatest_weight_come_first_and_newer_ones_of_the_same(
    terms: list[tuple[list[int], float]], limit: int
) -> None:
    postings, weights = Postings(), defaultdict[int, float](float)
    for ids, weight in terms:
        postings.add(",".join(map(str, ids)), weight)
        for id in ids:
            weights[id] += weight
    assert postings.rows == len(weights)
    assert postings.best(limit) == sorted(weights, key=lambda row: (-weights[row], -row))[:limit]


def test_what_is_added_later_counts() -> None:
    postings = Postings()
    postings.add("1,5", 1.0)
    assert postings.best(1) == [5]
    postings.add("1", 1.0)
    assert (postings.rows, postings.best(1)) == (2, [1])


def test_a_term_without_rows_adds_nothing() -> None:
    postings = Postings()
    postings.add(None, 1.0)
    assert (postings.rows, postings.best(3)) == (0, [])
