"""Reads the answers of the deriver's model, as far as they are unambiguous. An unreadable part of a
statement is left out; the statement remains."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memservice.domain.derived_rules import (
    CERTAIN,
    CERTAINTIES,
    MAX_CONTENT_LENGTH,
    STATEMENT_KINDS,
)
from memservice.domain.time_spans import parse_span
from memservice.reasoning.prompts.derive import OTHER
from memservice.spi.reasoner import Known, Statement

MAX_STATEMENTS = 500
"""Statements of one batch. No batch of messages states more: beyond this number the model repeats
itself without end."""
MAX_REASON = 300
"""Characters."""

_INTEGER = re.compile(r"\d+")
_HELD = re.compile(r"\bc\d{1,3}\b")
_LETTERS = re.compile(r"\b[A-Z]{1,3}\b")
_CONTENT_NAMES = ("content", "statement", "text", "fact", "conclusion")
_CITATION_NAMES = ("messages", "message", "sources", "source", "entries", "entry", "citations")


def shaped(value: Any, entries: int) -> Any:
    """The document in the requested form, if it can be recognised: a bare list, texts instead of
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
    shaped = {"messages": numbers, "basis": basis, "confirms": letters} | _details(item)
    return shaped | ({} if content is None else {"content": content})


def _details(item: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a statement besides its text and its sources; a value of another form counts as
    missing."""
    replaced = item.get("replaces")
    ids = [
        mark
        for mark_text in (replaced if isinstance(replaced, list) else [replaced])
        if isinstance(mark_text, str)
        for mark in _HELD.findall(mark_text.casefold())[:20]
    ]
    reason = item.get("reason")
    return {
        "kind": _one_of((*STATEMENT_KINDS, OTHER), item.get("kind"), OTHER),
        "when": _when(item.get("when")),
        "certainty": _one_of(CERTAINTIES, item.get("certainty"), CERTAIN),
        "replaces": ids,
        "reason": reason if isinstance(reason, str) else "",
    }


def _one_of(words: Sequence[str], value: object, otherwise: str) -> str:
    word = value.strip().casefold() if isinstance(value, str) else ""
    return word if word in words else otherwise


def _when(value: object) -> str:
    """A span as text, also of an object or a list with a start and an end."""
    if isinstance(value, dict):
        names = (("start", "from"), ("end", "to"))
        value = [next((value[name] for name in pair if name in value), None) for pair in names]
    if isinstance(value, list) and 1 <= len(value) <= 2:
        return "/".join(part.strip() if isinstance(part, str) else "" for part in value)
    return value if isinstance(value, str) else ""


def cites(items: Sequence[Mapping[str, Any]]) -> bool:
    return any(item["messages"] for item in items)


def statements(
    items: Sequence[Mapping[str, Any]],
    keys: Mapping[int, int],
    letters: Mapping[str, int],
    conclusions: Mapping[str, Known],
) -> list[Statement]:
    """The statements that cite new messages. `keys` and `letters`: of messages, by the marks of the
    prompt. `conclusions`: those in the prompt, by their ids."""
    parsed = []
    for item in items:
        content = item["content"].strip()
        cited = tuple(dict.fromkeys(keys[number] for number in item["messages"] if number in keys))
        if content and cited and len(content) <= MAX_CONTENT_LENGTH:
            confirmed = (letters[mark] for mark in item["confirms"] if mark in letters)
            parsed.append(
                Statement(
                    content,
                    cited,
                    basis=item["basis"],
                    confirms=tuple(dict.fromkeys(confirmed)),
                    kind=None if item["kind"] == OTHER else item["kind"],
                    when=parse_span(item["when"]),
                    certainty=item["certainty"],
                    replaces=tuple(
                        dict.fromkeys(
                            conclusions[mark].uid
                            for mark in item["replaces"]
                            if mark in conclusions
                        )
                    ),
                    reason=" ".join(item["reason"].split())[:MAX_REASON],
                )
            )
    return parsed


def distinct(derived: Sequence[Statement]) -> list[Statement]:
    """Each statement once, with all the messages that it comes from; `MAX_STATEMENTS` at most."""
    by_text: dict[str, Statement] = {}
    for statement in derived:
        same = " ".join(statement.content.casefold().split())
        if same not in by_text and len(by_text) >= MAX_STATEMENTS:
            break
        before = by_text.get(same, replace(statement, message_keys=(), confirms=(), replaces=()))
        by_text[same] = replace(
            before,
            message_keys=tuple(dict.fromkeys((*before.message_keys, *statement.message_keys))),
            confirms=tuple(dict.fromkeys((*before.confirms, *statement.confirms))),
            replaces=tuple(dict.fromkeys((*before.replaces, *statement.replaces))),
        )
    return list(by_text.values())
