"""Validation of the lines of an export. A file may come from anyone, so nothing in it is
trusted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, get_type_hints

from memservice.domain import records as r
from memservice.domain.values import INT_MAX, SCOPE_NAME_MAX, name_problem, shown
from memservice.services.tasks.kinds import KINDS
from memservice.services.transfer import record_formats, tasks
from memservice.services.transfer.lines import Line, UnreadableExport, parse_time
from memservice.services.transfer.record_formats import RecordFormat

UID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
DIMENSION_MAX = 65_536

_CHOICES: Mapping[tuple[str, str], Collection[str]] = {
    ("workspaces", "state"): (r.ACTIVE,),
    ("peers", "kind"): (r.PEER, r.SCOPE),
    ("members", "kind"): (r.PEER, r.SCOPE),
    ("sessions", "state"): (r.ACTIVE, r.ARCHIVED),
    ("scope_sessions", "state"): ("pending", "completed", "failed"),
    ("summaries", "kind"): (r.SHORT, r.LONG),
    ("conclusions", "level"): r.LEVELS,
    ("conclusions", "state"): (r.LIVE, r.SUPERSEDED),
    ("spaces", "kind"): tuple(record_formats.SPACED),
    ("spaces", "state"): (r.ACTIVE,),
    ("webhook_endpoints", "state"): (r.ACTIVE, r.PAUSED),
    ("tasks", "state"): (r.PENDING, r.FAILED),
    ("tasks", "kind"): tasks.MOVABLE,
}
"""Fields with a fixed set of values. A row with any other value would be invisible, or could not be
processed."""


def complete(kind: str, lines: Sequence[Line]) -> list[Line]:
    """The lines of one kind with every field. Raises UnreadableExport for a kind that is not
    supported, and for a line with a missing or wrong field."""
    if kind == record_formats.VECTOR:
        for line in lines:
            require_vector(line)
        return list(lines)
    record_format = record_formats.FORMATS.get(kind)
    if record_format is None:
        raise UnreadableExport(
            f"rows of kind {shown(kind)!r} are not supported; supported: "
            f"{', '.join(sorted(record_formats.FORMATS))}"
        )
    completed = [record_format.complete(line) for line in lines]
    for line in completed:
        require_row(record_format, line)
    return completed


def require_row(record_format: RecordFormat, line: Line) -> None:
    """Raises UnreadableExport unless every field of this line is present and has its type."""
    for name, fits, description in _fields(record_format):
        if name not in line:
            raise UnreadableExport(f"a row of {record_format.name} has no `{name}`")
        if not fits(line[name]):
            raise _wrong(record_format, name, line[name], f"must be {description}")
    if "slug" in record_format.plain:
        _require_slug(record_format, line)
    if record_format.record is r.Task:
        _require_payload(line)
    if record_format.record is r.Conclusion and not _spans(line["internal"].get("lapses", [])):
        raise _wrong(record_format, "internal", line["internal"], "has `lapses` that are no spans")
    if record_format.record is r.Space and not 0 < line["dimension"] <= DIMENSION_MAX:
        raise _wrong(
            record_format, "dimension", line["dimension"], f"must be from 1 to {DIMENSION_MAX}"
        )


def require_vector(line: Line) -> None:
    """Like `require_row`, for a line with a vector."""
    space: Any = line.get("space")
    has_names = (
        isinstance(space, dict)
        and isinstance(space.get("kind"), str)
        and isinstance(space.get("embedder"), str)
    )
    if not (has_names and isinstance(space.get("dimension"), int)):
        raise UnreadableExport("a vector has no `space` of a kind, an embedder and a dimension")
    if not (_uid(line.get("uid")) and isinstance(line.get("vector"), str)):
        raise UnreadableExport("a vector has no `uid` of a row, or no `vector` of base64 text")


def require_name(name: object) -> str:
    """The id of a workspace. Raises UnreadableExport for an invalid one."""
    problem = name_problem(name) if isinstance(name, str) else "it is not a string"
    if problem is not None or not isinstance(name, str):
        raise UnreadableExport(f"{shown(name)!r} cannot be the id of a workspace: {problem}")
    return name


def _require_slug(record_format: RecordFormat, line: Line) -> None:
    """Check the slug of a row. The name of a peer cannot contain the dot of a scope's name, so no
    peer can pass for a scope."""
    slug: str = line["slug"]
    if line.get("kind") == r.SCOPE:
        problem = name_problem(slug.removeprefix(r.SCOPE_PREFIX), SCOPE_NAME_MAX)
        problem = problem or (
            None
            if slug.startswith(r.SCOPE_PREFIX)
            else f"the slug of a scope begins with {r.SCOPE_PREFIX}"
        )
    else:
        problem = name_problem(slug)
    if problem is not None:
        raise _wrong(record_format, "slug", slug, f"cannot be an id: {problem}")


def _require_payload(line: Line) -> None:
    kind, payload = line["kind"], line["payload"]
    if KINDS[kind].of_rows and payload.get("kind") not in list(record_formats.SPACED):
        raise UnreadableExport(
            f"a task of kind {kind!r} refers to rows of a kind without vectors: "
            f"{shown(payload.get('kind'))!r}"
        )
    for entry, (_, uids) in tasks.references_of(kind, payload).items():
        if not all(isinstance(uid, str) for uid in uids):
            raise UnreadableExport(
                f"a task of kind {kind!r} refers to rows in `{entry}` without uids"
            )
    texts = KINDS[kind].texts
    if not all(isinstance(payload.get(entry), str) for entry in texts):
        raise UnreadableExport(
            f"a task of kind {kind!r} must have the text fields {', '.join(texts)}"
        )


def _wrong(record_format: RecordFormat, name: str, value: object, rule: str) -> UnreadableExport:
    return UnreadableExport(
        f"a row of {record_format.name} has the `{name}` {shown(value)!r}, which {rule}"
    )


_Fits = Callable[[Any], bool]


@cache
def _fields(record_format: RecordFormat) -> list[tuple[str, _Fits, str]]:
    """Every field of a line of this kind: its name, the check of a value, and a description of
    valid values."""
    hints = get_type_hints(record_format.record)
    checks: list[tuple[str, _Fits, str]] = []
    for field in record_format.plain:
        choices = _CHOICES.get((record_format.name, field))
        if choices is not None:
            checks.append((field, _one_of(choices), f"one of {', '.join(choices)}"))
        elif field == "uid":
            checks.append((field, _uid, "a uid"))
        else:
            checks.append((field, *_type(hints[field])))
    for field in record_format.references:
        fits, description = (
            (_none_or(_uid), "the uid of a row, or null")
            if type(None) in _parts(hints[field])
            else (_uid, "the uid of a row")
        )
        checks.append((record_formats.name_of(field), fits, description))
    checks += [
        (record_formats.name_of(field), _list_of(_uid), "a list of uids")
        for field in record_format.lists
    ]
    return checks


def _type(hint: Any) -> tuple[_Fits, str]:
    parts = _parts(hint)
    fits, description = _TYPES[next(part for part in parts if part is not type(None))]
    return (
        (_none_or(fits), f"{description}, or null") if type(None) in parts else (fits, description)
    )


def _parts(hint: Any) -> tuple[Any, ...]:
    return tuple(hint.__args__) if isinstance(hint, UnionType) else (hint,)


def _none_or(fits: _Fits) -> _Fits:
    return lambda value: value is None or fits(value)


def _one_of(choices: Collection[str]) -> _Fits:
    return lambda value: isinstance(value, str) and value in choices


def _list_of(fits: _Fits) -> _Fits:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _uid(value: Any) -> bool:
    return isinstance(value, str) and UID.fullmatch(value) is not None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT_MAX


def _spans(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(span, list) and len(span) == 2 and all(map(_time, span)) for span in value
    )


def _time(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return parse_time(value).tzinfo is not None
    except ValueError:
        return False


_TYPES: Mapping[Any, tuple[_Fits, str]] = {
    str: (_text, "a string"),
    int: (_number, "a non-negative integer"),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    datetime: (_time, "a time with its zone"),
    r.JsonObject: (lambda value: isinstance(value, dict), "an object"),
    list[str]: (_list_of(_text), "a list of strings"),
}
"""Record field type → its check and description."""
