"""Encoders: compiled forms of a schema's `dump`.

`encoder(schema)(row, path)` equals `schema.dump(row)` inside a request whose path parameters are
`path`, at a fraction of its cost: the fields are inspected when the encoder is built, not for every
row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from marshmallow import Schema, fields

from memservice.api.fields import FromPath
from memservice.domain import times

# fast path: see docs/decisions/fast-paths.md#encoding

Path = Mapping[str, str]
Encode = Callable[[Any, Path], Any]


def encoder(schema: Schema | type[Schema], *, keep_times: bool = False) -> Encode:
    """A function that converts a row (read by attribute) into the dictionary of `schema`, with keys
    in the schema's order. `keep_times`: times stay datetimes, which `json_answer` writes."""
    shape = schema() if isinstance(schema, type) else schema
    output_fields = {(field.data_key or name): field for name, field in shape.dump_fields.items()}
    path_fields = [
        (key, field.parameter)
        for key, field in output_fields.items()
        if isinstance(field, FromPath)
    ]
    attributes = {
        key: field.attribute or key
        for key, field in output_fields.items()
        if not isinstance(field, FromPath)
    }
    if len(attributes) < 2:
        return _single(output_fields, path_fields, attributes, keep_times)
    # A value from the path has no attribute; a placeholder attribute keeps its position among the
    # keys.
    placeholder = next(iter(attributes.values()))
    attributes_of = attrgetter(*(attributes.get(key, placeholder) for key in output_fields))
    keys = tuple(output_fields)
    # Most conversions need only the value: this saves one call for each.
    wires = [
        (key, wire)
        for key, field in output_fields.items()
        if key in attributes and (wire := _wire(field, keep_times))
    ]
    changes = [
        (key, change)
        for key, field in output_fields.items()
        if key in attributes
        and not _wire(field, keep_times)
        and (change := _change(field, keep_times))
    ]

    def encode(row: Any, path: Path) -> dict[str, Any]:
        encoded = dict(zip(keys, attributes_of(row)))  # noqa: B905 - as many values as keys, by construction
        for key, parameter in path_fields:
            encoded[key] = path[parameter]
        for key, wire in wires:
            value = encoded[key]
            if value is not None:
                encoded[key] = wire(value)
        for key, change in changes:
            encoded[key] = change(encoded[key], path)
        return encoded

    return encode


def _single(
    output_fields: Mapping[str, fields.Field[Any]],
    path_fields: list[tuple[str, str]],
    attributes: Mapping[str, str],
    keep_times: bool,
) -> Encode:
    """Like `encoder`, for a schema with at most one stored field (`attrgetter` returns a tuple only
    for several)."""
    changes = {key: _change(output_fields[key], keep_times) for key in attributes}
    parameters = dict(path_fields)

    def encode(row: Any, path: Path) -> dict[str, Any]:
        encoded: dict[str, Any] = {}
        for key in output_fields:
            if key in parameters:
                encoded[key] = path[parameters[key]]
            else:
                value, change = getattr(row, attributes[key]), changes[key]
                encoded[key] = change(value, path) if change else value
        return encoded

    return encode


def _change(field: fields.Field[Any], keep_times: bool) -> Encode | None:
    """The conversion of a field's value, or None if it has none."""
    if isinstance(field, fields.Nested):
        inner = encoder(field.schema, keep_times=keep_times)
        return (
            inner
            if not field.allow_none
            else lambda value, path: None if value is None else inner(value, path)
        )
    if isinstance(field, fields.List):
        item = _change(field.inner, keep_times)
        if item is None:
            return lambda value, path: None if value is None else list(value)
        return lambda value, path: None if value is None else [item(entry, path) for entry in value]
    if isinstance(field, fields.Dict) and field.value_field is not None:
        each = _change(field.value_field, keep_times)
        if each is None:
            return None
        return lambda value, path: (
            None if value is None else {key: each(entry, path) for key, entry in value.items()}
        )
    wire = _wire(field, keep_times)
    if wire is None:
        return None
    return lambda value, path: None if value is None else wire(value)


def _wire(field: fields.Field[Any], keep_times: bool) -> Callable[[Any], Any] | None:
    wire: Callable[[Any], Any] | None = getattr(type(field), "wire", None)
    return None if keep_times and wire is times.wire else wire
