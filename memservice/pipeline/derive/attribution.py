"""Whose word a statement is. What somebody else said is never stored as the observed peer's own,
whatever a reasoner makes of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from memservice.domain.records import Message
from memservice.domain.text.analysis import analyse
from memservice.spi.reasoner import Statement

HEARD = 0.6
"""The share of a statement's words that others said, from which it is taken for theirs."""
ELLIPTIC = 2
"""An own message of at most so many words that matter ("Yes, since 2019") may confirm what another
said without repeating it."""

_QUESTION = ("?", "？", "؟", "¿")


def attributed(
    statements: Sequence[Statement],
    own: Sequence[Message],
    window: Sequence[Message],
    names: Collection[str],
) -> tuple[list[Statement], int]:
    """The statements that are the observed peer's, each with those of its messages that are; and
    how many are not.

    `own`: the new messages of the observed peer. `window`: these and what others said around them.
    `names`: the observed peer's.
    """
    spoken = {message.key: _words(message.content) for message in own}
    others = [message for message in window if message.author_key != own[0].author_key]
    heard: frozenset[str] = frozenset().union(
        *(_words(message.content) for message in others if not _asks(message))
    )
    called: frozenset[str] = frozenset().union(*(_words(name) for name in names))
    kept = []
    for statement in statements:
        cited = tuple(key for key in statement.message_keys if key in spoken)
        if cited and not _is_hearsay(
            _words(statement.content) - called, [spoken[key] for key in cited], heard
        ):
            kept.append(replace(statement, message_keys=cited))
    return kept, len(statements) - len(kept)


def _words(text: str) -> frozenset[str]:
    """Those that matter. In scripts without spaces pairs of characters: a single one is in too many
    words."""
    return frozenset(term for term in analyse(text) if len(term) > 1)


def _asks(message: Message) -> bool:
    """An answer to a question takes its words from the question."""
    return any(sign in message.content for sign in _QUESTION)


def _is_hearsay(
    told: frozenset[str], cited: Sequence[frozenset[str]], heard: frozenset[str]
) -> bool:
    """Does it say what others said, and nothing of what the messages say that it is ascribed to?"""
    said: frozenset[str] = frozenset().union(*cited)
    if not told or told & said or len(said) <= ELLIPTIC:
        return False
    return len(told & heard) >= HEARD * len(told)
