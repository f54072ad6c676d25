"""The items of a representation while it is put together, within its budget."""

from __future__ import annotations

from memservice.domain import tokens
from memservice.domain.records import EXPLICIT, Conclusion, Message
from memservice.services.retrieval.representation_text import line_of_conclusion, line_of_message


class Draft:
    """The items selected so far, without duplicates, within a number of items and of tokens."""

    def __init__(self, items: int, budget: int | None) -> None:
        self.items = items
        self.budget = budget
        self.speakers: dict[str, str] = {}
        self.conclusions: dict[int, Conclusion] = {}
        self.messages: dict[int, Message] = {}
        self._texts: set[tuple[str, str]] = set()

    @property
    def full(self) -> bool:
        return len(self.conclusions) + len(self.messages) >= self.items or (
            self.budget is not None and self.budget <= 0
        )

    def _pays(self, line: str) -> bool:
        if self.full:
            return False
        if self.budget is not None:
            cost = tokens.count(f"{line}\n")
            if cost > self.budget:
                return False
            self.budget -= cost
        return True

    def take_conclusion(self, conclusion: Conclusion) -> None:
        """Take the conclusion, unless a message that contains it is quoted, or it does not fit."""
        same = (conclusion.level, conclusion.fingerprint)
        if same in self._texts or any(
            is_part(conclusion, self.messages.get(key)) for key in conclusion.message_keys
        ):
            return
        if self._pays(line_of_conclusion(conclusion)):
            self._texts.add(same)
            self.conclusions[conclusion.key] = conclusion

    def take_message(self, message: Message) -> bool:
        """Quote the message; false if it does not fit."""
        if message.key not in self.messages:
            speaker = self.speakers.get(message.author, message.author)
            if not self._pays(line_of_message(message, speaker)):
                return False
            self.messages[message.key] = message
        return True


def is_part(conclusion: Conclusion, message: Message | None) -> bool:
    """Whether the message contains the conclusion word for word."""
    return (
        message is not None
        and conclusion.level == EXPLICIT
        and conclusion.content in message.content
    )


MOST = 0.75
"""Share of a message's characters: a conclusion with more of them says the same with fewer tokens,
and what it lacks is a greeting or an interjection. Clients expect it as a conclusion. Of the
evidence in whole messages, this costs 3 of 95 percent (people, tuning), 2 of 90 (people, held-back)
and nothing where messages are long (`benchmarks/recall/README.md`)."""


def says_most(conclusion: Conclusion, message: Message) -> bool:
    """Whether the conclusion, which is part of the message, says nearly all of it."""
    return len(conclusion.content) >= MOST * len(message.content.strip())
