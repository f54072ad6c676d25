"""Encoders: what a schema's `dump` gives, made ready once.

`encoder(schema)(row, path)` equals `schema.dump(row)` inside a request whose path parameters are
`path`, at a small part of its cost: the fields are looked at when the encoder is built, not for
every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from marshmallow import Schema, fields

from memservice.api.fields import FromPath

# fast path: see docs/decisions/fast-paths.md#encoding

Path = Mapping[str, str]
Encode = Callable[[Any, Path], Any]


def encoder(schema: Schema | type[Schema]) -> Encode:
    """The function that turns a row (read by attribute) into the dictionary that `schema`
    describes, keys in the schema's order."""
    shape = schema() if isinstance(schema, type) else schema
    shown = {(field.data_key or name): field for name, field in shape.dump_fields.items()}
    placed = [(key, field.parameter) for key, field in shown.items() if isinstance(field, FromPath)]
    stored = {
        key: field.attribute or key
        for key, field in shown.items()
        if not isinstance(field, FromPath)
    }
    if len(stored) < 2:
        return _single(shown, placed, stored)
    # What comes from the path has no attribute; any other stands in for it, so that it keeps its
    # place among the keys.
    stand_in = next(iter(stored.values()))
    read = attrgetter(*(stored.get(key, stand_in) for key in shown))
    keys = tuple(shown)
    # Most changes need nothing but the value: one call less for each.
    wires = [
        (key, wire) for key, field in shown.items() if key in stored and (wire := _wire(field))
    ]
    changes = [
        (key, change)
        for key, field in shown.items()
        if key in stored and not _wire(field) and (change := _change(field))
    ]

    def encode(row: Any, path: Path) -> dict[str, Any]:
        made = dict(zip(keys, read(row)))  # noqa: B905 - as many values as keys, by construction
        for key, parameter in placed:
            made[key] = path[parameter]
        for key, wire in wires:
            value = made[key]
            if value is not None:
                made[key] = wire(value)
        for key, change in changes:
            made[key] = change(made[key], path)
        return made

    return encode


def _single(
    shown: Mapping[str, fields.Field[Any]], placed: list[tuple[str, str]], stored: Mapping[str, str]
) -> Encode:
    """As `encoder`, for a schema with at most one stored field (`attrgetter` answers a tuple only
    for several)."""
    changes = {key: _change(shown[key]) for key in stored}
    parameters = dict(placed)

    def encode(row: Any, path: Path) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key in shown:
            if key in parameters:
                made[key] = path[parameters[key]]
            else:
                value, change = getattr(row, stored[key]), changes[key]
                made[key] = change(value, path) if change else value
        return made

    return encode


def _change(field: fields.Field[Any]) -> Encode | None:
    """What happens to a value of this field on its way out, or None if nothing does."""
    if isinstance(field, fields.Nested):
        inner = encoder(field.schema)
        return (
            inner
            if not field.allow_none
            else lambda value, path: None if value is None else inner(value, path)
        )
    if isinstance(field, fields.List):
        item = _change(field.inner)
        if item is None:
            return lambda value, path: None if value is None else list(value)
        return lambda value, path: None if value is None else [item(entry, path) for entry in value]
    if isinstance(field, fields.Dict) and field.value_field is not None:
        each = _change(field.value_field)
        if each is None:
            return None
        return lambda value, path: (
            None if value is None else {key: each(entry, path) for key, entry in value.items()}
        )
    wire = _wire(field)
    if wire is None:
        return None
    return lambda value, path: None if value is None else wire(value)


def _wire(field: fields.Field[Any]) -> Callable[[Any], Any] | None:
    found: Callable[[Any], Any] | None = getattr(type(field), "wire", None)
    return found
