"""A language model of which a test decides what it answers, offered the way a plugin offers one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from logging import getLogger
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memservice.hookspecs import hookimpl
from memservice.plugins import load_plugins
from memservice.reasoning.models import Models
from memservice.settings import load_settings
from memservice.spi.llm import Completion, CompletionRequest, ModelCall, ToolCall
from memservice.spi.providers import Context, LanguageModelProvider

NOW = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)

Reply = Completion | str | Mapping[str, Any] | Exception
"""A text, a document that is written as JSON, a whole completion, or what is raised."""


class ScriptedModel:
    """Gives its `replies` one after the other, then whatever `say` answers. A stream gives a reply
    word by word.

    A reply in a list of replies may be a list itself: a stream then gives its texts, and raises or
    ends with the last one.
    """

    def __init__(self, *replies: Reply, name: str = "scripted") -> None:
        self.name = self.__name__ = name
        self.replies: list[Reply | list[Reply]] = list(replies)
        self.say: Callable[[CompletionRequest], Reply] = lambda request: "Yes."
        self.requests: list[CompletionRequest] = []
        self.opened: list[Mapping[str, Any]] = []
        self.contents: Callable[[], Mapping[str, str]] | None = None
        """Contents of conclusions by uid. If it is set, uids in calls are written as the short ids
        that the model was shown, which a test need not know."""
        self.combines = False
        """Whether it takes a schema and tools in one request."""
        self.closed = 0
        """Streams that were left before their end."""

    def complete(self, request: CompletionRequest) -> Completion:
        self.requests.append(request)
        return _completion(self._next(request))

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        self.requests.append(request)
        reply = self._next(request)
        parts = reply if isinstance(reply, list) else None
        try:
            if parts is not None:
                for part in parts:
                    if isinstance(part, Exception):
                        raise part
                    yield part if isinstance(part, str) else _completion(part)
                return
            completion = _completion(reply)
            yield from (piece for piece in completion.content.split(" ") if piece)
            yield completion
        except GeneratorExit:
            self.closed += 1
            raise

    def combines_schema_with_tools(self, model: str) -> bool:
        return self.combines

    def _next(self, request: CompletionRequest) -> Any:
        reply = self.replies.pop(0) if self.replies else self.say(request)
        if self.contents is None or not isinstance(reply, Completion):
            return reply
        ids = {uid: short_id(self.requests, content) for uid, content in self.contents().items()}
        calls = [
            replace(call, arguments=_translated(call.arguments, ids)) for call in reply.tool_calls
        ]
        return replace(reply, tool_calls=calls)

    def _open(self, settings: Mapping[str, Any], context: Context) -> ScriptedModel:
        self.opened.append(settings)
        return self

    @hookimpl
    def memservice_llms(self) -> Iterable[LanguageModelProvider]:
        yield LanguageModelProvider(name=self.name, open=self._open)

    @property
    def last(self) -> CompletionRequest:
        return self.requests[-1]

    def prompts(self) -> list[str]:
        """What each request said last."""
        return [request.turns[-1].content for request in self.requests]


def short_id(requests: Sequence[CompletionRequest], content: str) -> str:
    """The id under which the last request that contains it shows a conclusion."""
    line = re.compile(rf"\[(c\d+)\] [^\n]*?: {re.escape(content)}")
    for request in reversed(requests):
        for turn in request.turns:
            if match := line.search(turn.content):
                return match[1]
    return "c0"


def _translated(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _translated(part, ids) for name, part in value.items()}
    if isinstance(value, list):
        return [_translated(part, ids) for part in value]
    return ids.get(value, value) if isinstance(value, str) else value


def _completion(reply: Reply) -> Completion:
    if isinstance(reply, Exception):
        raise reply
    if isinstance(reply, Completion):
        return reply
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    return Completion(
        text,
        finish_reason="stop",
        input_tokens=100,
        output_tokens=10,
        cache_read_tokens=1,
        cache_write_tokens=2,
    )


class ModelHarness:
    """The models of a process, including scripted ones, with the pauses and the reported calls."""

    def __init__(self, *plugins: ScriptedModel, **settings: str) -> None:
        self.calls: list[ModelCall] = []
        self.pauses: list[float] = []
        loaded = load_settings(environ=settings, cwd=Path(__file__).parent)
        context = Context(lambda: NOW, getLogger("test"), called=self.calls.append)
        self.models = Models(
            loaded, load_plugins(loaded, extra=plugins), context, sleep=self.pauses.append
        )


SCRIPTED = {
    f"{harness}_MODEL_CONFIG__{setting}": value
    for harness in (
        *("DERIVER", "SUMMARY"),
        *("DREAM_DEDUCTION", "DREAM_INDUCTION"),
        *(f"DIALECTIC_LEVELS__{level}_" for level in ("MINIMAL", "LOW", "MEDIUM", "HIGH", "MAX")),
    )
    for setting, value in (("TRANSPORT", "scripted"), ("MODEL", "scripted-1"))
}
"""Settings by which every task asks the scripted model."""


def calling(*calls: tuple[str, Mapping[str, Any]], beside: str = "") -> Completion:
    """A reply that calls tools, maybe with a text beside the calls."""
    tool_calls = [
        ToolCall(f"call-{number}", name, dict(arguments))
        for number, (name, arguments) in enumerate(calls)
    ]
    return Completion(beside, tuple(tool_calls), "tool_calls", input_tokens=50, output_tokens=5)
