"""A page of results has each text of an author ("What a week.") once, as long as there are others
among the candidates."""

from __future__ import annotations

from collections.abc import Iterable

from memservice.domain.records import Message

SHORT = 200
"""Characters up to which texts that differ in spaces and capital letters are the same. To compare
longer ones in this way takes a tenth of the time of a search with 100 results."""


class Distinct:
    """Ranked messages, of which those that repeat an earlier one of their author come last."""

    def __init__(self, ranked: Iterable[Message] = ()) -> None:
        self._first: dict[tuple[int, str], Message] = {}
        self._repeated: list[Message] = []
        self.add(ranked)

    def add(self, ranked: Iterable[Message]) -> None:
        """Further ones, worse than those before."""
        for message in ranked:
            text = message.content
            if len(text) <= SHORT:
                text = " ".join(text.split()).casefold()
            if self._first.setdefault((message.author_key, text), message) is not message:
                self._repeated.append(message)

    @property
    def number(self) -> int:
        """How many are no repetition."""
        return len(self._first)

    @property
    def messages(self) -> list[Message]:
        return [*self._first.values(), *self._repeated]
