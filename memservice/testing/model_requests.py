"""Requests to a language model in one form, whatever the protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memservice.testing.model_protocols import AnthropicWire, GeminiWire, OpenAiWire, ResponsesWire
from memservice.testing.model_server import Request, Wire

_SCHEMA_IN_WORDS = re.compile(r"JSON Schema:\n(\{.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request, in the same form for each protocol."""

    wire: Wire
    body: Mapping[str, Any]
    system: str
    text: str
    """The text of the user's turns."""
    tools: Sequence[str]
    """Names of the tools."""
    schema: Mapping[str, Any] | None
    """The JSON Schema of the answer, even if it is part of a text."""
    has_json_mode: bool
    """Whether a JSON Schema, or JSON, is requested through the protocol."""
    max_tokens: int
    is_stream: bool
    has_results: bool
    """Whether there is a turn with a tool's result."""


def read_request(raw: Request) -> ModelRequest:
    """A request in the form that is common to all protocols."""
    body = raw.body
    if "/messages" in raw.path:
        return _anthropic(body)
    if "enerateContent" in raw.path:
        return _gemini(body, "streamGenerateContent" in raw.path)
    if raw.path.partition("?")[0].endswith("/responses"):
        return _responses(body)
    return _openai(body)


def _openai(body: Any) -> ModelRequest:
    turns = body["messages"]
    system = "\n".join(str(turn["content"]) for turn in turns if turn["role"] == "system")
    by_user = "\n\n".join(str(turn["content"]) for turn in turns if turn["role"] == "user")
    response = body.get("response_format") or {}
    return ModelRequest(
        OpenAiWire(),
        body,
        system,
        by_user,
        [tool["function"]["name"] for tool in body.get("tools", ())],
        response.get("json_schema", {}).get("schema") or _schema_in(f"{system}\n\n{by_user}"),
        bool(response),
        body.get("max_completion_tokens") or body.get("max_tokens") or 10_000,
        bool(body.get("stream")),
        any(turn["role"] == "tool" for turn in turns),
    )


def _responses(body: Any) -> ModelRequest:
    items = body["input"]
    messages = [item for item in items if item["type"] == "message"]
    system = "\n".join(
        [
            body.get("instructions", ""),
            *(item["content"] for item in messages if item["role"] == "system"),
        ]
    )
    by_user = "\n\n".join(item["content"] for item in messages if item["role"] == "user")
    answer_format = body.get("text", {}).get("format", {})
    return ModelRequest(
        ResponsesWire(),
        body,
        system,
        by_user,
        [tool["name"] for tool in body.get("tools", ())],
        answer_format.get("schema") or _schema_in(f"{system}\n\n{by_user}"),
        bool(answer_format),
        body["max_output_tokens"],
        bool(body.get("stream")),
        any(item["type"] == "function_call_output" for item in items),
    )


def _anthropic(body: Any) -> ModelRequest:
    system = "\n".join(block["text"] for block in body.get("system", ()))
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    own = [
        block for turn in body["messages"] if turn["role"] == "user" for block in turn["content"]
    ]
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    return ModelRequest(
        AnthropicWire(),
        body,
        system,
        "\n\n".join(block["text"] for block in own if block["type"] == "text"),
        [tool["name"] for tool in body.get("tools", ())],
        schema or _schema_in(system),
        schema is not None,
        body["max_tokens"],
        bool(body.get("stream")),
        any(block["type"] == "tool_result" for block in blocks),
    )


def _gemini(body: Any, is_stream: bool) -> ModelRequest:
    parts = [part for content in body["contents"] for part in content["parts"]]
    own = [
        part["text"]
        for content in body["contents"]
        if content["role"] == "user"
        for part in content["parts"]
        if "text" in part
    ]
    system = "\n".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ()))
    config = body.get("generationConfig", {})
    return ModelRequest(
        GeminiWire(),
        body,
        system,
        "\n\n".join(own),
        [
            declared["name"]
            for tool in body.get("tools", ())
            for declared in tool["functionDeclarations"]
        ],
        config.get("responseJsonSchema") or _schema_in(system),
        "responseMimeType" in config,
        config.get("maxOutputTokens", 10_000),
        is_stream,
        any("functionResponse" in part for part in parts),
    )


def _schema_in(text: str) -> Mapping[str, Any] | None:
    match = _SCHEMA_IN_WORDS.search(text)
    if match is None:
        return None
    schema: Mapping[str, Any] = json.JSONDecoder().raw_decode(match[1])[0]
    return schema
