"""What the store knows about itself: vector spaces and facts."""

from __future__ import annotations

from memservice.domain.filters.ast import where
from memservice.domain.records import ACTIVE, Space
from memservice.spi.repositories.base import Noun


class Spaces(Noun):
    def active(self, workspace: int, kind: str) -> Space | None:
        """The space that queries of this workspace and kind are answered from; None before the first write."""
        return self.rows.get(Space, where(workspace_key=workspace, kind=kind, state=ACTIVE))

    def of_workspace(self, workspace: int) -> list[Space]:
        return self.rows.page(Space, where(workspace_key=workspace))

    def save(self, space: Space) -> Space:
        return self.rows.put([space])[0]

    def embedders_in_use(self) -> list[str]:
        """Ids of all embedders with an active space, sorted."""
        return sorted({space.embedder for space in self.rows.page(Space, where(state=ACTIVE))})
