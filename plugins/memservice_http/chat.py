"""A language model over HTTP: everything that is alike in the three protocols."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from memservice.domain.ids import new_uid
from memservice.spi.llm import Completion, CompletionRequest, ModelFailure, Refusal, ToolCall, Turn
from memservice.spi.providers import Context
from memservice_http.client import Endpoint, ModelResponse
from memservice_http.features import FeatureNegotiation, OptionalFeature

T = TypeVar("T")

SCHEMA, OBJECT, PROMPT = "json_schema", "json_object", "prompt"
"""How a structured answer is asked for, best first."""

_FENCED = re.compile(r"```(?:json)?[^\S\n]*+\n(.*?)```", re.S)
_WRONG_SHAPE = (KeyError, TypeError, AttributeError, ValueError, IndexError)


@dataclass(slots=True)
class RequestBody:
    """One request as it is sent."""

    path: str
    body: dict[str, Any]
    query: dict[str, str] = field(default_factory=dict)
    used: Collection[str] = ()
    """Names of the parts that it has and that a server may not know."""


class StreamReader(ABC):
    """An answer as it arrives in pieces."""

    @abstractmethod
    def take(self, event: Any) -> list[str]:
        """One event. Returns the text that came with it, in pieces."""

    @abstractmethod
    def ended(self) -> Completion | None:
        """The whole answer once its end was seen, else None. Raises Refusal."""


class HttpModel(ABC):
    """`LanguageModel` over one endpoint. A protocol says what its requests and its answers look
    like."""

    parts: Sequence[OptionalFeature]

    def __init__(self, endpoint: Endpoint, context: Context) -> None:
        self.endpoint = endpoint
        self._learned = FeatureNegotiation(endpoint.provider, self.parts, context.logger)

    @abstractmethod
    def form(
        self, request: CompletionRequest, lacking: frozenset[str], *, stream: bool
    ) -> RequestBody:
        """The request without the parts that the server lacks."""

    @abstractmethod
    def read(self, answer: Any) -> Completion:
        """A whole answer. Raises Refusal; what it raises for an answer of another shape is taken
        care of."""

    @abstractmethod
    def reading(self) -> StreamReader: ...

    def error_in(self, event: Any) -> Any:
        """The error that an event of a stream tells of; None for an ordinary one."""
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
            for data in exchange.events():
                if data.strip() == b"[DONE]":
                    break
                event = exchange.parse(data)
                if error := self.error_in(event):
                    raise self.endpoint.broken(error)
                for piece in self._shaped(partial(reading.take, event)):
                    exchange.begun()
                    yield piece
            done = self._shaped(reading.ended)
        if done is None:
            raise ModelFailure(
                f"{self.endpoint.provider} was cut off in its answer", retryable=True
            )
        yield tidy(done, request)

    def _ask(self, request: CompletionRequest, *, stream: bool) -> ModelResponse:
        def send(lacking: frozenset[str]) -> ModelResponse:
            form = self.form(request, lacking, stream=stream)
            return self.endpoint.ask(
                form.path,
                form.body,
                timeout=request.timeout,
                start_timeout=request.start_timeout if stream else None,
                query=form.query,
                stream=stream,
            )

        return self._learned.ask(
            request.model, send, lambda lacking: self.form(request, lacking, stream=stream).used
        )

    def _shaped(self, read: Callable[[], T]) -> T:
        """What `read` returns. Raises ModelFailure where the answer has not the protocol's
        shape."""
        try:
            return read()
        except _WRONG_SHAPE as error:
            kind = type(error).__name__
        raise ModelFailure(
            f"{self.endpoint.provider} answered in another shape than its protocol has ({kind})",
            retryable=True,
        )


def refused(who: str, why: str = "") -> Refusal:
    return Refusal(f"{who}: the model declines to answer" + (f" ({why})" if why else ""))


def arguments_of(who: str, text: str, cut: bool) -> dict[str, Any]:
    """Arguments of a tool call, which a model wrote as JSON. Raises ModelFailure for what is none;
    `cut`: the answer was too long."""
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    if cut:
        raise ModelFailure(
            f"{who}: the answer ended inside a tool call: allow more output tokens", retryable=False
        )
    raise ModelFailure(
        f"{who}: the model called a tool with arguments that are no JSON object",
        retryable=True,
        fault="content",
    )


def mode_of(
    request: CompletionRequest,
    lacking: Collection[str],
    modes: Sequence[str] = (SCHEMA, OBJECT, PROMPT),
) -> str | None:
    """How a structured answer is asked for; None where none is wanted. The model's setting says
    where to begin."""
    if request.response_schema is None:
        return None
    wanted = request.options.get("structured_output_mode")
    tried = modes[modes.index(wanted) :] if wanted in modes else modes
    return next(mode for mode in tried if mode == PROMPT or mode not in lacking)


def turns_of(request: CompletionRequest, mode: str | None) -> list[Turn]:
    """The request's turns; with the wanted schema in words at the end of the first system turn,
    where the protocol does not carry it."""
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


def tidy(done: Completion, request: CompletionRequest) -> Completion:
    """Of a structured answer only the JSON, where a model put words or a fence around it. What
    holds none is left as it is."""
    if request.response_schema is None or done.tool_calls:
        return done
    text = done.content.strip()
    fence = _FENCED.search(text)
    for candidate in (text, *([fence[1].strip()] if fence else []), *_bracketed(text)):
        try:
            json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return replace(done, content=candidate)
    return done


def _bracketed(text: str) -> Iterator[str]:
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            yield text[start : end + 1]


def system_and_rest(turns: Sequence[Turn]) -> tuple[list[str], list[Turn]]:
    """For protocols that keep what the system says apart. A system turn later in the conversation
    becomes the user's."""
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
    """A count of tokens; 0 where there is none."""
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0
