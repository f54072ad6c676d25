"""Reading what the deriver's model answers: as far as it can be understood, and no further. A part
of a statement that cannot be read is left out; the statement stays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

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
"""Of one batch; a batch of messages never states so much, so what is beyond is a model that cannot
stop."""
MAX_REASON = 300
"""Characters."""

_INTEGER = re.compile(r"\d+")
_HELD = re.compile(r"\bc\d{1,3}\b")
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
    shaped = {"messages": numbers, "basis": basis, "confirms": letters} | _details(item)
    return shaped | ({} if content is None else {"content": content})


def _details(item: Mapping[str, Any]) -> dict[str, Any]:
    """What a statement has beside its text and its sources; a value of another form counts as not
    given."""
    replaced = item.get("replaces")
    ids = [
        mark
        for given in (replaced if isinstance(replaced, list) else [replaced])
        if isinstance(given, str)
        for mark in _HELD.findall(given.casefold())[:20]
    ]
    reason = item.get("reason")
    return {
        "kind": _one_of((*STATEMENT_KINDS, OTHER), item.get("kind"), OTHER),
        "when": _when(item.get("when")),
        "certainty": _one_of(CERTAINTIES, item.get("certainty"), CERTAIN),
        "replaces": ids,
        "reason": reason if isinstance(reason, str) else "",
    }


def _one_of(words: Sequence[str], given: object, otherwise: str) -> str:
    word = given.strip().casefold() if isinstance(given, str) else ""
    return word if word in words else otherwise


def _when(given: object) -> str:
    """A span as text, also of an object or a list with a start and an end."""
    if isinstance(given, dict):
        names = (("start", "from"), ("end", "to"))
        given = [next((given[name] for name in pair if name in given), None) for pair in names]
    if isinstance(given, list) and 1 <= len(given) <= 2:
        return "/".join(part.strip() if isinstance(part, str) else "" for part in given)
    return given if isinstance(given, str) else ""


def cites(items: Sequence[Mapping[str, Any]]) -> bool:
    return any(item["messages"] for item in items)


def statements(
    items: Sequence[Mapping[str, Any]],
    keys: Mapping[int, int],
    letters: Mapping[str, int],
    held: Mapping[str, Known],
) -> list[Statement]:
    """The statements that cite new messages. `keys` and `letters`: of messages, by the marks of the
    prompt. `held`: the conclusions that were shown, by their ids."""
    found = []
    for item in items:
        content = item["content"].strip()
        cited = tuple(dict.fromkeys(keys[number] for number in item["messages"] if number in keys))
        if content and cited and len(content) <= MAX_CONTENT_LENGTH:
            confirmed = (letters[mark] for mark in item["confirms"] if mark in letters)
            found.append(
                Statement(
                    content,
                    cited,
                    basis=item["basis"],
                    confirms=tuple(dict.fromkeys(confirmed)),
                    kind=None if item["kind"] == OTHER else item["kind"],
                    when=parse_span(item["when"]),
                    certainty=item["certainty"],
                    replaces=tuple(
                        dict.fromkeys(held[mark].uid for mark in item["replaces"] if mark in held)
                    ),
                    reason=" ".join(item["reason"].split())[:MAX_REASON],
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
        before = by_text.get(same, replace(statement, message_keys=(), confirms=(), replaces=()))
        by_text[same] = replace(
            before,
            message_keys=tuple(dict.fromkeys((*before.message_keys, *statement.message_keys))),
            confirms=tuple(dict.fromkeys((*before.confirms, *statement.confirms))),
            replaces=tuple(dict.fromkeys((*before.replaces, *statement.replaces))),
        )
    return list(by_text.values())
