"""Chapter: filters with random conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memservice.domain.filters.ast import (
    All,
    Any_,
    Compare,
    Condition,
    Contains,
    Equal,
    Holds,
    IsNull,
    KeyCompare,
    KeyEqual,
    KeyOneOf,
    KeySubstring,
    Not,
    OneOf,
    Substring,
)
from memservice.spi.storage import Storage
from memservice.testing.storage import tricky
from memservice.testing.storage.base import Chapter, Dataset
from memservice.testing.storage.filters import disagreements

_words = st.sampled_from(tricky.TEXTS) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=8
)
_numbers = st.sampled_from(tricky.NUMBERS)
_json = st.recursive(
    st.none() | st.booleans() | _numbers | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=5,
)
_times = st.sampled_from(tricky.TIMES)
_op = st.sampled_from(tricky.ORDERINGS)
_texts = st.sampled_from(("content", "session", "level", "fingerprint"))
_integers = st.sampled_from(("times_derived", "session_key", "key"))
_moments = st.sampled_from(("said_at", "deleted_at"))
_keys = st.sampled_from(("key", "other", *tricky.KEYS))


def _some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=4).map(tuple)


def _columns(
    fields: st.SearchStrategy[str], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Condition]:
    return (
        st.builds(Equal, fields, values)
        | st.builds(Compare, fields, _op, values)
        | st.builds(OneOf, fields, _some(values))
    )


_leaf: st.SearchStrategy[Condition] = st.one_of(
    _columns(_texts, _words),
    _columns(_integers, st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 6)),
    _columns(_moments, _times),
    st.builds(IsNull, _texts | _integers | _moments),
    st.builds(Substring, _texts, _words),
    st.builds(Holds, st.just("source_ids"), _words),
    st.builds(Contains, st.just("internal"), st.dictionaries(_keys, _json, max_size=2)),
    st.builds(KeyEqual, st.just("internal"), _keys, _words),
    st.builds(
        KeyCompare,
        st.just("internal"),
        _keys,
        st.sampled_from((*tricky.ORDERINGS, "eq", "ne")),
        _numbers | _words,
    ),
    st.builds(KeyOneOf, st.just("internal"), _keys, _some(_words)),
    st.builds(KeySubstring, st.just("internal"), _keys, _words),
)


def _branches(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    make: Callable[[type[All] | type[Any_]], st.SearchStrategy[Condition]] = lambda kind: st.builds(  # noqa: E731
        kind, _some(inner)
    )
    return make(All) | make(Any_) | st.builds(Not, inner)


CONDITIONS: st.SearchStrategy[Condition] = st.recursive(_leaf, _branches, max_leaves=8)


class PropertiesChapter(Chapter):
    def test_any_condition(self, storage: Storage, dataset: Dataset) -> None:
        """For any condition, the storage returns the rows that the reference evaluator matches.
        The profile of hypothesis sets the number of conditions."""
        rows = storage.write(lambda tx: tx.conclusions.put(tricky.rows(dataset)))

        @settings(
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(condition=CONDITIONS)
        def agrees(condition: Condition) -> None:
            with storage.read() as tx:
                wrong = disagreements(tx, rows, [condition])
            assert not wrong, wrong[0]

        agrees()
