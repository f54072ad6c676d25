"""Filters, and searches among some rows only."""

from __future__ import annotations

import math
from typing import Any

import pytest

from memservice.spi.index_filter import IndexFilter
from memservice.spi.vectors import VectorIndex, VectorRow
from memservice.testing.indexes import HOSTILE, NOON, SECOND, Engine, only
from memservice.testing.vectors.base import (
    NAMES,
    VectorChapter,
    at_angle,
    keys,
    row,
)


class FiltersChapter(VectorChapter):
    ABOUT: tuple[tuple[str, str, Any, Any], ...] = (
        ("session", "sessions", 1, 2),
        ("author", "authors", 1, 2),
        ("observer", "observers", 1, 2),
        ("observed", "observed", 1, 2),
        ("level", "levels", "explicit", 'it\'s "deductive" -- ü'),
    )

    @pytest.mark.parametrize(
        ("field", "condition", "one", "other"), ABOUT, ids=[each[0] for each in ABOUT]
    )
    def test_any_of(
        self, engine: Engine[VectorIndex], field: str, condition: str, one: Any, other: Any
    ) -> None:
        self.upsert(engine, [row(1, 10, **{field: one}), row(2, 20, **{field: other}), row(3, 30)])
        for ids in (None, [1, 2, 3]):
            assert keys(self.query(engine, index_filter=only(condition, one), ids=ids)) == [1]
            assert keys(self.query(engine, index_filter=only(condition, other), ids=ids)) == [2]
            assert keys(self.query(engine, index_filter=only(condition, one, other), ids=ids)) == [
                1,
                2,
            ]
            assert keys(self.query(engine, ids=ids)) == [1, 2, 3]

    @pytest.mark.parametrize("condition", [each[1] for each in ABOUT])
    def test_any_of_nothing_matches_nothing(
        self, engine: Engine[VectorIndex], condition: str
    ) -> None:
        self.upsert(
            engine,
            [
                row(1, session=1, author=1, observer=1, observed=1, level="explicit", at=NOON),
                row(2),
            ],
        )
        assert self.query(engine, index_filter=only(condition)) == []
        assert self.query(engine, index_filter=only(condition), ids=[1, 2]) == []

    def test_pairs_of_observer_and_observed(self, engine: Engine[VectorIndex]) -> None:
        pairs = [(1, 1), (1, 2), (2, 1), (2, 2)]
        self.upsert(
            engine, [row(n, n, observer=a, observed=b) for n, (a, b) in enumerate(pairs, start=1)]
        )
        for n, (a, b) in enumerate(pairs, start=1):
            assert keys(
                self.query(engine, index_filter=IndexFilter(observers=(a,), observed=(b,)))
            ) == [n]
        assert keys(
            self.query(engine, index_filter=IndexFilter(observers=(1, 2), observed=(2,)))
        ) == [2, 4]
        assert keys(self.query(engine, index_filter=IndexFilter(observers=(2,)))) == [3, 4]
        assert (
            keys(self.query(engine, index_filter=IndexFilter(observers=(3,), observed=(1,)))) == []
        )
        assert keys(self.query(engine)) == [1, 2, 3, 4]

    def test_any_of_a_thousand_values(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(
            engine,
            [row(n, n / 100, session=n, observer=n, observed=1) for n in (1, 500, 1_000, 1_001)],
        )
        thousand = tuple(range(1, 1_001))
        assert keys(self.query(engine, index_filter=IndexFilter(sessions=thousand))) == [
            1,
            500,
            1_000,
        ]
        assert keys(self.query(engine, index_filter=IndexFilter(observers=thousand))) == [
            1,
            500,
            1_000,
        ]
        assert keys(
            self.query(engine, index_filter=IndexFilter(observers=thousand, observed=thousand))
        ) == [1, 500, 1_000]

    def test_values_are_not_syntax(self, engine: Engine[VectorIndex]) -> None:
        rows = [row(n, level=level) for n, level in enumerate(HOSTILE, start=1)]
        self.upsert(engine, [*rows, row(1_000, level="explicit"), row(1_001)])
        for n, level in enumerate(HOSTILE, start=1):
            hits = keys(self.query(engine, index_filter=IndexFilter(levels=(level,))))
            assert hits == [n], level

    def test_long_names_of_any_script_are_distinguished(self, engine: Engine[VectorIndex]) -> None:
        """Names that differ in their last character, their case or the spelling of an accent are
        different."""
        rows = [
            VectorRow(key=n, uid=name * 2, vector=at_angle(n), level=name)
            for n, name in enumerate(NAMES, start=1)
        ]
        self.upsert(engine, rows)
        assert self.count(engine) == len(NAMES)
        for n, name in enumerate(NAMES, start=1):
            for ids in (None, range(1, len(NAMES) + 1)):
                assert keys(
                    self.query(engine, index_filter=IndexFilter(levels=(name,)), ids=ids)
                ) == [n], name

    def test_time_bounds_are_inclusive_and_exact(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(n, n, at=NOON + n * SECOND) for n in range(1, 5)] + [row(5, 5)])
        for ids in (None, [1, 2, 3, 4, 5]):
            assert keys(
                self.query(engine, index_filter=IndexFilter(since=NOON + 3 * SECOND), ids=ids)
            ) == [3, 4]
            assert keys(
                self.query(engine, index_filter=IndexFilter(until=NOON + 2 * SECOND), ids=ids)
            ) == [1, 2]
            assert keys(
                self.query(
                    engine,
                    index_filter=IndexFilter(since=NOON + 2 * SECOND, until=NOON + 3 * SECOND),
                    ids=ids,
                )
            ) == [2, 3]
            between = IndexFilter(since=NOON + SECOND * 1.000001, until=NOON + SECOND * 1.999999)
            assert keys(self.query(engine, index_filter=between, ids=ids)) == []

    def test_conditions_are_anded(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(
            engine,
            [row(1, session=1, author=1), row(2, session=1, author=2), row(3, session=2, author=1)],
        )
        assert keys(self.query(engine, index_filter=IndexFilter(sessions=(1,), authors=(1,)))) == [
            1
        ]
        assert keys(self.query(engine, index_filter=IndexFilter(sessions=(2,), authors=(2,)))) == []

    def test_ids_confine_the_search(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(n, 5 * n, session=n % 2) for n in range(1, 11)])
        hits = self.query(engine, ids=[9, 2, 5, 777, 2])
        assert keys(hits) == [2, 5, 9]
        assert [hit.score for hit in hits] == pytest.approx(
            [math.cos(math.radians(5 * n)) for n in (2, 5, 9)], abs=self.tolerance
        )
        assert keys(self.query(engine, ids=[9, 2, 5], k=2)) == [2, 5]
        assert keys(self.query(engine, ids=[9, 2, 5], index_filter=IndexFilter(sessions=(1,)))) == [
            5,
            9,
        ]
        assert self.query(engine, ids=[]) == []
