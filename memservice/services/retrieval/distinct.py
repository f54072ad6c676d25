"""Messages that an author repeats ("What a week.") tell nothing more: a page of results has each
once, as long as there are others."""

from __future__ import annotations

from collections.abc import Iterable

from memservice.domain.records import Message


class Distinct:
    """Ranked messages, of which those that repeat an earlier one of their author come last."""

    def __init__(self, ranked: Iterable[Message]) -> None:
        self._first: dict[tuple[int, str], Message] = {}
        self._repeated: list[Message] = []
        self.add(ranked)

    def add(self, ranked: Iterable[Message]) -> None:
        """Further ones, worse than those before."""
        for message in ranked:
            text = " ".join(message.content.split()).casefold()
            if self._first.setdefault((message.author_key, text), message) is not message:
                self._repeated.append(message)

    @property
    def number(self) -> int:
        """How many are no repetition."""
        return len(self._first)

    @property
    def messages(self) -> list[Message]:
        return [*self._first.values(), *self._repeated]
