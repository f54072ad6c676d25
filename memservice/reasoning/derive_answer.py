"""Reading what the deriver's model answers: as far as it can be understood, and no further. A part
of a statement that cannot be read is left out; the statement stays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memservice.domain.derived_rules import MAX_CONTENT_LENGTH
from memservice.spi.reasoner import Statement

MAX_STATEMENTS = 500
"""Of one batch; a batch of messages never states so much, so what is beyond is a model that cannot
stop."""

_INTEGER = re.compile(r"\d+")
_LETTERS = re.compile(r"\b[A-Z]{1,3}\b")
_CONTENT_NAMES = ("content", "statement", "text", "fact", "conclusion")
_CITATION_NAMES = ("messages", "message", "sources", "source", "entries", "entry", "citations")


def shaped(value: Any, entries: int) -> Any:
    """The document in the requested form, as far as it can be told: a bare list, texts instead of
    objects, other names, numbers as text. A statement without citation takes the only entry."""
    if isinstance(value, dict) and "statements" not in value and len(value) == 1:
        (value,) = value.values()
    items = value.get("statements") if isinstance(value, dict) else value
    if not isinstance(items, list):
        return value
    return {"statements": [_shaped_item(item, entries) for item in items]}


def _shaped_item(item: Any, entries: int) -> Any:
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, dict):
        return item
    content = next((item[key] for key in _CONTENT_NAMES if isinstance(item.get(key), str)), None)
    cited: Any = next((item[key] for key in _CITATION_NAMES if key in item), [])
    numbers = [
        int(digits)
        for number in (cited if isinstance(cited, list) else [cited])
        for digits in _INTEGER.findall(str(number))[:20]
        if len(digits) < 10
    ]
    if not numbers and entries == 1:
        numbers = [1]
    named = item.get("confirms")
    letters = [
        letter
        for mark in (named if isinstance(named, list) else [named])
        if isinstance(mark, str)
        for letter in _LETTERS.findall(mark)[:20]
    ]
    basis = "confirmed" if item.get("basis") == "confirmed" else "said"
    shaped = {"messages": numbers, "basis": basis, "confirms": letters}
    return shaped | ({} if content is None else {"content": content})


def cites(items: Sequence[Mapping[str, Any]]) -> bool:
    return any(item["messages"] for item in items)


def statements(
    items: Sequence[Mapping[str, Any]], keys: Mapping[int, int], letters: Mapping[str, int]
) -> list[Statement]:
    found = []
    for item in items:
        content = item["content"].strip()
        cited = tuple(dict.fromkeys(keys[number] for number in item["messages"] if number in keys))
        if content and cited and len(content) <= MAX_CONTENT_LENGTH:
            confirmed = (letters[mark] for mark in item["confirms"] if mark in letters)
            found.append(
                Statement(
                    content, cited, basis=item["basis"], confirms=tuple(dict.fromkeys(confirmed))
                )
            )
    return found


def distinct(found: Sequence[Statement]) -> list[Statement]:
    """Each statement once, with all the messages that it comes from; `MAX_STATEMENTS` at most."""
    by_text: dict[str, Statement] = {}
    for statement in found:
        same = " ".join(statement.content.casefold().split())
        if same not in by_text and len(by_text) >= MAX_STATEMENTS:
            break
        before = by_text.get(same, replace(statement, message_keys=(), confirms=()))
        by_text[same] = replace(
            before,
            message_keys=tuple(dict.fromkeys((*before.message_keys, *statement.message_keys))),
            confirms=tuple(dict.fromkeys((*before.confirms, *statement.confirms))),
        )
    return list(by_text.values())
