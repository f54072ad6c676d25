"""The answers of a good language model, from the request alone: every task of memservice can run
against it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memservice.spi.llm import ToolCall
from memservice.testing.llm import Say
from memservice.testing.model_requests import ModelRequest

_ENTRY = re.compile(r"^\[(\d+)\] \S+ \S+ \S+ \S+ (\S+): (.*(?:\n    .*)*)", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_ID = re.compile(r"^\[([^\]\s]+)\]", re.MULTILINE)


def good_answer(request: ModelRequest) -> Say:
    """The answer of a good model: one statement for each sentence of the numbered messages, one
    conclusion in a dream, one search before an answer, and documents that fit their schema."""
    properties = (request.schema or {}).get("properties", {})
    if "statements" in properties:
        return _document({"statements": _statements(request.text)})
    if "create" in properties:
        return _document({"create": _conclusions(request.text)})
    if "searches" in properties:
        return _document({"searches": [{"query": "bees", "in": "memory"}], "done": True})
    if request.schema is not None:
        return _document(instance(request.schema))
    if "create_conclusions" in request.tools and not request.has_results:
        arguments = {"conclusions": _conclusions(request.text)}
        return _call("create_conclusions", arguments)
    if "create_conclusions" in request.tools:
        return Say(("DONE",))
    if "search_memory" in request.tools and not request.has_results:
        return _call("search_memory", {"query": "bees"})
    if "Write the summary now" in request.text:
        return Say(("Alice keeps bees. ", "Bob asked about them."))
    return Say(("Alice ", "keeps ", "bees."))


def instance(schema: Mapping[str, Any]) -> Any:
    """A value that fits a simple schema."""
    kind = schema.get("type")
    if kind == "object":
        return {name: instance(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {}))]
    plain = {"boolean": True, "integer": 1, "number": 1.5, "null": None}
    return plain.get(str(kind), schema.get("enum", ["Alice keeps bees."])[0])


def _statements(text: str) -> list[dict[str, Any]]:
    return [
        {"content": f"{author}: {sentence.strip()}", "messages": [int(number)]}
        for number, author, content in _ENTRY.findall(text)
        for sentence in _SENTENCE.findall(" ".join(content.split()))
        if sentence.strip()
    ]


def _conclusions(text: str) -> list[dict[str, Any]]:
    ids = list(dict.fromkeys(_ID.findall(text)))[:2]
    return [{"content": "Alice is a beekeeper.", "level": "deductive", "source_ids": ids}]


def _document(value: Any) -> Say:
    return Say((json.dumps(value, ensure_ascii=False),))


def _call(name: str, arguments: dict[str, Any]) -> Say:
    return Say((), (ToolCall("call-1", name, arguments),), "tool_calls")
