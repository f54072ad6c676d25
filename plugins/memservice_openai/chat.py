"""Chat Completions, as OpenAI defined them and Ollama, vLLM, LM Studio, OpenRouter, Azure and
others speak them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memservice.spi.llm import Completion, CompletionRequest, ToolCall, Turn
from memservice_http.chat import (
    OBJECT,
    SCHEMA,
    SCHEMA_WITH_TOOLS_FEATURE,
    TOOLS_FEATURE,
    RequestBody,
    StreamReader,
    arguments_of,
    call,
    mode_of,
    refused,
    turns_of,
    whole,
)
from memservice_http.features import OptionalFeature
from memservice_openai.options import (
    SAME_NAME,
    OpenAiProtocol,
    effort_of,
    is_strict,
    sent,
    tool_choice,
)

PATH = "/chat/completions"
EFFORT_WITH_TOOLS = "reasoning_effort with tools"
"""Newer families accept tools on this route only together with the effort `none`, even if none was
set."""

_FORMAT = (
    "response_format",
    "json_schema",
    "schema",
    "structured output",
    "structured outputs",
    "guided_json",
)
_FINISHED = {"function_call": "tool_calls", "eos": "stop", "end_turn": "stop"}


class OpenAiModel(OpenAiProtocol):
    parts = (
        OptionalFeature(
            EFFORT_WITH_TOOLS,
            (),
            options=("thinking_effort",),
            pattern=r"\btools?\b.{0,120}\breasoning[_. ]effort|"
            r"\breasoning[_. ]effort\b.{0,120}\btools?\b",
        ),
        SCHEMA_WITH_TOOLS_FEATURE,
        OptionalFeature(SCHEMA, _FORMAT, any_complaint=True, options=("structured_output_mode",)),
        OptionalFeature(
            OBJECT, ("response_format", "json_object", "json mode"), any_complaint=True
        ),
        OptionalFeature("max_tokens", ("max_tokens",)),
        OptionalFeature("max_completion_tokens", ("max_completion_tokens",)),
        OptionalFeature("stream_options", ("stream_options", "include_usage")),
        OptionalFeature(
            "reasoning_effort",
            ("reasoning_effort", "reasoning.effort"),
            any_complaint=True,
            options=("thinking_effort",),
        ),
        OptionalFeature("prompt_cache_retention", ("prompt_cache_retention",)),
        OptionalFeature("prompt_cache_key", ("prompt_cache_key",)),
        OptionalFeature("tool_choice", ("tool_choice",)),
        OptionalFeature(
            "stop", ("'stop'", "`stop`", '\\"stop\\"', "stop"), options=("stop_sequences",)
        ),
        *(OptionalFeature(name, (name,), options=(name,)) for name in SAME_NAME),
        TOOLS_FEATURE,
    )

    def form(
        self, request: CompletionRequest, lacking: frozenset[str], *, stream: bool
    ) -> RequestBody:
        mode = mode_of(request, lacking)
        optional = sent(self._options(request, lacking, stream=stream), lacking)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [_message(turn) for turn in turns_of(request, mode)],
            **optional,
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
        if mode == SCHEMA and request.response_schema is not None:
            schema = request.response_schema
            named = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif mode == OBJECT:
            body["response_format"] = {"type": "json_object"}
        if stream:
            body["stream"] = True
        negotiated = {EFFORT_WITH_TOOLS} if request.tools else set()
        return RequestBody(PATH, body, used={*optional, mode or "", *negotiated} - lacking)

    def _options(
        self, request: CompletionRequest, lacking: frozenset[str], *, stream: bool
    ) -> dict[str, Any]:
        """The fields that a server may lack, by name."""
        # `max_tokens` is the older name, which most other servers know; OpenAI has renamed it.
        names = (
            ("max_completion_tokens", "max_tokens")
            if self.is_official
            else ("max_tokens", "max_completion_tokens")
        )
        limit = next((name for name in names if name not in lacking), names[0])
        options = self.shared_options(request) | {
            limit: request.max_output_tokens + request.reasoning_headroom,
            "reasoning_effort": effort_of(request),
        }
        if request.tools:
            options["tool_choice"] = tool_choice(request.tool_choice, _function_choice)
            if EFFORT_WITH_TOOLS in lacking:
                options["reasoning_effort"] = "none"
        if stream:
            options["stream_options"] = {"include_usage": True}
        return options

    def read(self, answer: Any) -> Completion:
        choice = answer["choices"][0]
        message = choice["message"]
        if message.get("refusal"):
            raise refused(self.endpoint.provider)
        calls = [
            (item.get("id"), item["function"]["name"], item["function"].get("arguments"))
            for item in message.get("tool_calls") or ()
        ]
        return self.completion(
            _plain(message.get("content")), calls, choice.get("finish_reason"), answer.get("usage")
        )

    def reading(self) -> StreamReader:
        return _Reading(self)

    def completion(
        self,
        text: str,
        calls: Sequence[tuple[str | None, str, Any]],
        reason: str | None,
        usage: Any,
    ) -> Completion:
        if reason == "content_filter" and not calls:
            raise refused(self.endpoint.provider, "content_filter")
        tool_calls = [self._call(id, name, arguments, reason) for id, name, arguments in calls]
        usage = usage or {}
        return Completion(
            content=text,
            tool_calls=tuple(tool_calls),
            # Some servers say `stop` when they call tools.
            finish_reason="tool_calls"
            if tool_calls and reason == "stop"
            else _FINISHED.get(reason or "", reason),
            input_tokens=whole(usage.get("prompt_tokens")),
            output_tokens=whole(usage.get("completion_tokens")),
            cache_read_tokens=whole(
                (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            ),
            cache_write_tokens=whole(
                (usage.get("prompt_tokens_details") or {}).get("cache_write_tokens")
            ),
            reasoning_tokens=whole(
                (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
            ),
        )

    def _call(self, id: str | None, name: str, arguments: Any, reason: str | None) -> ToolCall:
        if isinstance(arguments, dict):
            return call(id, name, arguments)
        return call(
            id, name, arguments_of(self.endpoint.provider, arguments or "", reason == "length")
        )


class _Reading(StreamReader):
    def __init__(self, model: OpenAiModel) -> None:
        self._model = model
        self._text: list[str] = []
        self._calls: list[tuple[int, str | None, str, list[str]]] = []
        """Index, id, name, and the arguments so far."""
        self._refusal = False
        self._reason: str | None = None
        self._usage: Any = None

    def take(self, event: Any) -> list[str]:
        self._usage = event.get("usage") or self._usage
        pieces = []
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            self._reason = choice.get("finish_reason") or self._reason
            self._refusal = self._refusal or bool(delta.get("refusal"))
            for part in delta.get("tool_calls") or ():
                self._take_call(part)
            if text := _plain(delta.get("content")):
                pieces.append(text)
        self._text += pieces
        return pieces

    def _take_call(self, part: Any) -> None:
        id, function, index = part.get("id"), part.get("function") or {}, part.get("index")
        arguments = function.get("arguments") or ""
        started = next(
            (c for c in reversed(self._calls) if c[0] == index or (index is None and c[1] == id)),
            None,
        )
        # Servers that send each call whole may give all of them the same index, and another id.
        if started is None or (id and started[1] and id != started[1] and function.get("name")):
            started = (len(self._calls) if index is None else index, id, function["name"], [])
            self._calls.append(started)
        started[3].append(json.dumps(arguments) if isinstance(arguments, dict) else arguments)

    def ended(self) -> Completion | None:
        if self._reason is None:
            return None
        if self._refusal:
            raise refused(self._model.endpoint.provider)
        calls = [(id, name, "".join(arguments)) for _, id, name, arguments in self._calls]
        return self._model.completion("".join(self._text), calls, self._reason, self._usage)


def _function_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _message(turn: Turn) -> dict[str, Any]:
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.tool_call_id, "content": turn.content}
    message: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.tool_calls:
        message["content"] = turn.content or None
        message["tool_calls"] = [
            {
                "id": c.id,
                "type": "function",
                "function": {
                    "name": c.name,
                    "arguments": json.dumps(c.arguments, ensure_ascii=False),
                },
            }
            for c in turn.tool_calls
        ]
    return message


def _plain(content: Any) -> str:
    """Text, which a few servers send in parts."""
    if isinstance(content, list):
        return "".join(
            part.get("text") or ""
            for part in content
            if part.get("type") in (None, "text", "output_text")
        )
    return content or ""
