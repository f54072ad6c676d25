"""The index of a test, and the rows that the chapters share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextIndex, TextMatches, TextRow
from memservice.testing.indexes import Engine

OpenTextIndex = Callable[[], Engine[TextIndex]]

OWN, OTHER = 1, 12
"""Keys of two workspaces. The digits of one are a prefix of the other."""


def row(key: int, text: str, **about: Any) -> TextRow:
    return TextRow(key=key, terms=text.split(" ") if text else [], **about)


def keys(matches: TextMatches) -> set[int]:
    hit_keys = [hit.key for hit in matches.hits]
    assert len(hit_keys) == len(set(hit_keys)), "a row was found twice"
    return set(hit_keys)


class TextChapter:
    """A part of the contract: the index of a test, and calls of it."""

    @pytest.fixture
    def open_index(self) -> OpenTextIndex:
        raise NotImplementedError(
            "give your subclass of TextIndexContract a fixture `open_index`: a callable "
            "that opens the index"
        )

    @pytest.fixture
    def engine(self, open_index: OpenTextIndex) -> Engine[TextIndex]:
        return open_index()

    def add(
        self,
        engine: Engine[TextIndex],
        rows: Sequence[TextRow],
        workspace_key: int = OWN,
        kind: str = "message",
    ) -> None:
        engine.write(lambda tx: engine.index.add(tx, kind, workspace_key, rows))

    def remove(
        self,
        engine: Engine[TextIndex],
        removed: Sequence[int],
        workspace_key: int = OWN,
        kind: str = "message",
    ) -> None:
        engine.write(lambda tx: engine.index.remove(tx, kind, workspace_key, removed))

    def search(
        self,
        engine: Engine[TextIndex],
        terms: str | Sequence[str],
        index_filter: IndexFilter = EVERYTHING,
        k: int = 100,
        workspace_key: int = OWN,
        kind: str = "message",
        ids: Sequence[int] | None = None,
    ) -> TextMatches:
        query_terms = terms.split(" ") if isinstance(terms, str) else terms
        return engine.read(
            lambda tx: engine.index.search(
                tx, kind, workspace_key, query_terms, k, index_filter, ids
            )
        )
