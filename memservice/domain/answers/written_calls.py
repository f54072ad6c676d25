"""Parses tool calls that a model wrote as text, because its server does not parse them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from memservice.domain.answers.json_text import documents, finite, refuse

Call = tuple[str, dict[str, Any]]
"""Name and arguments."""

MAX_LENGTH = 50_000
"""Characters. A longer text is not parsed."""

_BLOCK = re.compile(r"\s*<tool_call>(.*?)(?:</tool_call>|\Z)\s*", re.DOTALL)
_FUNCTION = re.compile(r"\s*<function=([\w.-]+)>(.*?)</function>\s*(?:<\|eom_id\|>)?", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=([\w.-]+)>(.*?)</parameter>\s*", re.DOTALL)
_MISTRAL = re.compile(r"\s*\[TOOL_CALLS\]\s*", re.IGNORECASE)
_MISTRAL_NAME = re.compile(r"([\w.-]+)(?:\[CALL_ID\][\w-]+)?(?:\[ARGS\])?\s*(?=\{)")
_LLAMA = re.compile(r"\s*<\|python_tag\|>\s*")
_OPENINGS = (
    "<tool_call>",
    "<function=",
    "[tool_calls]",
    "<|python_tag|>",
    '{"name"',
    '{"function"',
    '{"type":"function"',
    '[{"name"',
    "```json",
    "```tool",
)


def may_begin_call(text: str) -> bool:
    """Whether the text received so far can be the beginning of a call."""
    compact = re.sub(r"\s+", "", text[:80].lower())
    return any(opening.startswith(compact) or compact.startswith(opening) for opening in _OPENINGS)


def written_calls(text: str, names: Collection[str]) -> list[Call]:
    """The calls of these tools, if the text consists of calls only; else an empty list. Accepts the
    forms of Hermes and Qwen, Llama, and Mistral."""
    if not text.strip() or len(text) > MAX_LENGTH:
        return []
    for reader in (_blocks, _functions, _mistral, _bare):
        calls = reader(text)
        if calls and all(name in names for name, _ in calls):
            return list(calls)
    return []


def _blocks(text: str) -> Sequence[Call]:
    calls: list[Call] = []
    position = 0
    while match := _BLOCK.match(text, position):
        inner = _functions(match[1]) or _objects(match[1])
        if not inner:
            return []
        calls += inner
        position = match.end()
    return calls if not text[position:].strip() else []


def _functions(text: str) -> Sequence[Call]:
    calls: list[Call] = []
    position = 0
    while match := _FUNCTION.match(text, position):
        body = match[2].strip()
        if body.startswith("{"):
            arguments = _arguments(body)
        else:
            arguments = {name: _value(value) for name, value in _PARAMETER.findall(body)}
        if arguments is None:
            return []
        calls.append((match[1], arguments))
        position = match.end()
    return calls if not text[position:].strip() else []


def _mistral(text: str) -> Sequence[Call]:
    match = _MISTRAL.match(text)
    if match is None:
        return []
    calls: list[Call] = []
    for part in re.split(r"\[TOOL_CALLS\]", text[match.end() :], flags=re.IGNORECASE):
        name = _MISTRAL_NAME.match(part.strip())
        if name is None:
            calls += _objects(part)
            continue
        arguments = _arguments(part.strip()[name.end() :])
        if arguments is not None:
            calls.append((name[1], arguments))
    return calls


def _bare(text: str) -> Sequence[Call]:
    llama = _LLAMA.match(text)
    body = (text[llama.end() :] if llama else text).strip()
    if body.startswith("```") and body.endswith("```"):
        body = body.removesuffix("```").partition("\n")[2]
    return _objects(body)


def _objects(text: str) -> list[Call]:
    """The calls of a text that is JSON: an object, objects one after the other, or a list."""
    body = text.strip().removesuffix("<|eom_id|>").removesuffix("<|eot_id|>").strip()
    if not body.startswith(("{", "[")) or not body.endswith(("}", "]")):
        return []
    calls: list[Call] = []
    for document in documents(body):
        if not document.is_whole:
            return []
        items = document.value if isinstance(document.value, list) else [document.value]
        for item in items:
            call = _call(item)
            if call is None:
                return []
            calls.append(call)
    return calls


def _call(item: Any) -> Call | None:
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("function"), dict):
        item = item["function"]
    name = item.get("name") or item.get("function")
    arguments = item.get("arguments", item.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = _arguments(arguments)
    extra = set(item) - {"name", "function", "arguments", "parameters", "id", "type"}
    if not isinstance(name, str) or not isinstance(arguments, dict) or extra:
        return None
    return name, arguments


def _arguments(text: str) -> dict[str, Any] | None:
    values = list(documents(text))
    whole = len(values) == 1 and values[0].is_whole and isinstance(values[0].value, dict)
    return values[0].value if whole else None


def _value(text: str) -> Any:
    plain = text.strip("\n")
    try:
        return json.loads(plain, parse_constant=refuse, parse_float=finite)
    except (ValueError, RecursionError):
        return plain
