"""The Responses API: requests and whole answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memservice.spi.llm import Completion, CompletionRequest, ModelFailure, ToolCall, Turn
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
from memservice_openai.responses_items import items_of, parts_of, text_of
from memservice_openai.responses_stream import ResponsesReader

PATH = "/responses"
MIN_OUTPUT_TOKENS = 16
"""The API rejects a smaller limit."""
ENCRYPTED_REASONING = "reasoning.encrypted_content"
"""Without it, reasoning stays with a stored response, and nothing is stored here. Models that do
not reason reject it."""
CUT = "max_output_tokens"

_REASONING_FIELDS = ("type", "id", "summary", "encrypted_content")
"""Of a reasoning item, what the API accepts again."""


class ResponsesModel(OpenAiProtocol):
    parts = (
        SCHEMA_WITH_TOOLS_FEATURE,
        OptionalFeature(
            SCHEMA,
            ("text.format", "json_schema", "schema", "structured outputs"),
            any_complaint=True,
            options=("structured_output_mode",),
        ),
        OptionalFeature(OBJECT, ("text.format", "json_object", "json mode"), any_complaint=True),
        OptionalFeature(
            ENCRYPTED_REASONING,
            ("include", "encrypted content", "encrypted_content", ENCRYPTED_REASONING),
            any_complaint=True,
        ),
        OptionalFeature(
            "reasoning",
            ("reasoning", "reasoning.effort", "effort"),
            any_complaint=True,
            options=("thinking_effort",),
        ),
        OptionalFeature("store", ("store",)),
        OptionalFeature("prompt_cache_retention", ("prompt_cache_retention",)),
        OptionalFeature("prompt_cache_key", ("prompt_cache_key",)),
        OptionalFeature("tool_choice", ("tool_choice",)),
        OptionalFeature("stop", ("stop",), options=("stop_sequences",)),
        *(OptionalFeature(name, (name,), options=(name,)) for name in SAME_NAME),
        TOOLS_FEATURE,
    )

    def form(
        self, request: CompletionRequest, lacking: frozenset[str], *, stream: bool
    ) -> RequestBody:
        mode = mode_of(request, lacking)
        optional = sent(self._options(request), lacking)
        used = {*optional, mode or ""}
        instructions, turns = _instructions(turns_of(request, mode), mode)
        body: dict[str, Any] = {
            "model": request.model,
            "input": items_of(turns, has_reasoning=ENCRYPTED_REASONING not in lacking),
            "max_output_tokens": max(
                MIN_OUTPUT_TOKENS, request.max_output_tokens + request.reasoning_headroom
            ),
            **optional,
        }
        if instructions:
            body["instructions"] = instructions
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    # Here the default is a strict schema, which forbids optional parameters.
                    "strict": False,
                }
                for tool in request.tools
            ]
            if ENCRYPTED_REASONING not in lacking:
                body["include"] = [ENCRYPTED_REASONING]
                used.add(ENCRYPTED_REASONING)
        if mode == SCHEMA and request.response_schema is not None:
            schema = request.response_schema
            body["text"] = {
                "format": {
                    "type": "json_schema",
                    "name": "answer",
                    "schema": schema,
                    "strict": is_strict(schema),
                }
            }
        elif mode == OBJECT:
            body["text"] = {"format": {"type": "json_object"}}
        if stream:
            body["stream"] = True
        return RequestBody(PATH, body, used=used)

    def _options(self, request: CompletionRequest) -> dict[str, Any]:
        """The fields that a server may lack, by name."""
        # The API has no field `stop`; other servers do. If one is set and rejected, the log says
        # so.
        effort = effort_of(request)
        return self.shared_options(request) | {
            "reasoning": {"effort": effort} if effort else None,
            "store": False,
            "tool_choice": tool_choice(request.tool_choice, _function_choice)
            if request.tools
            else None,
        }

    def read(self, answer: Any) -> Completion:
        return self.completion(answer, answer["output"], text_of(answer["output"]))

    def reading(self) -> StreamReader:
        return ResponsesReader(self.completion)

    def error_in(self, event: Any) -> Any:
        """Errors arrive as an event `error`, with the fields at its root, or inside a failed
        response."""
        if not isinstance(event, dict):
            return None
        if event.get("type") == "error":
            return event.get("error") or {name: event.get(name) for name in ("code", "param")}
        response = event.get("response") if event.get("type") == "response.failed" else event
        if not isinstance(response, dict):
            return {"code": "server_error"}
        failed = response.get("status") in ("failed", "cancelled")
        return response.get("error") or ({"code": "server_error"} if failed else None)

    def completion(self, response: Any, items: Sequence[Any], text: str) -> Completion:
        """`response` without its output, which is `items` and their `text`. Raises Refusal, and
        ModelFailure for a response that has not ended."""
        provider = self.endpoint.provider
        status = response.get("status") or "completed"
        if status not in ("completed", "incomplete"):
            raise ModelFailure(f"{provider} answered before the response ended", retryable=True)
        if any(part["type"] == "refusal" for part in parts_of(items)):
            raise refused(provider)
        reason = (response.get("incomplete_details") or {}).get("reason")
        calls = self._calls(items, is_cut=reason == CUT)
        if reason == "content_filter" and not calls:
            raise refused(provider, reason)
        if status == "completed":
            finish = "tool_calls" if calls else "stop"
        else:
            finish = "length" if reason in (CUT, None) else reason
        usage = response.get("usage") or {}
        return Completion(
            content=text,
            tool_calls=tuple(calls),
            finish_reason=finish,
            input_tokens=whole(usage.get("input_tokens")),
            output_tokens=whole(usage.get("output_tokens")),
            cache_read_tokens=whole((usage.get("input_tokens_details") or {}).get("cached_tokens")),
            reasoning_tokens=whole(
                (usage.get("output_tokens_details") or {}).get("reasoning_tokens")
            ),
        )

    def _calls(self, items: Sequence[Any], *, is_cut: bool) -> list[ToolCall]:
        """The calls, each with the reasoning that led to it: it has to be sent again with the
        result."""
        calls: list[ToolCall] = []
        reasoning: list[dict[str, Any]] = []
        for item in items:
            if item["type"] == "reasoning" and item.get("encrypted_content"):
                reasoning.append(
                    {name: item[name] for name in _REASONING_FIELDS if item.get(name) is not None}
                )
            elif item["type"] == "function_call":
                arguments = arguments_of(
                    self.endpoint.provider, item.get("arguments") or "", is_cut
                )
                carried = {"reasoning": reasoning} if reasoning else None
                calls.append(call(item.get("call_id"), item["name"], arguments, carried))
                reasoning = []
        return calls


def _function_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


def _instructions(turns: Sequence[Turn], mode: str | None) -> tuple[str, Sequence[Turn]]:
    """The first system turns, and the turns behind them. In JSON mode they stay in the input: the
    API requires the word JSON there."""
    count = next((n for n, turn in enumerate(turns) if turn.role != "system"), 0)
    if mode == OBJECT:
        count = 0
    return "\n\n".join(turn.content for turn in turns[:count] if turn.content), turns[count:]
