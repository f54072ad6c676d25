"""Statements that give a property with one value at a time, such as a home, its newer value: the
earlier statements are superseded when the new one is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.derived_rules import CERTAIN
from memservice.spi.reasoner import DeriveRequest, Statement
from memservice_extractive.facts import Fact, comparable, read


class _Value(Struct, frozen=True):
    fact: Fact
    order: tuple[datetime, int]
    """When the statement was made last, and the position of that message among the new ones. Stored
    values come before all of them."""


def with_replacements(
    statements: Sequence[Statement], request: DeriveRequest
) -> Sequence[Statement]:
    """The statements, with the stored facts and the other statements that each one replaces."""
    names = (request.observed, request.names.get(request.observed, ""))
    positions = {message.key: position for position, message in enumerate(request.messages, 1)}
    times = {message.key: message.sent_at for message in request.messages}
    new: dict[int, _Value] = {}
    for index, statement in enumerate(statements):
        fact = _plain_fact(statement, names)
        if fact is not None:
            last = max(statement.message_keys, key=positions.__getitem__)
            new[index] = _Value(fact, (times[last], positions[last]))
    if not new:
        return statements
    stored = {
        row.uid: _Value(fact, (row.said_at, 0))
        for row in request.context.facts
        if (fact := read(row.content, names)) is not None and fact.slot is not None
    }
    return [
        _replacing(statement, new[index], stored, new, statements) if index in new else statement
        for index, statement in enumerate(statements)
    ]


def _plain_fact(statement: Statement, names: Sequence[str]) -> Fact | None:
    """The fact of a statement, if it gives a slot its value and is certain."""
    if statement.kind != "fact" or statement.certainty != CERTAIN:
        return None
    fact = read(statement.content, names)
    return None if fact is None or fact.slot is None else fact


def _replacing(
    statement: Statement,
    value: _Value,
    stored: dict[str, _Value],
    new: dict[int, _Value],
    statements: Sequence[Statement],
) -> Statement:
    replaces = tuple(uid for uid, other in stored.items() if _is_newer(value, other))
    outdates = tuple(
        statements[index].content for index, other in new.items() if _is_newer(value, other)
    )
    slot = " ".join(value.fact.slot or ())
    return replace(statement, replaces=replaces, outdates=outdates, reason=f"updated: {slot}")


def _is_newer(value: _Value, other: _Value) -> bool:
    slot = value.fact.slot
    if slot is None or slot != other.fact.slot or value.order <= other.order:
        return False
    return comparable(slot, other.fact.value, value.fact.value)
