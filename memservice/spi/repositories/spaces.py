"""Vector spaces."""

from __future__ import annotations

from memservice.domain.filters.ast import equals
from memservice.domain.records import ACTIVE, Space
from memservice.spi.repositories.base import Repository


class Spaces(Repository):
    def active(self, workspace_key: int, kind: str) -> Space | None:
        """The space for queries of this workspace and kind; None before the first write."""
        return self.rows.get(Space, equals(workspace_key=workspace_key, kind=kind, state=ACTIVE))

    def of_workspace(self, workspace_key: int) -> list[Space]:
        return self.rows.page(Space, equals(workspace_key=workspace_key))

    def save(self, space: Space) -> Space:
        return self.rows.put([space])[0]

    def embedders_in_use(self) -> list[str]:
        """Ids of all embedders with an active space, sorted."""
        return sorted({space.embedder for space in self.rows.page(Space, equals(state=ACTIVE))})
