"""A language model over HTTP: the common part of all protocols."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain.answers.json_text import Unreadable, read
from memservice.domain.answers.reasoning_tags import ReasoningFilter, without_reasoning
from memservice.domain.ids import new_uid
from memservice.spi.llm import (
    Completion,
    CompletionRequest,
    ModelFailure,
    Refusal,
    ToolCall,
    ToolsUnsupported,
    Turn,
)
from memservice.spi.providers import Context
from memservice_http.client import Endpoint, ModelResponse
from memservice_http.families import OPENS_REASONING, REASONS
from memservice_http.features import TOOLS, FeatureNegotiation, OptionalFeature

T = TypeVar("T")

SCHEMA, OBJECT, PROMPT = "json_schema", "json_object", "prompt"
"""How a structured answer is requested, best first."""
TOOLS_FEATURE = OptionalFeature(
    TOOLS,
    (
        "tools",
        "tool",
        "tool use",
        "tool choice",
        "tool calling",
        "tool_choice",
        "function calling",
        "function_calling",
        "functions",
        "functiondeclarations",
        "function_declarations",
    ),
)

SCHEMA_WITH_TOOLS = "json_schema with tools"
SCHEMA_WITH_TOOLS_FEATURE = OptionalFeature(
    SCHEMA_WITH_TOOLS,
    (),
    pattern=r"(?=.*\b(?:tools?|function calling|functions?)\b)(?=.*(?:response[_ ]?format|"
    r"response[_ ]?mime[_ ]?type|json[_ ]?schema|structured output|output_config|output_format|"
    r"text\.format|grammar))",
)
"""Some models support both, but not in one request."""

_WRONG_SHAPE = (KeyError, TypeError, AttributeError, ValueError, IndexError)


class RequestBody(Struct):
    """The path and body of one request."""

    path: str
    body: dict[str, Any]
    query: dict[str, str] = field(default_factory=dict)
    used: Collection[str] = ()
    """Names of its parts that a server may not support."""


class StreamReader(ABC):
    """An answer as it arrives in pieces."""

    @abstractmethod
    def take(self, event: Any) -> list[str]:
        """One event. Returns the text that came with it, in pieces."""

    @abstractmethod
    def ended(self) -> Completion | None:
        """The whole answer after its end has arrived, else None. Raises Refusal."""


class HttpModel(ABC):
    """`LanguageModel` over one endpoint. Subclasses define the format of requests and
    answers."""

    parts: Sequence[OptionalFeature]

    def __init__(self, endpoint: Endpoint, context: Context) -> None:
        self.endpoint = endpoint
        self._features = FeatureNegotiation(
            endpoint.provider, self.parts, context.logger, context.clock
        )

    @abstractmethod
    def form(
        self, request: CompletionRequest, lacking: frozenset[str], *, stream: bool
    ) -> RequestBody:
        """The request without the parts that the server lacks."""

    @abstractmethod
    def read(self, answer: Any) -> Completion:
        """A whole answer. Raises Refusal; the caller handles its errors for an answer of another
        shape."""

    @abstractmethod
    def reading(self) -> StreamReader: ...

    def error_in(self, event: Any) -> Any:
        """The error in an event of a stream; None for an ordinary one."""
        return event.get("error") if isinstance(event, dict) else None

    def complete(self, request: CompletionRequest) -> Completion:
        with self._ask(request, stream=False) as exchange:
            answer = exchange.json()
        if error := self.error_in(answer):
            raise self.endpoint.broken(error)
        return tidy(self._shaped(lambda: self.read(answer)), request)

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        with self._ask(request, stream=True) as exchange:
            reading = self.reading()
            visible = ReasoningFilter(
                is_open=request.opens_reasoning or self.opens_reasoning(request.model)
            )
            has_begun = False
            for data in exchange.events():
                if data.strip() == b"[DONE]":
                    break
                event = exchange.parse(data)
                if error := self.error_in(event):
                    raise self.endpoint.broken(error)
                for piece in self._shaped(partial(reading.take, event)):
                    if not has_begun and visible.take(piece).strip():
                        has_begun = True
                        exchange.begun()
                    yield piece
            completion = self._shaped(reading.ended)
        if completion is None:
            raise ModelFailure(
                f"the response of {self.endpoint.provider} was cut off", retryable=True
            )
        yield tidy(completion, request)

    def lacks(self, model: str) -> frozenset[str]:
        """The parts of the protocol that the model's server does not support, as negotiated:
        `tools`, `json_schema` and the like."""
        return self._features.lacking(model)

    def combines_schema_with_tools(self, model: str) -> bool:
        """Only if the provider documents it: other servers of the same protocol constrain the
        whole answer, so that the model can no longer call a tool."""
        is_known_to_lack = self.lacks(model) & {SCHEMA, SCHEMA_WITH_TOOLS, TOOLS}
        return self.documents_schema_with_tools(model) and not is_known_to_lack

    def documents_schema_with_tools(self, model: str) -> bool:
        """Whether this provider documents that the model takes a schema and tools in one
        request."""
        return False

    def reasons(self, model: str) -> bool:
        """Whether reasoning of the model counts as output, by its name."""
        return REASONS.search(model) is not None

    def opens_reasoning(self, model: str) -> bool:
        """Whether an answer begins inside of reasoning without a tag, by the model's name."""
        return OPENS_REASONING.search(model) is not None

    def _ask(self, request: CompletionRequest, *, stream: bool) -> ModelResponse:
        def send(lacking: frozenset[str]) -> ModelResponse:
            if request.tools and TOOLS in lacking:
                raise ToolsUnsupported(
                    f"{self.endpoint.provider}: {request.model} does not accept tools"
                )
            form = self.form(request, lacking, stream=stream)
            return self.endpoint.ask(
                form.path,
                form.body,
                timeout=request.timeout,
                start_timeout=request.start_timeout if stream else None,
                query=form.query,
                is_wanted=request.is_wanted,
                stream=stream,
            )

        def used(lacking: frozenset[str]) -> Collection[str]:
            parts = {*self.form(request, lacking, stream=stream).used}
            if request.tools:
                parts |= {TOOLS, SCHEMA_WITH_TOOLS} if SCHEMA in parts else {TOOLS}
            return parts

        options = {name for name, value in request.options.items() if value is not None}
        if request.temperature is not None:
            options.add("temperature")
        return self._features.ask(request.model, send, used, options)

    def _shaped(self, reading: Callable[[], T]) -> T:
        """What `read` returns. Raises ModelFailure where the answer has not the protocol's
        shape."""
        try:
            return reading()
        except _WRONG_SHAPE as error:
            kind = type(error).__name__
        raise ModelFailure(
            f"the response of {self.endpoint.provider} does not follow its protocol ({kind})",
            retryable=True,
        )


def refused(provider: str, why: str = "") -> Refusal:
    return Refusal(f"{provider}: the model declines to answer" + (f" ({why})" if why else ""))


def arguments_of(provider: str, text: str, cut: bool) -> dict[str, Any]:
    """Arguments of a tool call, which a model wrote as JSON. Raises ModelFailure for any other
    text; `cut`: the answer was too long."""
    try:
        arguments = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return arguments
    if cut:
        raise ModelFailure(
            f"{provider}: the answer ended inside a tool call: allow more output tokens",
            retryable=False,
        )
    raise ModelFailure(
        f"{provider}: the model called a tool with arguments that are no JSON object",
        retryable=True,
        fault="content",
    )


def mode_of(
    request: CompletionRequest,
    lacking: Collection[str],
    modes: Sequence[str] = (SCHEMA, OBJECT, PROMPT),
) -> str | None:
    """The mode of a structured answer; None without a schema, and if tools exclude all modes. The
    search begins with the mode of the model's setting."""
    if request.response_schema is None:
        return None
    if request.tools:
        return None if {SCHEMA, SCHEMA_WITH_TOOLS} & set(lacking) else SCHEMA
    requested = request.options.get("structured_output_mode")
    tried = modes[modes.index(requested) :] if requested in modes else modes
    return next(mode for mode in tried if mode == PROMPT or mode not in lacking)


def turns_of(request: CompletionRequest, mode: str | None) -> list[Turn]:
    """The request's turns; with the schema in words at the end of the first system turn, if the
    protocol does not transmit it."""
    turns = list(request.turns)
    if mode not in (OBJECT, PROMPT):
        return turns
    schema = json.dumps(request.response_schema, ensure_ascii=False)
    words = (
        "Answer with one JSON value and nothing else, without Markdown. It has to fit this "
        f"JSON Schema:\n{schema}"
    )
    for index, turn in enumerate(turns):
        if turn.role == "system":
            turns[index] = replace(turn, content=f"{turn.content}\n\n{words}")
            return turns
    return [Turn("system", words), *turns]


def tidy(completion: Completion, request: CompletionRequest) -> Completion:
    """Only the JSON of a structured answer, without the words, reasoning or fence around it. An
    answer without a whole valid document is returned unchanged."""
    if request.response_schema is None or completion.tool_calls:
        return completion
    content, _ = without_reasoning(completion.content)
    try:
        document = read(content, request.response_schema)
    except Unreadable:
        return completion
    if not document.is_whole:
        return completion
    return replace(completion, content=json.dumps(document.value, ensure_ascii=False))


def system_and_rest(turns: Sequence[Turn]) -> tuple[list[str], list[Turn]]:
    """For protocols with a separate system text. A system turn later in the conversation becomes a
    turn of the user."""
    head: list[str] = []
    rest: list[Turn] = []
    for turn in turns:
        if turn.role == "system" and not rest:
            head.append(turn.content)
        else:
            rest.append(replace(turn, role="user") if turn.role == "system" else turn)
    return head, rest


def call(id: str | None, name: str, arguments: dict[str, Any], carried: Any = None) -> ToolCall:
    """A tool call; one without an id, as some servers send them, gets one."""
    return ToolCall(id or f"call_{new_uid()}", name, arguments, carried)


def whole(number: object) -> int:
    """A count of tokens; 0 if it is missing."""
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0
