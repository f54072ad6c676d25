"""The attribution of statements to peers. A statement of another peer is stored as one of the
observed peer only if the observed peer confirmed it, regardless of the reasoner's answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from msgspec.structs import replace

from memservice.domain.records import Message
from memservice.domain.text.analysis import analyse
from memservice.pipeline.derive.assent import confirms, denies
from memservice.spi.reasoner import Statement

MIN_SHARE_OF_OTHERS = 0.6
"""A statement is attributed to others if their messages contain at least this share of its words.
An unconfirmed one is the peer's own if the peer's messages contain at least the same share."""
MAX_ELLIPTIC_WORDS = 2
"""An own message with at most this many significant words ("Yes, since 2019") may confirm another's
message without repeating it."""
MAX_TURNS = 2
"""Largest distance in turns between a confirmation and the message that it confirms."""

_QUESTION = ("?", "？", "؟", "¿")


def attributed(
    statements: Sequence[Statement],
    own: Sequence[Message],
    window: Sequence[Message],
    names: Collection[str],
    context: Collection[str] = (),
) -> tuple[list[Statement], int]:
    """The observed peer's own statements, each limited to its cited messages among `own`; and the
    number of the other statements.

    `own`: the new messages of the observed peer. `window`: these, the messages of others around
    them, and earlier messages. `names`: the names of the observed peer. `context`: the stored texts
    in the reasoner's input; a statement that only repeats them is not new.
    """
    conversation = _Conversation(own, window)
    own_keys = {message.key for message in own}
    stored_words = [_words(text) for text in context]
    name_words: frozenset[str] = frozenset().union(*(_words(name) for name in names))
    own_statements = []
    for statement in statements:
        cited = tuple(key for key in statement.message_keys if key in own_keys)
        if not cited:
            continue
        confirmed: tuple[int, ...] = ()
        if statement.basis == "confirmed":
            confirmed = conversation.confirmed(cited, statement.confirms)
        words = _words(statement.content) - name_words - conversation.words_of(confirmed)
        own_words = conversation.words_of(cited)
        if statement.basis == "confirmed" and not confirmed:
            # It confirms no message of another peer, but the peer may have said it itself.
            is_repeated = len(words & own_words) >= MIN_SHARE_OF_OTHERS * len(words)
            is_own = is_repeated and not conversation.denies(cited)
        else:
            is_own = _is_own(conversation, words, cited, own_words, confirmed, stored_words)
        if is_own:
            basis: Literal["said", "confirmed"] = "confirmed" if confirmed else "said"
            own_statements.append(
                replace(statement, message_keys=cited, basis=basis, confirms=confirmed)
            )
    return own_statements, len(statements) - len(own_statements)


def _is_own(
    conversation: _Conversation,
    words: frozenset[str],
    cited: Sequence[int],
    own_words: frozenset[str],
    confirmed: Collection[int],
    stored_words: Sequence[frozenset[str]],
) -> bool:
    """Whether the observed peer made a statement with these `words`, rather than another peer or a
    stored text. `own_words`: those of the cited messages. `stored_words`: those of each stored
    text."""
    is_short = len(own_words) <= MAX_ELLIPTIC_WORDS
    if is_short and words and not words & own_words and any(words <= text for text in stored_words):
        # It repeats a stored text, unless another peer mentions the same.
        return bool(words & conversation.other_words)
    if is_short and not confirmed and conversation.assents(cited):
        return True
    other_words = conversation.other_words_without(confirmed)
    if not is_short:
        other_words = other_words.union(conversation.earlier_own_words, *stored_words)
    return not _is_from_others(words, own_words, other_words)


class _Conversation:
    """The new messages of the observed peer, and the messages of others around them."""

    def __init__(self, own: Sequence[Message], window: Sequence[Message]) -> None:
        self._messages = {message.key: message for message in (*window, *own)}
        self._words = {key: _words(message.content) for key, message in self._messages.items()}
        self._others = {
            key: message
            for key, message in self._messages.items()
            if message.author_key != own[0].author_key
        }
        new = {message.key for message in own}
        self.earlier_own_words = self.words_of(set(self._messages) - set(self._others) - new)
        """Words of earlier messages by the observed peer."""
        self.other_words = self.words_of(self._others)
        """Words of the messages of others."""
        self._turns: dict[int, int] = {}
        """Key of a message → number of its turn. A turn is a run of messages by one author."""
        turn, author = 0, 0
        for message in sorted(self._messages.values(), key=lambda message: message.seq):
            turn += message.author_key != author
            author = message.author_key
            self._turns[message.key] = turn

    def confirmed(self, cited: Sequence[int], named: Sequence[int]) -> tuple[int, ...]:
        """The messages of others among `named` that one of the `cited` messages confirms: it
        follows within `MAX_TURNS`, and agrees or picks one of the options."""
        return tuple(
            key
            for key in dict.fromkeys(named)
            if key in self._others
            and any(
                0 < self._turns[own] - self._turns[key] <= MAX_TURNS and self._agrees(own, key)
                for own in cited
            )
        )

    def _agrees(self, own: int, other: int) -> bool:
        """Whether a message opens with assent or a choice. Repeating a word of a question, without
        a denial, is a choice as well."""
        content = self._messages[own].content
        if confirms(content):
            return True
        repeats = bool(self._words[own] & self._words[other])
        return _asks(self._messages[other]) and repeats and not denies(content)

    def assents(self, keys: Collection[int]) -> bool:
        """Whether one of these messages opens with assent or a choice."""
        return any(confirms(self._messages[key].content) for key in keys)

    def denies(self, keys: Collection[int]) -> bool:
        """Whether one of these messages opens with a denial."""
        return any(denies(self._messages[key].content) for key in keys)

    def words_of(self, keys: Collection[int]) -> frozenset[str]:
        return frozenset().union(*(self._words[key] for key in keys))

    def other_words_without(self, confirmed: Collection[int]) -> frozenset[str]:
        """Words of the messages of others, without questions and confirmed messages."""
        return self.words_of(
            [
                key
                for key, message in self._others.items()
                if key not in confirmed and not _asks(message)
            ]
        )


def _words(text: str) -> frozenset[str]:
    """The significant words of a text. In scripts without spaces these are pairs of characters,
    since a single character occurs in too many words."""
    return frozenset(term for term in analyse(text) if len(term) > 1)


def _asks(message: Message) -> bool:
    """Whether a message contains a question. An answer repeats words of its question."""
    return any(sign in message.content for sign in _QUESTION)


def _is_from_others(
    statement_words: frozenset[str], own_words: frozenset[str], other_words: frozenset[str]
) -> bool:
    """Whether a statement repeats words of others, and shares no word with its cited messages."""
    if not statement_words or statement_words & own_words:
        return False
    return len(statement_words & other_words) >= MIN_SHARE_OF_OTHERS * len(statement_words)
