"""Facts."""

from __future__ import annotations

from memservice.domain.filters.ast import equals
from memservice.domain.records import Fact
from memservice.spi.repositories.base import Repository


class Facts(Repository):
    def get(self, name: str) -> str | None:
        fact = self.rows.get(Fact, equals(name=name))
        return None if fact is None else fact.value

    def set(self, name: str, value: str) -> None:
        if not self.rows.change(Fact, equals(name=name), value=value):
            self.rows.put([Fact(name=name, value=value)])
