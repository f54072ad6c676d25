"""Filters, and searches among some rows only."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.spi.index_filter import IndexFilter
from memservice.spi.text import TextIndex
from memservice.testing.indexes import NOON, SECOND, Engine, only
from memservice.testing.text.base import OTHER, TextChapter, keys, row


class FiltersChapter(TextChapter):
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
        self, engine: Engine[TextIndex], field: str, condition: str, one: Any, other: Any
    ) -> None:
        self.add(
            engine, [row(1, "fox", **{field: one}), row(2, "fox", **{field: other}), row(3, "fox")]
        )
        assert keys(self.search(engine, "fox", only(condition, one))) == {1}
        assert keys(self.search(engine, "fox", only(condition, other))) == {2}
        assert keys(self.search(engine, "fox", only(condition, one, other))) == {1, 2}
        assert keys(self.search(engine, "fox")) == {1, 2, 3}

    @pytest.mark.parametrize("condition", [each[1] for each in ABOUT])
    def test_any_of_nothing_matches_nothing(
        self, engine: Engine[TextIndex], condition: str
    ) -> None:
        self.add(
            engine,
            [
                row(
                    1, "fox", session=1, author=1, observer=1, observed=1, level="explicit", at=NOON
                ),
                row(2, "fox"),
            ],
        )
        assert keys(self.search(engine, "fox", only(condition))) == set()

    def test_any_of_a_thousand_values(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox", session=n) for n in (1, 500, 1_000, 1_001)])
        assert keys(self.search(engine, "fox", IndexFilter(sessions=tuple(range(1, 1_001))))) == {
            1,
            500,
            1_000,
        }

    def test_time_bounds_are_inclusive_and_exact(self, engine: Engine[TextIndex]) -> None:
        self.add(
            engine, [row(n, "fox", at=NOON + n * SECOND) for n in range(1, 5)] + [row(5, "fox")]
        )
        assert keys(self.search(engine, "fox", IndexFilter(since=NOON + 3 * SECOND))) == {3, 4}
        assert keys(self.search(engine, "fox", IndexFilter(until=NOON + 2 * SECOND))) == {1, 2}
        assert keys(
            self.search(
                engine, "fox", IndexFilter(since=NOON + 2 * SECOND, until=NOON + 3 * SECOND)
            )
        ) == {2, 3}
        assert (
            keys(
                self.search(
                    engine,
                    "fox",
                    IndexFilter(since=NOON + SECOND * 1.000001, until=NOON + SECOND * 1.999999),
                )
            )
            == set()
        )

    def test_conditions_are_anded(self, engine: Engine[TextIndex]) -> None:
        self.add(
            engine,
            [
                row(1, "fox", session=1, author=1),
                row(2, "fox", session=1, author=2),
                row(3, "fox", session=2, author=1),
            ],
        )
        assert keys(self.search(engine, "fox", IndexFilter(sessions=(1,), authors=(1,)))) == {1}
        assert keys(self.search(engine, "fox", IndexFilter(sessions=(2,), authors=(2,)))) == set()

    def test_ids_confine_the_search(self, engine: Engine[TextIndex]) -> None:
        self.add(
            engine, [row(n, "fox owl" if n == 5 else "fox", session=n % 2) for n in range(1, 9)]
        )
        self.add(engine, [row(9, "fox")], workspace_key=OTHER)
        self.add(engine, [row(10, "fox")], kind="conclusion")
        self.add(engine, [row(11, "owl")])
        text_matches = self.search(engine, "fox cat", ids=[9, 2, 5, 10, 11, 777, 2])
        assert keys(text_matches) == {2, 5}
        assert {hit.key: (dict(hit.terms), hit.length) for hit in text_matches.hits} == {
            2: ({"fox": 1}, 1),
            5: ({"fox": 1}, 2),
        }
        assert (text_matches.documents, text_matches.frequencies["fox"]) == (9, 8), (
            "statistics are the workspace's"
        )
        assert keys(self.search(engine, "fox", IndexFilter(sessions=(1,)), ids=[2, 5])) == {5}
        assert keys(self.search(engine, "fox owl", ids=[1, 2, 5], k=1)) == {5}
        assert keys(self.search(engine, "fox", ids=[])) == set()
        many = range(1, 5_001)
        assert keys(self.search(engine, "fox", ids=many)) == set(range(1, 9))
