"""Two filters outside the general language: generation 1's containment, and the session allowlist
of chat and representations."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import TRUE, Condition
from memservice.domain.filters.keys import containment
from memservice.domain.filters.limits import as_list, refuse
from memservice.domain.filters.operands import type_name
from memservice.domain.values import name_problem, shown

ALLOWLIST_MAX = 1_000


def parse_containment(filter_: object, loc: Sequence[str | int] = ("filter",)) -> Condition:
    """Generation 1's `filter`: metadata contains this object. It has no operators, every key is
    literal, and null and `{}` match every row."""
    if filter_ is None:
        return TRUE
    if not isinstance(filter_, dict):
        refuse(tuple(loc), f"Filter must be an object, got {type_name(filter_)}")
    return containment("metadata", filter_, tuple(loc))


def recall_allowlist(
    filters: object, session_id: str | None, loc: Sequence[str | int] = ("filters",)
) -> list[str] | None:
    """The sessions that chat or a representation may use, each once, in the order of `filters`;
    None means all sessions, `[]` none.

    `filters` may only be `{"session_id": …}` with an id, a list, or `{"in": list}`. The argument
    `session_id` must be on that list.
    """
    here = tuple(loc)
    if filters is None or filters == {}:
        return None
    if not isinstance(filters, dict):
        refuse(here, f"Filters must be an object, got {type_name(filters)}")
    for name in filters:
        if name != "session_id":
            refuse((*here, shown(name)), "Only 'session_id' can be filtered on here")
    here = (*here, "session_id")
    names = _names(filters["session_id"], here)
    if len(names) > ALLOWLIST_MAX:
        refuse(here, f"At most {ALLOWLIST_MAX} sessions can be listed, got {len(names)}")
    allowed: dict[str, None] = {}
    for index, name in enumerate(names):
        if not isinstance(name, str):
            refuse((*here, index), f"Session ids must be strings, got {type_name(name)}")
        if problem := name_problem(name):
            refuse((*here, index), problem)
        allowed[name] = None
    if session_id is not None and session_id not in allowed:
        refuse(here, "session_id must be one of the sessions in filters")
    return list(allowed)


def _names(value: object, loc: tuple[str | int, ...]) -> list[object]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and list(value) == ["in"]:
        return as_list(value["in"], loc)
    refuse(loc, "'session_id' must be an id, a list of ids, or {\"in\": [ids]}")
