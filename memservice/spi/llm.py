"""The language-model seam: one exchange with a model, plain or streamed, and its record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from msgspec import Struct

Role = Literal["system", "user", "assistant", "tool"]


class Tool(Struct, frozen=True):
    """A function that the model may call. `parameters` is a JSON Schema with an object at its
    root."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolCall(Struct, frozen=True):
    id: str
    name: str
    arguments: dict[str, Any]
    carried: Any = None
    """Data that the provider needs again with this call, such as the signature of the reasoning
    before it. Only that provider can read it: pass the call on unchanged when you continue the
    conversation."""


class Turn(Struct, frozen=True):
    role: Role
    content: str
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    """For role `tool`: the id of the call whose result this is."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    model: str
    turns: Sequence[Turn]
    max_output_tokens: int
    tools: Sequence[Tool] = ()
    tool_choice: str | None = None
    """`auto`, `required` (or `any`), `none`, or the name of the tool that the model must call.
    None: the provider's default."""
    response_schema: dict[str, Any] | None = None
    """JSON Schema that the answer must fit. A provider without native support falls back to JSON
    mode, then to prompting. Together with `tools` only where
    `KnowsModels.combines_schema_with_tools` is true: then it applies to the answer that ends the
    calls."""
    temperature: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Further options of the model's configuration, by the names of `…MODEL_CONFIG__` in lower
    case: `top_p`, `top_k`, `frequency_penalty`, `presence_penalty`, `seed`, `thinking_effort`,
    `thinking_budget_tokens`, `structured_output_mode`, `stop_sequences`, `cache_policy`
    (a mapping). It contains only options that are set; a provider ignores those that its protocol
    does not have."""
    timeout: float | None = None
    """Seconds for the whole exchange; None: the provider's own bound."""
    start_timeout: float | None = None
    """Seconds until the first text of a stream that is not reasoning; None: as `timeout`. A
    provider may ignore it."""
    cache_key: str | None = None
    """The same for requests that begin alike, so that a provider can send them to the same cache.
    It contains no id. A provider may ignore it."""
    opens_reasoning: bool = False
    """Whether the answer is known to begin inside reasoning that has no opening tag."""
    reasoning_headroom: int = 0
    """Tokens for reasoning on top of `max_output_tokens`. A provider that counts reasoning as
    output adds them to its own bound."""
    is_wanted: Callable[[], bool] | None = field(default=None, compare=False, repr=False)
    """Whether the answer is still needed; None: always. A provider may call it from any thread and
    in any phase of the exchange, a few times a second, and end the exchange with a `ModelFailure`
    once it is false. A provider may ignore it."""


Fault = Literal["provider", "content"]
"""Where the cause of a failure lies. `provider`: the endpoint, its key, its quota or the network;
every other request to the same model fails too until that changes. `content`: this request or the
answer to it; other requests to the same model can succeed."""

CONTENT_STATUSES = frozenset({400, 413, 415, 422, 501})
"""HTTP statuses that mean that the request itself is wrong. All others are faults of the
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
        """The model that failed. The core sets it; providers do not."""


def _fault(status: int | None, retryable: bool) -> Fault:
    if status is None:
        return "provider" if retryable else "content"
    return "content" if status in CONTENT_STATUSES else "provider"


class Refusal(ModelFailure):
    """The model, or its provider, declines to answer this request. A retry does not help."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message, retryable=False, status=status, fault="content")


class MalformedAnswer(ModelFailure):
    """The model answered, even after a retry, but not in the requested form. The text does not
    quote the answer."""

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


class Completion(Struct, frozen=True):
    content: str
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None
    """`stop`, `length` (cut at `max_output_tokens`), `tool_calls`, or the provider's own word for
    something else."""
    input_tokens: int = 0
    """All input, cached or not. 0 if the provider does not count."""
    output_tokens: int = 0
    """All output, including reasoning."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """The part of `output_tokens` that is reasoning; 0 if the provider does not count it."""


class LanguageModel(Protocol):
    """Safe to call from several threads. Raises ModelFailure. The caller retries and falls back,
    because each try is recorded.

    `request.timeout` bounds the whole exchange, also for a server that sends a byte now and then,
    and an answer without end is cancelled. No error or log line has a key or text of messages.
    Options that the protocol does not have are left out, and the request is not changed.
    """

    def complete(self, request: CompletionRequest) -> Completion:
        """The answer: its text unchanged, its calls with parsed arguments, each with its own id.
        With `request.response_schema`, the text is the JSON alone, without a fence or a
        sentence around it. An answer that is cut, or is no JSON, is retryable; a page of HTML is
        not, since it means that the URL is wrong. `Retry-After` may be seconds or a date."""
        ...

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        """The pieces of the answer as they arrive, none of them empty, then the whole `Completion`.
        A stream that breaks off raises a retryable failure; it does not just end.

        Closing the iterator ends the exchange.
        """
        ...


class KnowsModels(Protocol):
    """Optional methods of a `LanguageModel`, each by itself: facts about single models."""

    def lacks(self, model: str) -> frozenset[str]:
        """Parts of the protocol that the model's server has turned out not to support, such as
        `tools` or `json_schema`."""
        ...

    def reasons(self, model: str) -> bool:
        """Whether its reasoning counts as output, so that an answer needs a larger limit."""
        ...

    def combines_schema_with_tools(self, model: str) -> bool:
        """Whether a request may have both tools and a schema: the model can call tools, and its
        answer fits the schema."""
        ...

    def opens_reasoning(self, model: str) -> bool:
        """Whether its answers begin with reasoning that has a closing tag but no opening one."""
        ...


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One try of an exchange with a language model or an embedder, successful or not: for the
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
    """Texts in a call of an embedder."""
    error_class: str | None = None
    finish_reason: str | None = None
    attempt: int = 1
    attempts: int = 1
    """Maximum number of tries."""
    is_fallback: bool = False
    is_stream: bool = False
    has_tools: bool = False
    tool_call_count: int = 0
    max_output_tokens: int = 0
    run_id: str | None = None
    iteration: int | None = None
    request: CompletionRequest | None = field(default=None, repr=False)
    """The request to a language model, for traces. Never logged."""
    answer: Completion | None = field(default=None, repr=False)
    """The answer of a language model, for traces. Never logged."""
