"""The Messages API."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from memservice.spi.llm import Completion, CompletionRequest, ModelFailure, ToolCall, Turn
from memservice_http.chat import (
    PROMPT,
    SCHEMA,
    SCHEMA_WITH_TOOLS_FEATURE,
    TOOLS_FEATURE,
    HttpModel,
    RequestBody,
    StreamReader,
    arguments_of,
    call,
    mode_of,
    refused,
    system_and_rest,
    turns_of,
    whole,
)
from memservice_http.features import OptionalFeature

_EFFORTS = {"minimal": "low"}
"""Our name of an effort → Anthropic's, where it differs."""
_FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
BUDGET = "thinking budget"
"""Newer models reject it: they choose the amount of thinking (`adaptive`), guided by an effort."""
_BUDGET_EFFORTS = ((4_000, "low"), (12_000, "medium"))
"""A budget below this number of tokens → the nearest effort; `high` for larger budgets."""
_THOUGHTS = ("thinking", "redacted_thinking")
MIN_BUDGET = 1024
"""Tokens. The API rejects a smaller budget for thinking."""
SHORT_CACHE_SECONDS = 300
"""A prompt that should be cached for longer is cached for an hour."""


class AnthropicModel(HttpModel):
    parts = (
        SCHEMA_WITH_TOOLS_FEATURE,
        OptionalFeature(
            SCHEMA,
            (
                "output_config",
                "output_config.format",
                "output_format",
                "schema",
                "structured outputs",
            ),
            any_complaint=True,
            options=("structured_output_mode",),
        ),
        OptionalFeature(
            "effort",
            ("effort", "output_config.effort", "output_config"),
            any_complaint=True,
            options=("thinking_effort",),
        ),
        OptionalFeature(
            BUDGET, ("thinking.type.enabled", "thinking.budget_tokens", "budget_tokens")
        ),
        OptionalFeature("thinking", ("thinking",), options=("thinking_budget_tokens",)),
        OptionalFeature("cache_control", ("cache_control", "ttl"), options=("cache_policy",)),
        *(
            OptionalFeature(name, (name,), options=(name,))
            for name in ("temperature", "top_p", "top_k")
        ),
        TOOLS_FEATURE,
    )

    def form(
        self, request: CompletionRequest, lacking: frozenset[str], *, stream: bool
    ) -> RequestBody:
        mode = mode_of(request, lacking, (SCHEMA, PROMPT))
        system, turns = system_and_rest(turns_of(request, mode))
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens,
            "messages": _messages(turns),
        }
        used = {mode or ""}
        effort = _add_thinking(body, used, request, turns, lacking)
        _add_sampling(body, used, request, lacking)
        if system:
            body["system"] = [{"type": "text", "text": text} for text in system if text]
        if request.tools:
            _add_tools(body, request, turns)
        config: dict[str, Any] = {}
        if effort not in (None, "none") and "effort" not in lacking:
            used.add("effort")
            config["effort"] = _EFFORTS.get(effort, effort)
        if mode == SCHEMA:
            config["format"] = {"type": "json_schema", "schema": request.response_schema}
        if config:
            body["output_config"] = config
        policy = request.options.get("cache_policy")
        if "cache_control" not in lacking and (
            control := _cache_control(policy, is_loop=bool(request.tools))
        ):
            used.add("cache_control")
            _mark(body, control)
        if stream:
            body["stream"] = True
        has_version = self.endpoint.url("").path.rstrip("/").endswith("/v1")
        return RequestBody("/messages" if has_version else "/v1/messages", body, used=used)

    def documents_schema_with_tools(self, model: str) -> bool:
        return self._is_official

    @property
    def _is_official(self) -> bool:
        return self.endpoint.url("").host.endswith(".anthropic.com")

    def read(self, answer: Any) -> Completion:
        return self.completion(answer["content"], answer["stop_reason"], answer.get("usage") or {})

    def reading(self) -> StreamReader:
        return _Reading(self)

    def completion(self, blocks: Sequence[Any], reason: str | None, usage: Any) -> Completion:
        if reason == "refusal":
            raise refused(self.endpoint.provider)
        thoughts = [block for block in blocks if block["type"] in _THOUGHTS]
        calls: list[ToolCall] = []
        for block in blocks:
            if block["type"] == "tool_use":
                # With the results, the thinking that led to the calls has to be sent again; it
                # travels with the first of them.
                carried = thoughts if thoughts and not calls else None
                calls.append(
                    call(
                        block.get("id"),
                        block["name"],
                        _input(self.endpoint.provider, block["input"]),
                        carried,
                    )
                )
        cache_read, written = (
            whole(usage.get("cache_read_input_tokens")),
            whole(usage.get("cache_creation_input_tokens")),
        )
        return Completion(
            content="".join(block["text"] for block in blocks if block["type"] == "text"),
            tool_calls=tuple(calls),
            finish_reason=_FINISHED.get(reason or "", reason),
            input_tokens=whole(usage.get("input_tokens")) + cache_read + written,
            output_tokens=whole(usage.get("output_tokens")),
            cache_read_tokens=cache_read,
            cache_write_tokens=written,
            reasoning_tokens=whole(
                (usage.get("output_tokens_details") or {}).get("thinking_tokens")
            ),
        )


def _add_thinking(
    body: dict[str, Any],
    used: set[str],
    request: CompletionRequest,
    turns: Sequence[Turn],
    lacking: Collection[str],
) -> Any:
    """Add the budget for thinking and its room in the output. Returns the effort, if there is
    one."""
    effort = request.options.get("thinking_effort")
    thinking = None if "thinking" in lacking else _thinking(request, turns)
    if thinking is None:
        body["max_tokens"] += request.reasoning_headroom
        return effort
    # Reasoning counts as output: its room comes on top of the answer's.
    body["max_tokens"] += max(thinking["budget_tokens"], request.reasoning_headroom)
    if BUDGET in lacking:
        effort = effort or _effort_for(thinking["budget_tokens"])
        thinking = {"type": "adaptive"}
    else:
        used.add(BUDGET)
    used.add("thinking")
    body["thinking"] = thinking
    return effort


def _add_sampling(
    body: dict[str, Any], used: set[str], request: CompletionRequest, lacking: Collection[str]
) -> None:
    options = request.options
    if "thinking" not in body:  # models that think accept none of these
        sampling = {
            "temperature": request.temperature,
            "top_k": options.get("top_k"),
            "top_p": options.get("top_p"),
        }
        for name, value in sampling.items():
            if value is not None and name not in lacking:
                used.add(name)
                body[name] = min(value, 1.0) if name == "temperature" else value
    if stop := [text for text in options.get("stop_sequences") or () if text.strip()]:
        body["stop_sequences"] = stop


def _add_tools(body: dict[str, Any], request: CompletionRequest, turns: Sequence[Turn]) -> None:
    body["tools"] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]
    if (choice := _choice(request.tool_choice, turns)) is not None:
        body["tool_choice"] = choice


class _Reading(StreamReader):
    def __init__(self, model: AnthropicModel) -> None:
        self._model = model
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._reason: str | None = None
        self._over = False

    def take(self, event: Any) -> list[str]:
        kind = event["type"]
        if kind == "message_start":
            self._usage |= event["message"].get("usage") or {}
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            return self._delta(event["index"], event["delta"])
        elif kind == "message_delta":
            self._reason = event["delta"].get("stop_reason") or self._reason
            self._usage |= {
                name: value
                for name, value in (event.get("usage") or {}).items()
                if value is not None
            }
        elif kind == "message_stop":
            self._over = True
        return []

    def _delta(self, index: int, delta: Any) -> list[str]:
        block, kind = self._blocks[index], delta["type"]
        if kind == "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
            return [delta["text"]] if delta["text"] else []
        if kind == "input_json_delta":
            self._inputs.setdefault(index, []).append(delta["partial_json"])
        elif kind == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        return []

    def ended(self) -> Completion | None:
        if not self._over and self._reason is None:
            return None
        for index, parts in self._inputs.items():
            self._blocks[index]["input"] = arguments_of(
                self._model.endpoint.provider, "".join(parts), self._reason == "max_tokens"
            )
        return self._model.completion(
            [self._blocks[index] for index in sorted(self._blocks)], self._reason, self._usage
        )


def _input(provider: str, arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, dict):
        raise ModelFailure(
            f"{provider}: the model called a tool with arguments that are no JSON object",
            retryable=True,
            fault="content",
        )
    return arguments


def _thinking(request: CompletionRequest, turns: Sequence[Turn]) -> dict[str, Any] | None:
    """Thinking with a budget, where one is set and the conversation allows it."""
    budget = request.options.get("thinking_budget_tokens") or 0
    if budget <= 0 or request.options.get("thinking_effort") == "none":
        return None
    forced = request.tools and request.tool_choice not in (None, "auto", "none")
    # Calls that were made without thinking (by another model, say) cannot be continued with it.
    bare = any(
        turn.tool_calls and not isinstance(turn.tool_calls[0].carried, list) for turn in turns
    )
    return None if forced or bare else {"type": "enabled", "budget_tokens": max(budget, MIN_BUDGET)}


def _effort_for(budget: int) -> str:
    return next((effort for limit, effort in _BUDGET_EFFORTS if budget < limit), "high")


def _choice(name: str | None, turns: Sequence[Turn]) -> dict[str, Any] | None:
    """Another choice than in the round before would empty the cache of the conversation. So `auto`
    is never sent, being the default, and `none` only as long as there are no results: after them
    the model is told in words, and calls that it makes in spite of that are not done."""
    has_results = any(turn.role == "tool" for turn in turns)
    if name in (None, "auto") or (name == "none" and has_results):
        return None
    if name in ("auto", "none", "any", "required"):
        return {"type": "any" if name == "required" else name}
    return {"type": "tool", "name": name}


def _messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as content blocks; neighbouring ones of one side are one message, which is how results
    of several calls have to come."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        role = "assistant" if turn.role == "assistant" else "user"
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        messages[-1]["content"] += _blocks(turn)
    return [message for message in messages if message["content"]]


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [{"type": "tool_result", "tool_use_id": turn.tool_call_id, "content": turn.content}]
    blocks = [
        dict(block)
        for c in turn.tool_calls
        if isinstance(c.carried, list)
        for block in c.carried
        if isinstance(block, dict)
    ]
    # A text that is empty or ends in blanks is refused at the end of what the model said.
    text = turn.content.rstrip() if turn.role == "assistant" else turn.content
    if text.strip():
        blocks.append({"type": "text", "text": text})
    return blocks + [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments}
        for c in turn.tool_calls
    ]


def _cache_control(policy: Any, *, is_loop: bool) -> dict[str, str] | None:
    """By the policy that is set; without one, rounds with tools are cached for a short time, since
    each repeats the one before."""
    if not policy:
        return {"type": "ephemeral"} if is_loop else None
    if policy.get("mode") in ("none", "off"):
        return None
    return {"type": "ephemeral"} | (
        {"ttl": "1h"} if (policy.get("ttl_seconds") or 0) > SHORT_CACHE_SECONDS else {}
    )


def _mark(body: dict[str, Any], control: dict[str, str]) -> None:
    """Cache what stays the same from call to call (tools and system), and the conversation so far.

    The last two messages of the user are marked: a cached beginning is only looked for in the 20
    blocks in front of a mark, and a round may have more.
    """
    if body.get("system"):
        body["system"][-1]["cache_control"] = control
    elif body.get("tools"):
        body["tools"][-1]["cache_control"] = control
    users = [message for message in body["messages"] if message["role"] == "user"]
    for message in users[-2:]:
        message["content"][-1]["cache_control"] = control
