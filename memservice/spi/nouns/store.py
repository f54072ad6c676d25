"""What the store knows about itself: vector spaces and facts."""

from __future__ import annotations

from memservice.domain.filters.ast import where
from memservice.domain.records import ACTIVE, Fact, Space
from memservice.spi.nouns.base import Noun


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


class Facts(Noun):
    def get(self, name: str) -> str | None:
        fact = self.rows.get(Fact, where(name=name))
        return None if fact is None else fact.value

    def set(self, name: str, value: str) -> None:
        if not self.rows.change(Fact, where(name=name), value=value):
            self.rows.put([Fact(name=name, value=value)])
