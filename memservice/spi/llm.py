"""The language-model seam: one exchange with a model, plain or streamed, and what is noted of
each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call. `parameters` is a JSON Schema with an object at its
    root."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: dict[str, Any]
    carried: Any = None
    """What the provider wants to see again with this call, such as the signature of the thinking
    that led to it. Only that provider understands it: whoever continues the conversation passes the
    call on as it is."""


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    content: str
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    """For role `tool`: which call this is the result of."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    model: str
    turns: Sequence[Turn]
    max_output_tokens: int
    tools: Sequence[Tool] = ()
    tool_choice: str | None = None
    """`auto`, `required` (or `any`), `none`, or the name of the tool that has to be called. None:
    the provider's default."""
    response_schema: dict[str, Any] | None = None
    """JSON Schema that the answer must fit. A provider without native support falls back to JSON
    mode, then to prompting."""
    temperature: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """What else the model's configuration says, by the names of `…MODEL_CONFIG__` in lower case:
    `top_p`, `top_k`, `frequency_penalty`, `presence_penalty`, `seed`, `thinking_effort`,
    `thinking_budget_tokens`, `structured_output_mode`, `stop_sequences`, `cache_policy`
    (a mapping). Only what is set is there; a provider leaves out what its protocol has no word
    for."""
    timeout: float | None = None
    """Seconds that the whole exchange may take; None: the provider's own bound."""
    start_timeout: float | None = None
    """Seconds until the first text of a stream that is not reasoning; None: as `timeout`. A
    provider may do without it."""
    opens_reasoning: bool = False
    """Whether the answer is known to begin inside of reasoning that has no opening tag."""
    reasoning_headroom: int = 0
    """Tokens for reasoning on top of `max_output_tokens`. A provider that counts reasoning as
    output adds them to its own bound."""


Fault = Literal["provider", "content"]
"""Where the cause of a failure lies. `provider`: the endpoint, its key, its quota or the network;
every other request to the same model fails too until that changes. `content`: this request or the
answer to it; other requests to the same model can succeed."""

CONTENT_STATUSES = frozenset({400, 413, 415, 422, 501})
"""HTTP statuses of requests that are wrong in themselves. All others are faults of the
provider."""


class ModelFailure(Exception):
    """An exchange without a usable answer. Its text never contains a key or message text."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        status: int | None = None,
        retry_after: float | None = None,
        fault: Fault | None = None,
    ) -> None:
        """`fault` None: derived from the status, or `provider` without one if a retry can help."""
        super().__init__(message)
        self.retryable = retryable
        """Whether the same request can succeed a little later (time-out, cut connection, 408, 409,
        429, 5xx)."""
        self.status = status
        """HTTP status, if there was one."""
        self.retry_after = retry_after
        """Seconds until the next try, if the provider named them."""
        self.fault: Fault = fault or _fault(status, retryable)
        """Count a `content` fault against the task. For a `provider` fault, wait until the
        provider is back."""
        self.model: str | None = None
        """Which model failed. The core sets it; providers leave it."""


def _fault(status: int | None, retryable: bool) -> Fault:
    if status is None:
        return "provider" if retryable else "content"
    return "content" if status in CONTENT_STATUSES else "provider"


class Refusal(ModelFailure):
    """The model, or its provider, declines to answer this request. A retry does not help."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message, retryable=False, status=status, fault="content")


class MalformedAnswer(ModelFailure):
    """The model answered, also when asked again, but not in the requested form. Quotes nothing of
    the answer."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=False, fault="content")


class ContextTooLong(ModelFailure):
    """The request is longer than the model can read. A shorter one can succeed."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message, retryable=False, status=status, fault="content")


class ToolsUnsupported(ModelFailure):
    """The model, or its server, does not accept tools. The same request without tools can
    succeed."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message, retryable=False, status=status, fault="content")


@dataclass(frozen=True, slots=True)
class Completion:
    content: str
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None
    """`stop`, `length` (cut at `max_output_tokens`), `tool_calls`, or the provider's own word for
    something else."""
    input_tokens: int = 0
    """All that was read, whether or not it came from a cache. 0 where the provider does not
    count."""
    output_tokens: int = 0
    """All that was written, reasoning included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """Of `output_tokens`, those of the reasoning; 0 where the provider does not count them."""


class LanguageModel(Protocol):
    """Safe to call from several threads. Raises ModelFailure; retries and falling back are the
    caller's, since each try is noted."""

    def complete(self, request: CompletionRequest) -> Completion: ...

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        """Pieces of the answer as they arrive, then the whole `Completion` last. A stream that is
        cut raises; it never just ends.

        Closing the iterator ends the exchange.
        """
        ...


class KnowsModels(Protocol):
    """What a `LanguageModel` may offer besides, each method by itself: knowledge of single
    models."""

    def lacks(self, model: str) -> frozenset[str]:
        """Parts of the protocol that the model's server was found not to support, such as `tools`
        or `json_schema`."""
        ...

    def reasons(self, model: str) -> bool:
        """Whether its reasoning counts as output, so that an answer needs more room."""
        ...

    def opens_reasoning(self, model: str) -> bool:
        """Whether its answers begin with reasoning that has a closing tag but no opening one."""
        ...


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One try of an exchange with a language model or an embedder, whatever came of it: for the
    ledger and for telemetry."""

    purpose: str
    """`deriver.representation`, `summary.short`, `summary.long`, `dialectic.answer`,
    `dream.deduction`, `dream.induction`, `dream.card_refresh`; of embedders `message_create`,
    `create_observations`, `vector_sync`, `search_messages`, `search_memory` …"""
    transport: str
    """Name of the provider."""
    model: str
    outcome: Literal["success", "error", "cancelled"]
    duration_ms: int
    embedding: bool = False
    workspace_key: int | None = None
    workspace: str | None = None
    """Its slug."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """Of `output_tokens`."""
    input_count: int = 1
    """Texts, of an embedder's call."""
    error_class: str | None = None
    finish_reason: str | None = None
    attempt: int = 1
    attempts: int = 1
    """Tries that there may be in all."""
    is_fallback: bool = False
    is_stream: bool = False
    has_tools: bool = False
    tool_call_count: int = 0
    max_output_tokens: int = 0
    run_id: str | None = None
    iteration: int | None = None
    request: CompletionRequest | None = field(default=None, repr=False)
    """What was said to a language model, for operators who want traces. Never logged."""
    answer: Completion | None = field(default=None, repr=False)
    """What it said, as `request`."""
