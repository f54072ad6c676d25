"""The reasoner seam: from messages to conclusions, summaries and answers.

A reasoner is a pure function of its request, as far as its model is one: it neither reads nor
writes a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from memservice.spi.capabilities import Capability
from memservice.spi.toolbox import Evidence, Step, Toolbox


class Utterance(Struct, frozen=True):
    """One message, as a reasoner sees it."""

    key: int
    uid: str
    author: str
    """Slug of the peer that wrote it."""
    content: str
    sent_at: datetime
    new: bool = True
    """False for a message that is only context: nothing is derived from it."""
    zone: str | None = None
    """Time zone of its author (`memservice.domain.time_zones`); None: UTC."""


class Origin(Struct, frozen=True):
    """The workspace and run that a request belongs to. It is recorded with each call of a model and
    does not affect the answer."""

    workspace_key: int | None = None
    workspace: str | None = None
    """Its slug."""
    run_id: str | None = None
    """The same for all calls of one answer or one dream."""


class Known(Struct, frozen=True):
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


class DeriveContext(Struct, frozen=True):
    """What a reasoner may read to understand new messages. Nothing is derived from it."""

    summary: str | None = None
    """Of the session, as far as it was written before the new messages."""
    card: Sequence[str] = ()
    """Lines of the observed peer's own card."""
    held: Sequence[Known] = ()
    """Live conclusions about the observed peer that are related to the new messages, the closest
    first."""
    facts: Sequence[Known] = ()
    """The newest live facts that the observed peer stated about itself, of which a new statement
    may give a newer value. Only for a reasoner that asks no model."""


class DeriveRequest(Struct, frozen=True):
    """Successive messages of one session, in order, by any authors. The reasoner derives
    conclusions about `observed` only."""

    observed: str
    messages: Sequence[Utterance]
    instructions: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    """Display names by slug, of peers that have one."""
    origin: Origin = Origin()
    context: DeriveContext = DeriveContext()
    """For a reasoner that asks no model: `facts` only."""


class Statement(Struct, frozen=True):
    """One conclusion, with the keys of its source messages (never empty)."""

    content: str
    message_keys: tuple[int, ...]
    level: str = "explicit"
    source_ids: tuple[str, ...] = ()
    """Uids of the conclusions that it is based on; empty for explicit ones."""
    premises: tuple[str, ...] = ()
    pattern_type: str | None = None
    confidence: str | None = None
    model: str | None = None
    """The model that produced it, if it is not that of the whole request."""
    prompt: str | None = None
    """The version of its prompt, if it is not that of the whole request."""
    basis: Literal["said", "confirmed"] = "said"
    """`said`: the observed peer states it. `confirmed`: another peer states it, and the cited
    messages agree or choose it."""
    confirms: tuple[int, ...] = ()
    """Keys of the confirmed messages."""
    kind: str | None = None
    """One of `memservice.domain.derived_rules.STATEMENT_KINDS`; None: not known."""
    when: tuple[str | None, str | None] | None = None
    """The time that it is about: start and end, as `memservice.domain.time_spans` reads them."""
    certainty: str = "certain"
    """One of `memservice.domain.derived_rules.CERTAINTIES`."""
    replaces: tuple[str, ...] = ()
    """Uids of conclusions of `DeriveRequest.context`, `held` or `facts`, that are no longer true,
    or were wrong, because this one is true."""
    outdates: tuple[str, ...] = ()
    """The contents of other statements of the same result that were true before this one."""
    reason: str = ""
    """Why it replaces them."""


class Spent(Struct, frozen=True):
    """The cost of all calls of an answer. Zero if no model was called."""

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    calls: int = 0
    """Successful calls of a model."""

    def __add__(self, other: Spent) -> Spent:
        """The cost of both, with the model of the left one, or of the right one if that has
        none."""
        return Spent(
            self.model or other.model,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.calls + other.calls,
        )


class Derived(Struct, frozen=True):
    statements: Sequence[Statement]
    spent: Spent = Spent()
    prompt: str | None = None
    """The version of the prompt, if a model was called."""
    scaffold_tokens: int = 0
    """Tokens of the model's input besides the messages, by our own count."""
    hit_input_cap: bool = False
    """Whether a part of the messages was left out because of the limit of the model's input."""
    refused: tuple[int, ...] = ()
    """Keys of the new messages for which the model, or its provider, declined to derive
    anything."""
    unfinished: tuple[int, ...] = ()
    """Keys of the new messages whose answer was cut off even for the shortest part of the message.
    Its complete statements are in `statements`."""


class SummarizeRequest(Struct, frozen=True):
    """The messages since `previous`, in order."""

    kind: str
    messages: Sequence[Utterance]
    previous: str | None
    max_tokens: int
    instructions: str | None = None
    origin: Origin = Origin()


class Summarized(Struct, frozen=True):
    """An empty `content` means that there is nothing to summarize; it is not stored."""

    content: str
    spent: Spent = Spent()
    prompt: str | None = None
    """The version of the prompt, if a model was called."""
    scaffold_tokens: int = 0
    """Tokens of the model's input besides the messages and the previous summary, by our own
    count."""


class ConsolidateRequest(Struct, frozen=True):
    """The live conclusions of one (observer, observed), oldest first, and the present card."""

    observer: str
    observed: str
    known: Sequence[Known]
    card: Sequence[str]
    write_card: bool = True
    instructions: str | None = None
    card_instructions: str | None = None
    """Instructions for the card only."""
    in_one_call: bool = False
    """With `card_only`: at most one call of a model, from `known` and `card` alone."""
    card_only: bool = False
    """Only the card of the result is used."""
    surprising: Sequence[str] = ()
    """Uids of the outliers among `known`, the least similar first; empty unless the settings switch
    this on."""
    tools: Toolbox | None = None
    """Look-ups beyond `known`, which has the newest conclusions only. The result may name
    conclusions from look-ups like those of `known`."""
    asked_at: datetime | None = None
    origin: Origin = Origin()


class Superseded(Struct, frozen=True):
    """`new` replaces `old`, for `reason`. `new` is a uid of `known`, or an index into `created`
    written as `#0`, `#1` …

    Without `new` the conclusion is withdrawn without a replacement.
    """

    old: str
    new: str | None
    reason: str


class Phase(Struct, frozen=True):
    """The results of one part of a consolidation, for the task's outcome and for telemetry."""

    name: str
    """`deduction`, `induction` or `card_refresh`."""
    steps: Sequence[Step] = ()
    spent: Spent = Spent()
    duration_ms: int = 0
    error: str | None = None
    """Class of the error that ended it early; its results until then count. None if it was
    completed."""
    created: Sequence[str] = ()
    """Levels of the conclusions that it created."""
    superseded: Sequence[str] = ()
    """Levels of the conclusions that it superseded."""
    card_written: bool = False


class Consolidated(Struct, frozen=True):
    created: Sequence[Statement] = ()
    """`source_ids` may refer to an earlier one of these, as `#0`, `#1` …"""
    superseded: Sequence[Superseded] = ()
    card: Sequence[str] | None = None
    """None does not change the card."""
    spent: Spent = Spent()
    phases: Sequence[Phase] = ()
    """The phases of a reasoner that has them."""


def always() -> bool:
    return True


class AnswerRequest(Struct, frozen=True):
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
    """Slug of the peer whose memory answers; None for a question over the whole workspace."""
    asked_at: datetime | None = None
    tools: Toolbox | None = None
    """Look-ups beyond `evidence`."""
    stream: bool = False
    """Whether the pieces are passed on to a client as they arrive."""
    names: dict[str, str] = field(default_factory=dict)
    """Display names by slug, of peers that have one."""
    model_is_spent: bool = False
    """The workspace has used its tokens of today, so no model answers."""
    model_failed: bool = False
    """A model was called and did not answer."""
    seconds: float | None = None
    """Time limit, from the call of `answer` to its end; for a stream, to its first piece. None: no
    limit."""
    is_wanted: Callable[[], bool] = always
    """Whether the caller still waits. Call it between calls of a model."""
    origin: Origin = Origin()


class Answered(Struct, frozen=True):
    """The cost and steps of an answer."""

    spent: Spent = Spent()
    steps: Sequence[Step] = ()
    run_id: str | None = None
    """The id of the run in the usage ledger and in telemetry; None if no model was called."""
    hit_input_cap: bool = False
    """Whether something was left out because of the limit of the model's input."""


class Reasoner(Protocol):
    """Safe to call from several threads. It may raise any error; the pipeline records it and
    retries. Without `REMOTE` and `COSTLY`, equal requests have equal results."""

    name: str
    capabilities: frozenset[Capability]

    def derive(self, request: DeriveRequest) -> Derived:
        """Conclusions from the new messages (`Utterance.new`) of `request.observed`, whose name is
        compared exactly: nothing from other authors, from context, or from text without content,
        and nothing twice. In the language of the message, and each with keys of its sources."""
        ...

    def summarize(self, request: SummarizeRequest) -> Summarized:
        """At most `request.max_tokens` tokens (`memservice.domain.tokens.count`), however long the
        previous summary is. Empty, and not blank, if there is nothing to say."""
        ...

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        """It cites only conclusions of the request, or its own new ones. Those that differ in a
        number or a name are not merged, nothing supersedes itself, and each chain ends at a live
        conclusion. A card has at most 40 lines without blank ones; None without `write_card`."""
        ...

    def answer(self, request: AnswerRequest) -> Iterator[str | Answered]:
        """The pieces of the answer, in order, then optionally one `Answered`. No piece means that
        there is no answer. An answer that fails may yield `Answered` before it raises. Without
        evidence it invents nothing. With `response_format`, the pieces are JSON that fits it.

        Closing the iterator ends the work.
        """
        ...
