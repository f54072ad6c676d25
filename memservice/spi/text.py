"""The full-text seam: an engine stores analysed terms and returns the matching rows with their
terms. The core computes the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from memservice.domain.ranking import TextHit, TextMatches
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.transaction import Transaction

__all__ = ["TextHit", "TextIndex", "TextMatches", "TextRow"]


class TextRow(Struct, frozen=True):
    """One row to index: `terms` are the output of `memservice.domain.text.analysis.analyse`, in
    order, with repetitions.

    `related` are further terms by which the row can be found: stems and beginnings of its words
    (`memservice.domain.text.relatives`). They are searched and counted like terms, but are no part
    of the length of the row. An index that ignores them finds no relatives of words.
    """

    key: int
    terms: Sequence[str]
    session: int | None = None
    author: int | None = None
    observer: int | None = None
    observed: int | None = None
    level: str | None = None
    at: Any = None
    """The row's `created_at`."""
    related: Sequence[str] = ()


class TextIndex(Protocol):
    """Full text of messages and conclusions (`kind` as `Space.kind`).

    `tx` is the open transaction of the storage if the index is part of that storage (capability
    `TRANSACTIONAL`), else None. Kinds and workspaces are separate: rows of others change neither
    results nor statistics. A term is any text, compared whole and by code point; it is never
    syntax. Several threads may call it at once.
    """

    capabilities: frozenset[Capability]

    def add(
        self, tx: Transaction | None, kind: str, workspace_key: int, rows: Sequence[TextRow]
    ) -> None:
        """Index rows. A row that is already indexed is replaced; of two versions of a row the last
        counts."""
        ...

    def remove(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> None:
        """Remove rows. Unknown keys are ignored."""
        ...

    def search(
        self,
        tx: Transaction | None,
        kind: str,
        workspace_key: int,
        terms: Sequence[str],
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> TextMatches:
        """Rows of the workspace that contain at least one of the distinct `terms` and fit
        `index_filter`. `ids` limits the search to those keys; the statistics do not depend on it.

        It may return only the `k` rows with the rarest terms (of equal ones those with the greatest
        keys, which are the newest), and all rows if there are fewer. An empty `terms` matches
        nothing. The cost depends on this workspace's postings only.
        """
        ...

    def sizes(
        self, tx: Transaction | None, kind: str, workspace_keys: Sequence[int]
    ) -> Mapping[int, int]:
        """How many rows of each of these workspaces are indexed, by key, in one look-up that reads
        none of them. Workspaces without rows may be left out."""
        ...

    def indexed(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> list[int]:
        """Those of these keys of which the index has anything, in no particular order: for the
        check after an erasure."""
        ...

    def drop(self, tx: Transaction | None, workspace_key: int, limit: int) -> int:
        """Remove up to `limit` rows of a workspace, of every kind; returns how many. 0 means that
        none is left."""
        ...
