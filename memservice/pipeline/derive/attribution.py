"""Whose word a statement is. What another peer said is stored as the observed peer's own only if
the observed peer confirmed it, whatever a reasoner makes of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from memservice.domain.records import Message
from memservice.domain.text.analysis import analyse
from memservice.pipeline.derive.assent import confirms, denies
from memservice.spi.reasoner import Statement

HEARD = 0.6
"""The share of a statement's words that others said, from which it is taken for theirs."""
ELLIPTIC = 2
"""An own message of at most so many words that matter ("Yes, since 2019") may confirm what another
said without repeating it."""
MAX_TURNS = 2
"""A confirmation follows what it confirms within so many turns."""

_QUESTION = ("?", "？", "؟", "¿")


def attributed(
    statements: Sequence[Statement],
    own: Sequence[Message],
    window: Sequence[Message],
    names: Collection[str],
    context: Collection[str] = (),
) -> tuple[list[Statement], int]:
    """The statements that are the observed peer's, each with those of its messages that are; and
    how many are not.

    `own`: the new messages of the observed peer. `window`: these, what others said around them, and
    earlier messages. `names`: the observed peer's. `context`: stored texts that the reasoner was
    shown; a statement that only repeats them is not new.
    """
    spoken = {message.key: _words(message.content) for message in own}
    conversation = _Conversation(own, window)
    stored = [_words(text) for text in context]
    called: frozenset[str] = frozenset().union(*(_words(name) for name in names))
    kept = []
    for statement in statements:
        cited = tuple(key for key in statement.message_keys if key in spoken)
        if not cited:
            continue
        told = _words(statement.content) - called
        confirmed: tuple[int, ...] = ()
        if statement.basis == "confirmed":
            confirmed = conversation.confirmed(cited, statement.confirms)
            told -= conversation.words_of(confirmed)
        said: frozenset[str] = frozenset().union(*(spoken[key] for key in cited))
        if statement.basis == "confirmed" and not confirmed:
            # Nothing was confirmed. It may still be what the peer said.
            is_own = len(told & said) >= HEARD * len(told) and not conversation.denies(cited)
        else:
            heard = conversation.heard_without(confirmed)
            is_short = len(said) <= ELLIPTIC
            if not is_short:
                heard = heard.union(conversation.said_before, *stored)
            is_elliptic = not confirmed and is_short and conversation.assents(cited)
            is_own = is_elliptic or not _is_hearsay(told, said, heard)
            if is_short and told and not told & said and any(told <= text for text in stored):
                is_own = bool(told & conversation.heard)
        if is_own:
            basis: Literal["said", "confirmed"] = "confirmed" if confirmed else "said"
            kept.append(replace(statement, message_keys=cited, basis=basis, confirms=confirmed))
    return kept, len(statements) - len(kept)


class _Conversation:
    """The new messages of the observed peer, and what others said around them."""

    def __init__(self, own: Sequence[Message], window: Sequence[Message]) -> None:
        self._messages = {message.key: message for message in (*window, *own)}
        self._others = {
            key: message
            for key, message in self._messages.items()
            if message.author_key != own[0].author_key
        }
        new = {message.key for message in own}
        self.said_before = self.words_of(set(self._messages) - set(self._others) - new)
        """Words of earlier messages by the observed peer."""
        self.heard = self.words_of(self._others)
        """The words that others said."""
        self._turns: dict[int, int] = {}
        """By message, the number of its turn: a run of messages by one author."""
        turn, author = 0, 0
        for message in sorted(self._messages.values(), key=lambda message: message.seq):
            turn += message.author_key != author
            author = message.author_key
            self._turns[message.key] = turn

    def confirmed(self, cited: Sequence[int], named: Sequence[int]) -> tuple[int, ...]:
        """Those of the named messages that are by others, and that one of the cited ones confirms:
        it follows soon, and agrees, or picks something that was offered."""
        return tuple(
            key
            for key in dict.fromkeys(named)
            if key in self._others
            and any(
                0 < self._turns[own] - self._turns[key] <= MAX_TURNS
                and _agrees(self._messages[own], self._others[key])
                for own in cited
            )
        )

    def assents(self, keys: Collection[int]) -> bool:
        """Whether one of these messages opens with assent or a choice."""
        return any(confirms(self._messages[key].content) for key in keys)

    def denies(self, keys: Collection[int]) -> bool:
        """Whether one of these messages denies something."""
        return any(denies(self._messages[key].content) for key in keys)

    def words_of(self, keys: Collection[int]) -> frozenset[str]:
        return frozenset().union(*(_words(self._messages[key].content) for key in keys))

    def heard_without(self, confirmed: Collection[int]) -> frozenset[str]:
        """The words that others said, except in questions and in what was confirmed."""
        return frozenset().union(
            *(
                _words(message.content)
                for key, message in self._others.items()
                if key not in confirmed and not _asks(message)
            )
        )


def _agrees(own: Message, other: Message) -> bool:
    """Whether a message opens with assent or a choice. To repeat a word of a question is a choice
    as well."""
    if confirms(own.content):
        return True
    repeats = bool(_words(own.content) & _words(other.content))
    return _asks(other) and repeats and not denies(own.content)


def _words(text: str) -> frozenset[str]:
    """Those that matter. In scripts without spaces pairs of characters: a single one is in too many
    words."""
    return frozenset(term for term in analyse(text) if len(term) > 1)


def _asks(message: Message) -> bool:
    """An answer to a question takes its words from the question."""
    return any(sign in message.content for sign in _QUESTION)


def _is_hearsay(told: frozenset[str], said: frozenset[str], heard: frozenset[str]) -> bool:
    """Whether a statement says what others said, and nothing of what the messages say that it is
    ascribed to."""
    if not told or told & said:
        return False
    return len(told & heard) >= HEARD * len(told)
