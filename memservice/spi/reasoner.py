"""The reasoner seam: what stands between stored messages and what is concluded from them.

A reasoner is a pure function of its request, so far as its model is: it reads no store and writes
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from memservice.spi.capabilities import Capability
from memservice.spi.toolbox import Evidence, Step, Toolbox


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
class Origin:
    """For whom a request is made. It is noted with each call of a model, and changes nothing about
    the answer."""

    workspace_key: int | None = None
    workspace: str | None = None
    """Its slug."""
    run_id: str | None = None
    """The same for all calls that one answer, or one dream, takes."""


@dataclass(frozen=True, slots=True)
class DeriveRequest:
    """A run of messages of one session, in order, by any speakers; conclusions are wanted about
    `observed` only."""

    observed: str
    messages: Sequence[Utterance]
    instructions: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    """Display names by slug, where a peer has one."""
    origin: Origin = Origin()


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
    model: str | None = None
    """The model that made it, where it is not that of the whole request."""
    prompt: str | None = None
    """The same of the version of the prompt."""
    basis: Literal["said", "confirmed"] = "said"
    """`confirmed`: another peer said it, and the cited messages agree or pick it."""
    confirms: tuple[int, ...] = ()
    """Keys of the messages that are confirmed."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What an answer cost, all its calls together. Zero where no model was asked."""

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    calls: int = 0
    """Calls of a model that gave something."""


@dataclass(frozen=True, slots=True)
class Derived:
    statements: Sequence[Statement]
    spent: Spent = Spent()
    prompt: str | None = None
    """The version of the prompt, where a model was asked."""
    scaffold_tokens: int = 0
    """Of what the model was given besides the messages, by our own count."""
    hit_input_cap: bool = False
    """Was something of the messages left out because the model is given only so much?"""
    refused: tuple[int, ...] = ()
    """Keys of the new messages from which the model, or its provider, declines to derive
    anything."""
    unfinished: tuple[int, ...] = ()
    """Keys of the new messages whose answer ended early, however short the part of the message
    was. What it contained is among the statements."""


@dataclass(frozen=True, slots=True)
class SummarizeRequest:
    """The messages that came since `previous`, in order."""

    kind: str
    messages: Sequence[Utterance]
    previous: str | None
    max_tokens: int
    instructions: str | None = None
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class Summarized:
    """An empty `content` means that there was nothing to say; it is not stored."""

    content: str
    spent: Spent = Spent()
    prompt: str | None = None
    """The version of the prompt, where a model was asked."""
    scaffold_tokens: int = 0
    """Of what the model was given besides the messages and the previous summary, by our own
    count."""


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
    surprising: Sequence[str] = ()
    """Uids of those of `known` that fit the others least, the oddest first; looked for only where
    the settings ask for it."""
    tools: Toolbox | None = None
    """For looking further than `known`, which is the newest only. Conclusions that it finds may be
    named like those of `known`."""
    asked_at: datetime | None = None
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class Superseded:
    """`old` is replaced by `new` (a uid of `known`, or an index into `created` written as `#0`,
    `#1` …), for `reason`.

    Without `new` it is taken back: it no longer holds, and nothing else takes its place.
    """

    old: str
    new: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Phase:
    """What one part of a consolidation did: for the task's outcome and for telemetry."""

    name: str
    """`deduction`, `induction` or `card_refresh`."""
    steps: Sequence[Step] = ()
    spent: Spent = Spent()
    duration_ms: int = 0
    error: str | None = None
    """Class of what ended it early; what it had done until then counts. None where it came to its
    end."""
    created: Sequence[str] = ()
    """Levels of the conclusions that it made."""
    superseded: Sequence[str] = ()
    """Levels of the conclusions that it let give way."""
    card_written: bool = False


@dataclass(frozen=True, slots=True)
class Consolidated:
    created: Sequence[Statement] = ()
    """A `source_ids` may name an earlier one of these, as `#0`, `#1` …"""
    superseded: Sequence[Superseded] = ()
    card: Sequence[str] | None = None
    """None leaves the card as it is."""
    spent: Spent = Spent()
    phases: Sequence[Phase] = ()
    """For a reasoner that works in steps."""


def always() -> bool:
    return True


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
    asker: str | None = None
    """Slug of the peer whose memory is asked; None for a question over the whole workspace."""
    asked_at: datetime | None = None
    tools: Toolbox | None = None
    """For looking further than `evidence`."""
    stream: bool = False
    """The pieces are passed on as they come, so that it matters when they do."""
    names: dict[str, str] = field(default_factory=dict)
    """Display names by slug, where a peer has one."""
    model_is_spent: bool = False
    """A model would answer, had the workspace tokens left for today."""
    model_failed: bool = False
    """A model was asked and did not answer."""
    seconds: float | None = None
    """For how long the caller waits, from the call of `answer` on; for a stream, until its first
    piece. None: no limit."""
    is_wanted: Callable[[], bool] = always
    """Whether the caller still waits; asked between the calls of a model."""
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class Answered:
    """What an answer took; what the caller may be told of it."""

    spent: Spent = Spent()
    steps: Sequence[Step] = ()
    run_id: str | None = None
    """The name of the run in the usage ledger and in telemetry; None where no model was asked."""
    hit_input_cap: bool = False
    """Was something left out because the model takes only so much?"""


class Reasoner(Protocol):
    """Safe to call from several threads. Raises whatever went wrong; the pipeline records and
    retries."""

    name: str
    capabilities: frozenset[Capability]

    def derive(self, request: DeriveRequest) -> Derived: ...

    def summarize(self, request: SummarizeRequest) -> Summarized: ...

    def consolidate(self, request: ConsolidateRequest) -> Consolidated: ...

    def answer(self, request: AnswerRequest) -> Iterator[str | Answered]:
        """The answer in pieces, in order, then maybe one record of what it took. No piece means
        that there is nothing to say. One that fails may give that record before it raises.

        Closing the iterator ends the work.
        """
        ...
