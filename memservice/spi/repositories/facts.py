"""Facts."""

from __future__ import annotations

from memservice.domain.filters.ast import where
from memservice.domain.records import Fact
from memservice.spi.repositories.base import Noun


class Facts(Noun):
    def get(self, name: str) -> str | None:
        fact = self.rows.get(Fact, where(name=name))
        return None if fact is None else fact.value

    def set(self, name: str, value: str) -> None:
        if not self.rows.change(Fact, where(name=name), value=value):
            self.rows.put([Fact(name=name, value=value)])
