"""`generateContent` and `streamGenerateContent`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from memservice.spi.llm import Completion, CompletionRequest, ModelFailure, ToolCall, Turn
from memservice_http.chat import (
    OBJECT,
    SCHEMA,
    SCHEMA_WITH_TOOLS_FEATURE,
    TOOLS_FEATURE,
    HttpModel,
    RequestBody,
    StreamReader,
    call,
    mode_of,
    refused,
    system_and_rest,
    turns_of,
    whole,
)
from memservice_http.families import TAKES_SCHEMA_WITH_TOOLS
from memservice_http.features import OptionalFeature

_REFUSING = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "OTHER",
    }
)
_STUMBLED = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
    }
)
"""The model lost its way; it may find it at the next try."""
_MIME_TYPE = ("responsemimetype", "response_mime_type", "response mime type", "json mode")
_FINISHED = {"STOP": "stop", "MAX_TOKENS": "length"}
_LEVELS = {
    "none": "minimal",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
_UNSIGNED = "skip_thought_signature_validator"
"""What the API takes in place of a signature for calls that it did not sign, such as those of
another model."""
_KEPT = (
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "properties",
    "required",
    "minItems",
    "maxItems",
    "anyOf",
)
"""Words of JSON Schema that the older form of a tool's parameters knows."""


class GeminiModel(HttpModel):
    parts = (
        SCHEMA_WITH_TOOLS_FEATURE,
        OptionalFeature(
            SCHEMA,
            (
                "responsejsonschema",
                "response_json_schema",
                "response_schema",
                "schema",
                *_MIME_TYPE,
            ),
            any_complaint=True,
        ),
        OptionalFeature(OBJECT, _MIME_TYPE, any_complaint=True),
        OptionalFeature(
            "parametersJsonSchema",
            ("parametersjsonschema", "parameters_json_schema"),
            any_complaint=True,
        ),
        OptionalFeature(
            "thinkingConfig",
            ("thinkingconfig", "thinking_config", "thinkinglevel", "thinking_level", "thinking"),
            any_complaint=True,
            options=("thinking_effort", "thinking_budget_tokens"),
        ),
        OptionalFeature(
            "penalties",
            (
                "penalty",
                "frequencypenalty",
                "presencepenalty",
                "frequency_penalty",
                "presence_penalty",
            ),
            options=("frequency_penalty", "presence_penalty"),
        ),
        OptionalFeature("seed", ("seed",), options=("seed",)),
        OptionalFeature("topK", ("topk", "top_k"), options=("top_k",)),
        TOOLS_FEATURE,
    )

    def form(
        self, request: CompletionRequest, lacking: frozenset[str], *, stream: bool
    ) -> RequestBody:
        mode = mode_of(request, lacking)
        system, turns = system_and_rest(turns_of(request, mode))
        config, used = _generation(request, lacking, mode)
        body: dict[str, Any] = {"contents": _contents(turns), "generationConfig": config}
        if system:
            body["systemInstruction"] = {"parts": [{"text": text} for text in system if text]}
        if request.tools:
            used.add("parametersJsonSchema")
            older = "parametersJsonSchema" in lacking
            body["tools"] = [
                {
                    "functionDeclarations": [
                        _declared(tool.name, tool.description, tool.parameters, older)
                        for tool in request.tools
                    ]
                }
            ]
            if request.tool_choice is not None:
                body["toolConfig"] = {"functionCallingConfig": _choice(request.tool_choice)}
        model = quote(request.model.removeprefix("models/"), safe="")
        action = "streamGenerateContent" if stream else "generateContent"
        return RequestBody(
            f"/models/{model}:{action}", body, {"alt": "sse"} if stream else {}, used - lacking
        )

    def documents_schema_with_tools(self, model: str) -> bool:
        return self._is_official and TAKES_SCHEMA_WITH_TOOLS.search(model) is not None

    @property
    def _is_official(self) -> bool:
        return self.endpoint.url("").host.endswith(".googleapis.com")

    def read(self, answer: Any) -> Completion:
        reading = self.reading()
        reading.take(answer)
        completion = reading.ended()
        if completion is None:
            raise ModelFailure(
                f"the response of {self.endpoint.provider} has no answer", retryable=True
            )
        return completion

    def reading(self) -> _Reading:
        return _Reading(self.endpoint.provider)


class _Reading(StreamReader):
    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._text: list[str] = []
        self._calls: list[ToolCall] = []
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self._signature: str | None = None

    def take(self, event: Any) -> list[str]:
        self._usage |= event.get("usageMetadata") or {}
        blocked = (event.get("promptFeedback") or {}).get("blockReason")
        if blocked and not event.get("candidates"):
            raise refused(self._provider, str(blocked))
        pieces = []
        for candidate in (event.get("candidates") or ())[:1]:
            self._reason = candidate.get("finishReason") or self._reason
            for part in (candidate.get("content") or {}).get("parts") or ():
                pieces += self._part(part)
        self._text += pieces
        return pieces

    def _part(self, part: Any) -> list[str]:
        if "functionCall" in part:
            function_call = part["functionCall"]
            arguments = function_call.get("args") or {}
            if not isinstance(arguments, dict):
                raise ModelFailure(
                    f"{self._provider}: the model called a tool with arguments that are no JSON "
                    "object",
                    retryable=True,
                    fault="content",
                )
            self._calls.append(
                call(
                    function_call.get("id"),
                    function_call["name"],
                    arguments,
                    part.get("thoughtSignature"),
                )
            )
            return []
        return [part["text"]] if part.get("text") and not part.get("thought") else []

    def ended(self) -> Completion | None:
        reason = self._reason
        if reason is None:
            return None
        if reason in _STUMBLED:
            raise ModelFailure(
                f"{self._provider}: the model returned no content ({reason})",
                retryable=True,
                fault="content",
            )
        if reason in _REFUSING and not self._text and not self._calls:
            raise refused(self._provider, reason)
        usage = self._usage
        return Completion(
            content="".join(self._text),
            tool_calls=tuple(self._calls),
            finish_reason="tool_calls"
            if self._calls and reason == "STOP"
            else _FINISHED.get(reason, reason.lower()),
            input_tokens=whole(usage.get("promptTokenCount"))
            + whole(usage.get("toolUsePromptTokenCount")),
            # What is thought is paid for as output.
            output_tokens=whole(usage.get("candidatesTokenCount"))
            + whole(usage.get("thoughtsTokenCount")),
            cache_read_tokens=whole(usage.get("cachedContentTokenCount")),
            reasoning_tokens=whole(usage.get("thoughtsTokenCount")),
        )


def _generation(
    request: CompletionRequest, lacking: frozenset[str], mode: str | None
) -> tuple[dict[str, Any], set[str]]:
    """How to generate, and which parts of it a server may not know."""
    options = request.options
    optional: dict[str, tuple[str, Any]] = {
        "temperature": ("", request.temperature),
        "topP": ("", options.get("top_p")),
        "topK": ("topK", options.get("top_k")),
        "seed": ("seed", options.get("seed")),
        "frequencyPenalty": ("penalties", options.get("frequency_penalty")),
        "presencePenalty": ("penalties", options.get("presence_penalty")),
        "stopSequences": ("", list(options.get("stop_sequences") or ()) or None),
        "thinkingConfig": ("thinkingConfig", _thinking(request)),
        "maxOutputTokens": ("", request.max_output_tokens + request.reasoning_headroom),
    }
    config = {
        name: value
        for name, (part, value) in optional.items()
        if value is not None and part not in lacking
    }
    used = {optional[name][0] for name in config} | {mode or ""}
    if mode in (SCHEMA, OBJECT):
        config["responseMimeType"] = "application/json"
    if mode == SCHEMA:
        config["responseJsonSchema"] = request.response_schema
    return config, used


def _thinking(request: CompletionRequest) -> dict[str, Any] | None:
    budget, effort = (
        request.options.get("thinking_budget_tokens"),
        request.options.get("thinking_effort"),
    )
    if budget is not None:
        return {"thinkingBudget": budget}
    if effort is None:
        return None
    # Models before the third generation count tokens, and only they can do without thinking.
    if "gemini-2" in request.model:
        return {"thinkingBudget": 0} if effort == "none" else {"thinkingBudget": -1}
    return {"thinkingLevel": _LEVELS.get(effort, effort)}


def _choice(choice: str) -> dict[str, Any]:
    modes = {"auto": "AUTO", "none": "NONE", "any": "ANY", "required": "ANY"}
    return (
        {"mode": modes[choice]}
        if choice in modes
        else {"mode": "ANY", "allowedFunctionNames": [choice]}
    )


def _declared(
    name: str, description: str, parameters: dict[str, Any], older: bool
) -> dict[str, Any]:
    schema = {"parameters": _older(parameters)} if older else {"parametersJsonSchema": parameters}
    return {
        "name": name,
        "description": description,
        **(schema if parameters.get("properties") or not older else {}),
    }


def _older(schema: Any) -> Any:
    """A schema in the words that it had before JSON Schema was taken as it is."""
    if not isinstance(schema, dict):
        return schema
    supported = {name: value for name, value in schema.items() if name in _KEPT}
    if "items" in supported:
        supported["items"] = _older(supported["items"])
    if "properties" in supported:
        supported["properties"] = {
            name: _older(value) for name, value in supported["properties"].items()
        }
    if "anyOf" in supported:
        supported["anyOf"] = [_older(value) for value in supported["anyOf"]]
    if isinstance(supported.get("type"), list):
        kinds = [kind for kind in supported["type"] if kind != "null"]
        supported |= {
            "type": kinds[0] if kinds else "string",
            "nullable": len(kinds) < len(supported["type"]),
        }
    return supported


def _contents(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as parts; neighbouring ones of one side are one content, which is how results of
    several calls have to come. A content with results has nothing else: the API rejects text beside
    them."""
    contents: list[dict[str, Any]] = []
    names = {c.id: c.name for turn in turns for c in turn.tool_calls}
    before = ""
    for turn in turns:
        kind = turn.role if turn.role in ("assistant", "tool") else "user"
        if kind != before:
            contents.append({"role": "model" if kind == "assistant" else "user", "parts": []})
        contents[-1]["parts"] += _parts(turn, names)
        before = kind
    return [content for content in contents if content["parts"]]


def _parts(turn: Turn, names: dict[str, str]) -> list[dict[str, Any]]:
    if turn.role == "tool":
        name = names.get(turn.tool_call_id or "", "unknown")
        return [{"functionResponse": {"name": name, "response": {"result": turn.content}}}]
    parts: list[dict[str, Any]] = [{"text": turn.content}] if turn.content else []
    for number, tool_call in enumerate(turn.tool_calls):
        part: dict[str, Any] = {
            "functionCall": {"name": tool_call.name, "args": tool_call.arguments}
        }
        # Of several calls at once only the first is signed.
        signature = (
            tool_call.carried
            if isinstance(tool_call.carried, str)
            else (_UNSIGNED if number == 0 else None)
        )
        parts.append(part | ({"thoughtSignature": signature} if signature else {}))
    return parts
