"""Items of the Responses API: what a request contains as input and an answer as output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memservice.spi.llm import Turn


def text_of(items: Sequence[Any]) -> str:
    return "".join(part["text"] for part in parts_of(items) if part["type"] == "output_text")


def parts_of(items: Sequence[Any]) -> list[Any]:
    return [
        part for item in items if item["type"] == "message" for part in item.get("content") or ()
    ]


def items_of(turns: Sequence[Turn], *, has_reasoning: bool) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "tool":
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": turn.tool_call_id,
                    "output": turn.content,
                }
            )
            continue
        if turn.content or not turn.tool_calls:
            items.append({"type": "message", "role": turn.role, "content": turn.content})
        for tool_call in turn.tool_calls:
            # Another provider's model may have made the call, and carry something else.
            if has_reasoning and isinstance(tool_call.carried, dict):
                items += tool_call.carried.get("reasoning", ())
            items.append(
                {
                    "type": "function_call",
                    "call_id": tool_call.id,
                    "name": tool_call.name,
                    "arguments": json.dumps(tool_call.arguments, ensure_ascii=False),
                }
            )
    return items
