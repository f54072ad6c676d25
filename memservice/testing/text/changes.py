"""Changes of rows, and whether they last."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextIndex
from memservice.testing.indexes import Engine, RolledBack
from memservice.testing.text.base import OTHER, OWN, OpenTextIndex, TextChapter, keys, row


class ChangesChapter(TextChapter):
    def test_adding_again_replaces(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "old words here", session=1), row(2, "old")])
        self.add(engine, [row(1, "new", session=2)])
        assert keys(self.search(engine, "old words here")) == {2}
        text_matches = self.search(engine, "new old")
        assert keys(text_matches) == {1, 2}
        assert (
            text_matches.documents,
            text_matches.mean_length,
            dict(text_matches.frequencies),
        ) == (2, 1.0, {"new": 1, "old": 1})
        assert keys(self.search(engine, "new", IndexFilter(sessions=(1,)))) == set()

    def test_the_last_of_two_versions_of_a_row_counts(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "first"), row(1, "second")])
        text_matches = self.search(engine, "first second")
        assert [(hit.key, dict(hit.terms)) for hit in text_matches.hits] == [(1, {"second": 1})]
        assert text_matches.documents == 1

    def test_adding_nothing_is_nothing(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [])
        assert self.search(engine, "fox").documents == 0

    def test_remove_one_many_and_unknown(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox fox") for n in range(1, 8)])
        self.remove(engine, [3])
        assert keys(self.search(engine, "fox")) == {1, 2, 4, 5, 6, 7}
        self.remove(engine, [1, 5, 99, 7])
        text_matches = self.search(engine, "fox")
        assert keys(text_matches) == {2, 4, 6}
        assert (
            text_matches.documents,
            text_matches.mean_length,
            dict(text_matches.frequencies),
        ) == (3, 2.0, {"fox": 3})
        self.remove(engine, [99, 3])
        self.remove(engine, [])
        assert keys(self.search(engine, "fox")) == {2, 4, 6}

    def test_remove_is_of_its_kind_and_workspace(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(1, "fox")])
        self.add(engine, [row(2, "fox")], workspace_key=OTHER)
        self.add(engine, [row(1, "fox")], kind="conclusion")
        self.remove(engine, [2])
        self.remove(engine, [1], kind="conclusion")
        assert keys(self.search(engine, "fox")) == {1}
        assert keys(self.search(engine, "fox", workspace_key=OTHER)) == {2}
        assert keys(self.search(engine, "fox", kind="conclusion")) == set()

    def test_drop_removes_a_workspace_in_batches(self, engine: Engine[TextIndex]) -> None:
        self.add(engine, [row(n, "fox") for n in range(1, 6)])
        self.add(engine, [row(n, "fox") for n in range(1, 4)], kind="conclusion")
        self.add(engine, [row(99, "fox")], workspace_key=OTHER)
        dropped: list[int] = []
        while not dropped or dropped[-1]:
            dropped.append(engine.write(lambda tx: engine.index.drop(tx, OWN, 3)))
            assert len(dropped) < 9
        assert (sum(dropped), max(dropped)) == (8, 3)
        for kind in ("message", "conclusion"):
            text_matches = self.search(engine, "fox", kind=kind)
            assert (keys(text_matches), text_matches.documents) == (set(), 0)
        assert keys(self.search(engine, "fox", workspace_key=OTHER)) == {99}

    def test_added_rows_are_there_after_reopening(
        self, engine: Engine[TextIndex], open_index: OpenTextIndex
    ) -> None:
        self.add(engine, [row(1, "red fox"), row(2, "fox")])
        self.remove(engine, [2])
        text_matches = self.search(open_index(), "fox")
        assert (keys(text_matches), text_matches.documents) == ({1}, 1)

    def test_a_write_that_fails_leaves_nothing(self, engine: Engine[TextIndex]) -> None:
        if engine.storage is None:
            pytest.skip("this index has no transactions")
        self.add(engine, [row(1, "fox"), row(2, "fox owl")])
        before = self.search(engine, "fox owl cat")

        def fail(tx: Any) -> None:
            engine.index.add(tx, "message", OWN, [row(3, "cat"), row(1, "cat")])
            engine.index.remove(tx, "message", OWN, [2])
            inside = engine.index.search(tx, "message", OWN, ["cat", "fox"], 100, EVERYTHING)
            assert (keys(inside), inside.documents) == ({1, 3}, 2), (
                "a transaction sees its own writes"
            )
            raise RolledBack

        with pytest.raises(RolledBack):
            engine.write(fail)
        assert self.search(engine, "fox owl cat") == before
