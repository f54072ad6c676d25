"""Traces of the messages to and from models, if the operator enables them. They contain users'
texts and are off by default."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from memservice.domain.ids import new_uid
from memservice.services.events.model_calls import category_of
from memservice.settings.service import Telemetry
from memservice.spi.llm import ModelCall, Tool, ToolCall, Turn
from memservice.telemetry.events import EmbeddingCallTraced, Event, LlmCallTraced, TraceContent
from memservice.telemetry.exporter import Exporter

log = logging.getLogger("memservice.telemetry")

MAX_SENT_HASHES = 10_000
"""Maximum number of texts that are remembered as sent, so that a text repeated by several calls is
sent once."""
OWN_ROLES = ("system", "tool_schema")
"""Roles whose text the service wrote itself."""


class TraceEvents:
    """A listener of calls that sends trace events only through its own exporter."""

    def __init__(
        self, settings: Telemetry, clock: Callable[[], datetime], exporter: Exporter
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._exporter = exporter
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, call: ModelCall) -> None:
        if self._settings.trace_purposes and call.purpose not in self._settings.trace_purposes:
            return
        if call.embedding:
            self._emit(_of_embedder(call))
        elif call.request is not None:
            self._of_model(call)

    def _emit(self, event: Event) -> None:
        self._exporter(event, self._clock())

    def _of_model(self, call: ModelCall) -> None:
        request, answer = call.request, call.answer
        assert request is not None
        contents = _Contents(self._settings.trace_max_bytes)
        system = [contents.turn(turn) for turn in request.turns if turn.role == "system"]
        messages = tuple(contents.turn(turn) for turn in request.turns if turn.role != "system")
        schemas = tuple(contents.tool(tool) for tool in request.tools)
        output = (
            None
            if answer is None or not answer.content
            else contents.add("assistant", answer.content)
        )
        for content in contents.contents:
            if self._is_new(content.content_hash):
                self._emit(content)
        self._emit(
            LlmCallTraced(
                trace_id=call.run_id,
                span_id=new_uid(),
                iteration=call.iteration,
                step_seq=call.iteration or 0,
                attempt=call.attempt,
                was_fallback=call.is_fallback,
                call_purpose=call.purpose,
                parent_category=category_of(call),
                transport=call.transport,
                model=call.model,
                input_message_refs=messages,
                system_prompt_ref=system[0] if system else None,
                tool_schema_refs=schemas,
                tool_choice=request.tool_choice,
                output_content_ref=output,
                output_tool_calls=calls_as_json(answer.tool_calls if answer else ()),
                output_signatures=(),
                finish_reason=call.finish_reason,
                provider_input_tokens=call.input_tokens,
                provider_output_tokens=call.output_tokens,
                cache_read_tokens=call.cache_read_tokens,
                cache_creation_tokens=call.cache_write_tokens,
                was_truncated=contents.truncated,
            )
        )

    def _is_new(self, content_hash: str) -> bool:
        with self._lock:
            is_known = content_hash in self._sent
            self._sent[content_hash] = None
            self._sent.move_to_end(content_hash)
            if len(self._sent) > MAX_SENT_HASHES:
                self._sent.popitem(last=False)
        return not is_known


class _Contents:
    """The texts of one call, each under the hash of its role, content and tool calls."""

    def __init__(self, most_bytes: int) -> None:
        self.contents: list[TraceContent] = []
        self.truncated = False
        self._most = most_bytes

    def turn(self, turn: Turn) -> str:
        return self.add(turn.role, turn.content, turn.tool_call_id, calls_as_json(turn.tool_calls))

    def tool(self, tool: Tool) -> str:
        return self.add(
            "tool_schema",
            as_text(
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            ),
        )

    def add(
        self,
        role: str,
        content: str,
        tool_call_id: str | None = None,
        tool_calls: tuple[dict[str, Any], ...] = (),
    ) -> str:
        serialised = as_text([role, content, tool_call_id, tool_calls]).encode(
            "utf-8", "surrogatepass"
        )
        content_hash = hashlib.sha256(serialised).hexdigest()
        data = content.encode("utf-8", "surrogatepass")
        if len(data) > self._most:
            self.truncated = True
            content = data[: self._most].decode("utf-8", "ignore")
        self.contents.append(
            TraceContent(
                content_hash=content_hash,
                role=role,
                content=content,
                tool_call_id=tool_call_id,
                tool_calls=tool_calls,
                honcho_authored=role in OWN_ROLES,
            )
        )
        return content_hash


def _of_embedder(call: ModelCall) -> Event:
    return EmbeddingCallTraced(
        trace_id=call.run_id,
        span_id=new_uid(),
        iteration=call.iteration,
        step_seq=call.iteration or 0,
        attempt=call.attempt,
        call_purpose=call.purpose,
        parent_category=category_of(call),
        provider=call.transport,
        model=call.model,
        provider_input_tokens=call.input_tokens,
        provider_output_tokens=call.output_tokens,
        input_count=call.input_count,
        was_truncated=False,
    )


def calls_as_json(calls: Sequence[ToolCall]) -> tuple[dict[str, Any], ...]:
    return tuple({"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls)


def as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
