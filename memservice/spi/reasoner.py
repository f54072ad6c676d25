"""The reasoner seam: what stands between stored messages and what is concluded from them.

A reasoner is a pure function of its request, so far as its model is: it reads no store and writes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from memservice.spi.capabilities import Capability


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message, as a reasoner sees it."""

    key: int
    uid: str
    author: str
    """Slug of the peer that wrote it."""
    content: str
    sent_at: datetime
    new: bool = True
    """False for a message that is only context: nothing is derived from it."""


@dataclass(frozen=True, slots=True)
class DeriveRequest:
    """A run of messages of one session, in order, by any speakers; conclusions are wanted about `observed` only."""

    observed: str
    messages: Sequence[Utterance]
    instructions: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    """Display names by slug, where a peer has one."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One conclusion, with the messages that it comes from (keys, never empty)."""

    content: str
    message_keys: tuple[int, ...]
    level: str = "explicit"
    source_ids: tuple[str, ...] = ()
    """Uids of the conclusions that it rests on; empty for explicit ones."""
    premises: tuple[str, ...] = ()
    pattern_type: str | None = None
    confidence: str | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call cost. Zero where no model was asked."""

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Derived:
    statements: Sequence[Statement]
    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class SummarizeRequest:
    """The messages that came since `previous`, in order."""

    kind: str
    messages: Sequence[Utterance]
    previous: str | None
    max_tokens: int
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class Summarized:
    """An empty `content` means that there was nothing to say; it is not stored."""

    content: str
    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class Known:
    """One stored conclusion, as a reasoner sees it."""

    uid: str
    content: str
    level: str
    said_at: datetime
    times_derived: int
    observer: str
    observed: str
    session: str | None = None
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsolidateRequest:
    """The live conclusions of one (observer, observed), oldest first, and the present card."""

    observer: str
    observed: str
    known: Sequence[Known]
    card: Sequence[str]
    write_card: bool = True
    instructions: str | None = None
    card_instructions: str | None = None
    """For the card alone."""
    card_only: bool = False
    """Nothing but the card is used of the result."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """`old` is replaced by `new` (a uid of `known`, or an index into `created` written as `#0`, `#1` …), for `reason`."""

    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class Consolidated:
    created: Sequence[Statement] = ()
    superseded: Sequence[Superseded] = ()
    card: Sequence[str] | None = None
    """None leaves the card as it is."""
    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was found for a question: a conclusion or a message, best first."""

    kind: str
    """`conclusion` or `message`."""
    uid: str
    content: str
    said_at: datetime
    about: str | None = None
    """Slug of the observed peer, for a conclusion."""
    author: str | None = None
    """Slug of the author, for a message."""
    level: str | None = None
    observer: str | None = None
    """Slug of the peer that holds a conclusion."""
    session: str | None = None
    """Slug of the session that it comes from, where it comes from one."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    question: str
    subject: str | None
    """Slug of the peer that the question is about; None for a question over the whole workspace."""
    evidence: Sequence[Evidence]
    cards: dict[str, list[str]] = field(default_factory=dict)
    recent: Sequence[Utterance] = ()
    level: str = "low"
    response_format: dict[str, Any] | None = None
    instructions: str | None = None


class Reasoner(Protocol):
    """Safe to call from several threads. Raises whatever went wrong; the pipeline records and retries."""

    name: str
    capabilities: frozenset[Capability]

    def derive(self, request: DeriveRequest) -> Derived: ...

    def summarize(self, request: SummarizeRequest) -> Summarized: ...

    def consolidate(self, request: ConsolidateRequest) -> Consolidated: ...

    def answer(self, request: AnswerRequest) -> Iterator[str]:
        """The answer in pieces, in order. Nothing yielded means that nothing is known."""
        ...
