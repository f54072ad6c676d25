"""The protocols of language models, as their servers speak them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from memservice.testing.llm import Say
from memservice.testing.model_server import Request, sse


def halves(text: str) -> Iterator[str]:
    middle = len(text) // 2
    yield from (text[:middle], text[middle:])


class OpenAiWire:
    def whole(self, say: Say) -> Any:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": say.text or (None if say.tool_calls else ""),
            "refusal": None,
        }
        if say.tool_calls:
            message["tool_calls"] = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.name, "arguments": json.dumps(c.arguments)},
                }
                for c in say.tool_calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": say.finish_reason}
        return {
            "id": "c-1",
            "object": "chat.completion",
            "model": "model-1",
            "choices": [choice],
            "usage": self._usage(say),
        }

    def events(self, say: Say) -> Iterator[bytes]:
        first, *others = say.pieces or ("",)
        yield (
            self._delta({"role": "assistant", "content": ""})
            + b": keep-alive\n\n"
            + self._delta({"content": first})
        )
        for piece in others:
            yield self._delta({"content": piece})
        for index, call in enumerate(say.tool_calls):
            yield self._delta(
                {
                    "tool_calls": [
                        {
                            "index": index,
                            "id": call.id,
                            "type": "function",
                            "function": {"name": call.name, "arguments": ""},
                        }
                    ]
                }
            )
            for part in halves(json.dumps(call.arguments)):
                yield self._delta(
                    {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
                )
        yield self._delta({}, say.finish_reason)
        yield sse({"id": "c-1", "choices": [], "usage": self._usage(say)})
        yield b"data: [DONE]\n\n"

    def refusal(self) -> Any:
        message = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}

    def refusal_events(self) -> Iterator[bytes]:
        yield self._delta({"role": "assistant", "content": ""})
        yield self._delta({"refusal": "I can't"})
        yield self._delta({}, "stop")
        yield b"data: [DONE]\n\n"

    def error(self, status: int, message: str) -> Any:
        return {
            "error": {"message": message, "type": "some_error", "param": None, "code": "some_code"}
        }

    def error_event(self) -> bytes:
        return sse({"error": {"message": "it broke", "type": "server_error"}})

    def is_stream(self, request: Request) -> bool:
        return bool(request.body.get("stream"))

    def last_text(self, request: Request) -> str:
        return str(request.body["messages"][-1]["content"])

    def _delta(self, delta: Any, reason: str | None = None) -> bytes:
        return sse(
            {
                "id": "c-1",
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
                "usage": None,
            }
        )

    def _usage(self, say: Say) -> Any:
        details = {"cached_tokens": say.cache_read_tokens}
        return {
            "prompt_tokens": say.input_tokens,
            "completion_tokens": say.output_tokens,
            "total_tokens": say.input_tokens + say.output_tokens,
            "prompt_tokens_details": details,
            "completion_tokens_details": {
                "reasoning_tokens": say.reasoning_tokens if say.reasoning_tokens > 2 else 0
            },
        }


class ResponsesWire:
    """OpenAI's Responses API."""

    REASONING: ClassVar[dict[str, Any]] = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "gAAA",
        "status": None,
    }

    def whole(self, say: Say) -> Any:
        return self._response(self._output(say), say)

    def events(self, say: Say) -> Iterator[bytes]:
        started = self._response([], say) | {"status": "in_progress", "usage": None}
        yield (
            self._event("response.created", response=started)
            + self._event("response.in_progress", response=started)
            + self._item("added", 0, {"type": "reasoning", "id": "rs_1", "summary": []})
            + self._item("done", 0, self.REASONING)
            + self._item("added", 1, {**self._message(()), "status": "in_progress"})
            + self._delta((say.pieces or ("",))[0])
        )
        for piece in say.pieces[1:]:
            yield self._delta(piece)
        yield self._item("done", 1, self._message(self._texts(say)))
        for index, item in enumerate(self._calls(say), 2):
            yield self._item("added", index, {**item, "arguments": "", "status": "in_progress"})
            for part in halves(item["arguments"]):
                yield self._event(
                    "response.function_call_arguments.delta", output_index=index, delta=part
                )
            yield self._event(
                "response.function_call_arguments.done",
                output_index=index,
                arguments=item["arguments"],
            )
            yield self._item("done", index, item)
        response = self.whole(say)
        yield self._event(f"response.{response['status']}", response=response)

    def refusal(self) -> Any:
        return self._response([self._message([self._refused()])], Say())

    def refusal_events(self) -> Iterator[bytes]:
        yield self._item("added", 0, self._message(()))
        yield self._event("response.refusal.delta", output_index=0, delta="I can't")
        yield self._item("done", 0, self._message([self._refused()]))
        yield self._event("response.completed", response=self.refusal())

    def error(self, status: int, message: str) -> Any:
        return OpenAiWire().error(status, message)

    def error_event(self) -> bytes:
        return self._event("error", code="server_error", message="it broke", param=None)

    def is_stream(self, request: Request) -> bool:
        return bool(request.body.get("stream"))

    def last_text(self, request: Request) -> str:
        return str(request.body["input"][-1]["content"])

    def _output(self, say: Say) -> list[dict[str, Any]]:
        message = [self._message(self._texts(say))] if say.text or not say.tool_calls else []
        return [self.REASONING, *message, *self._calls(say)]

    def _calls(self, say: Say) -> list[dict[str, Any]]:
        return [
            {
                "type": "function_call",
                "id": f"fc_{c.id}",
                "call_id": c.id,
                "name": c.name,
                "arguments": json.dumps(c.arguments),
                "status": "completed",
            }
            for c in say.tool_calls
        ]

    def _texts(self, say: Say) -> list[dict[str, Any]]:
        return [{"type": "output_text", "text": say.text, "annotations": []}]

    def _refused(self) -> dict[str, Any]:
        return {"type": "refusal", "refusal": "I can't help with that."}

    def _message(self, content: Sequence[Any]) -> dict[str, Any]:
        return {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": list(content),
        }

    def _response(self, output: Sequence[Any], say: Say) -> dict[str, Any]:
        is_cut = say.finish_reason == "length"
        return {
            "id": "resp_1",
            "object": "response",
            "model": "model-1",
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "error": None,
            "output": list(output),
            "usage": {
                "input_tokens": say.input_tokens,
                "input_tokens_details": {"cached_tokens": say.cache_read_tokens},
                "output_tokens": say.output_tokens,
                "output_tokens_details": {"reasoning_tokens": say.reasoning_tokens},
            },
        }

    def _item(self, change: str, index: int, item: Any) -> bytes:
        return self._event(f"response.output_item.{change}", output_index=index, item=item)

    def _delta(self, text: str) -> bytes:
        return self._event("response.output_text.delta", output_index=1, delta=text)

    def _event(self, kind: str, **fields: Any) -> bytes:
        return sse({"type": kind, **fields}, kind)


class AnthropicWire:
    REASONS: ClassVar = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}

    def whole(self, say: Say) -> Any:
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig-1"}
        ]
        blocks += [{"type": "text", "text": say.text}] if say.text else []
        blocks += [
            {"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments}
            for c in say.tool_calls
        ]
        return self._message(blocks, self.REASONS[say.finish_reason], say)

    def events(self, say: Say) -> Iterator[bytes]:
        first, *others = say.pieces or ("",)
        started = {
            **self._message([], None, say),
            "usage": {**self._usage(replace(say, reasoning_tokens=0)), "output_tokens": 1},
        }
        yield (
            sse({"type": "message_start", "message": started}, "message_start")
            + self._start(0, {"type": "thinking", "thinking": "", "signature": ""})
            + self._delta(0, {"type": "thinking_delta", "thinking": "Hm."})
            + self._delta(0, {"type": "signature_delta", "signature": "sig-1"})
            + self._stop(0)
            + sse({"type": "ping"}, "ping")
            + self._start(1, {"type": "text", "text": ""})
            + self._delta(1, {"type": "text_delta", "text": first})
        )
        for piece in others:
            yield self._delta(1, {"type": "text_delta", "text": piece})
        yield self._stop(1)
        for index, call in enumerate(say.tool_calls, 2):
            yield self._start(
                index, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            )
            for part in halves(json.dumps(call.arguments) if call.arguments else ""):
                yield self._delta(index, {"type": "input_json_delta", "partial_json": part})
            yield self._stop(index)
        yield sse(
            {
                "type": "message_delta",
                "delta": {"stop_reason": self.REASONS[say.finish_reason], "stop_sequence": None},
                "usage": {"output_tokens": say.output_tokens, **self._thinking(say)},
            },
            "message_delta",
        )
        yield sse({"type": "message_stop"}, "message_stop")

    def refusal(self) -> Any:
        return self._message([], "refusal", Say())

    def refusal_events(self) -> Iterator[bytes]:
        yield sse(
            {"type": "message_start", "message": self._message([], None, Say())}, "message_start"
        )
        yield sse(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "refusal"},
                "usage": {"output_tokens": 0},
            },
            "message_delta",
        )
        yield sse({"type": "message_stop"}, "message_stop")

    def error(self, status: int, message: str) -> Any:
        return {
            "type": "error",
            "error": {"type": "some_error", "message": message},
            "request_id": "req_1",
        }

    def error_event(self) -> bytes:
        return sse(
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "error",
        )

    def is_stream(self, request: Request) -> bool:
        return bool(request.body.get("stream"))

    def last_text(self, request: Request) -> str:
        return str(request.body["messages"][-1]["content"][-1]["text"])

    def _message(self, blocks: Any, reason: str | None, say: Say) -> dict[str, Any]:
        usage = self._usage(say)
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": blocks,
            "stop_reason": reason,
            "usage": usage,
        }

    def _usage(self, say: Say) -> dict[str, Any]:
        return {
            "input_tokens": say.input_tokens - say.cache_read_tokens,
            "cache_read_input_tokens": say.cache_read_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": say.output_tokens,
            **self._thinking(say),
        }

    def _thinking(self, say: Say) -> dict[str, Any]:
        if say.reasoning_tokens <= 2:
            return {}
        return {"output_tokens_details": {"thinking_tokens": say.reasoning_tokens}}

    def _start(self, index: int, block: Any) -> bytes:
        return sse(
            {"type": "content_block_start", "index": index, "content_block": block},
            "content_block_start",
        )

    def _delta(self, index: int, delta: Any) -> bytes:
        return sse(
            {"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta"
        )

    def _stop(self, index: int) -> bytes:
        return sse({"type": "content_block_stop", "index": index}, "content_block_stop")


class GeminiWire:
    REASONS: ClassVar = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP"}

    def whole(self, say: Say) -> Any:
        parts: list[dict[str, Any]] = [{"text": "Hm.", "thought": True}]
        parts += [{"text": say.text}] if say.text else []
        parts += self._calls(say)
        return self._answer(parts, self.REASONS[say.finish_reason], say)

    def events(self, say: Say) -> Iterator[bytes]:
        first, *others = say.pieces or ("",)
        yield sse(self._answer([{"text": "Hm.", "thought": True}], None)) + sse(
            self._answer([{"text": first}], None)
        )
        for piece in others:
            yield sse(self._answer([{"text": piece}], None))
        for part in self._calls(say):
            yield sse(self._answer([part], None))
        yield sse(self._answer([{"text": ""}], self.REASONS[say.finish_reason], say))

    def refusal(self) -> Any:
        return {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 3},
        }

    def refusal_events(self) -> Iterator[bytes]:
        yield sse(
            {
                "candidates": [{"index": 0, "finishReason": "SAFETY"}],
                "usageMetadata": {"promptTokenCount": 3},
            }
        )

    def error(self, status: int, message: str) -> Any:
        return {"error": {"code": status, "message": message, "status": "SOME_STATUS"}}

    def error_event(self) -> bytes:
        return sse({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})

    def is_stream(self, request: Request) -> bool:
        return ":streamGenerateContent" in request.path

    def last_text(self, request: Request) -> str:
        return str(request.body["contents"][-1]["parts"][-1]["text"])

    def _calls(self, say: Say) -> list[dict[str, Any]]:
        calls = [{"functionCall": {"name": c.name, "args": c.arguments}} for c in say.tool_calls]
        return [
            {**part, "thoughtSignature": "c2ln"} if number == 0 else part
            for number, part in enumerate(calls)
        ]

    def _answer(self, parts: Any, reason: str | None, say: Say | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
        answer: dict[str, Any] = {
            "candidates": [candidate | ({"finishReason": reason} if reason else {})],
            "modelVersion": "model-1",
        }
        if say is not None:
            answer["usageMetadata"] = {
                "promptTokenCount": say.input_tokens,
                "candidatesTokenCount": say.output_tokens - say.reasoning_tokens,
                "thoughtsTokenCount": say.reasoning_tokens,
                "cachedContentTokenCount": say.cache_read_tokens,
            }
        return answer
