"""Kinds and workspaces, apart from others."""

from __future__ import annotations

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextIndex
from memservice.testing.indexes import Engine
from memservice.testing.text.base import OTHER, TextChapter, keys, row


class IsolationChapter(TextChapter):
    def test_kinds_are_separate(self, engine: Engine[TextIndex]) -> None:
        for kind, text in (("message", "fox"), ("conclusion", "fox owl"), ("document", "owl")):
            self.add(engine, [row(1, text)], kind=kind)
        for kind, length in (("message", 1), ("conclusion", 2)):
            text_matches = self.search(engine, "fox", kind=kind)
            assert [(hit.key, hit.length) for hit in text_matches.hits] == [(1, length)]
            assert text_matches.documents == 1
        assert keys(self.search(engine, "fox", kind="document")) == set()

    def test_other_workspaces_change_nothing(self, engine: Engine[TextIndex]) -> None:
        own_rows = [
            row(n, text, session=n)
            for n, text in enumerate(
                ("red fox", "fox fox", "blue owl owl", "grey owl fox"), start=1
            )
        ]
        self.add(engine, own_rows)
        queries: list[tuple[str, IndexFilter, int]] = [
            ("fox owl", EVERYTHING, 100),
            ("fox grey", EVERYTHING, 1),
            ("owl", IndexFilter(sessions=(3,)), 9),
        ]
        before = [self.search(engine, *each) for each in queries]
        self.add(
            engine,
            [row(n, "owl grey 2_fox 1_fox m1_fox", session=3) for n in range(100, 160)],
            workspace_key=OTHER,
        )
        assert [self.search(engine, *each) for each in queries] == before
        assert keys(self.search(engine, "fox", workspace_key=OTHER)) == set()
        assert keys(self.search(engine, "red", workspace_key=999)) == set()
