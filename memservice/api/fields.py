"""Fields: deserialisation of JSON and query values, and serialisation of rows.

Deserialisation is as lenient as pydantic's default mode, which the published clients expect:
booleans may be written as `true`, `"true"`, `1`, `"yes"` …, integers as `5`, `5.0` or `"5"`,
numbers as numeric strings, times as ISO 8601 or Unix seconds. No other type is converted to a
string, and `true` is not a number.

A field's `wire` converts a row's value to JSON; both `Schema.dump` and the encoders
(`api.encoding`) call it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from flask import request
from marshmallow import Schema, ValidationError, fields

from memservice.domain import configuration, times
from memservice.domain.records import ACTIVE
from memservice.domain.values import INT_MAX, INT_MIN

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}(?:\.0+)?")
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})


MAX_REPORTED = 100
"""Maximum number of invalid entries of one list or map that are reported."""


class TypedMessage(str):
    """An error text with its kind, the `type` in the response body."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, text: str, code: str) -> TypedMessage:
        typed_message = super().__new__(cls, text)
        typed_message.code = code
        return typed_message

    def format(self, *args: object, **kwargs: object) -> TypedMessage:
        return TypedMessage(super().format(*args, **kwargs), self.code)


def _messages(text: str, code: str) -> dict[str, Any]:
    wrong = TypedMessage(text, code)
    return {
        "required": TypedMessage("Field required", "missing"),
        "null": wrong,
        "invalid": wrong,
        "type": wrong,
    }


_NUL: dict[str, Any] = {"nul": TypedMessage("Names must not contain NUL", "value_error")}


class _Shown:
    """Common behaviour of the fields: direct validation, and `wire`."""

    validators: list[Callable[[Any], Any]]
    wire: ClassVar[Any] = None
    """A static function that converts the value, or None if the value is JSON already. Null is not
    converted."""

    def _validate(self, value: Any) -> None:
        for check in self.validators:
            check(value)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        wire = type(self).wire
        return value if value is None or wire is None else wire(value)


class String(_Shown, fields.String):
    default_error_messages = _messages("Input should be a valid string", "string_type")

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        return value


class Name(String):
    """The id of a resource. Its full pattern is checked only on creation; NUL is always refused,
    since no id contains it and some stores cannot search for it."""

    default_error_messages = _NUL

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str:
        name = super()._deserialize(value, attr, data, **kwargs)
        if "\0" in name:
            raise self.make_error("nul")
        return name


class FromPath(String):
    """A value of the response from the request's path instead of a row."""

    _CHECK_ATTRIBUTE = False

    def __init__(self, parameter: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parameter = parameter

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return (request.view_args or {})[self.parameter]


class Boolean(_Shown, fields.Boolean):
    default_error_messages = _messages(
        "Input should be a valid boolean, unable to interpret input", "bool_parsing"
    )

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            word = value.lower()
            if word in _TRUE:
                return True
            if word in _FALSE:
                return False
        elif isinstance(value, int | float) and value in (0, 1):
            return value == 1
        raise self.make_error("invalid")


class IsActive(Boolean):
    """Whether a session is active."""

    @staticmethod
    def wire(state: str) -> bool:  # pyrefly: ignore[bad-override]
        return state == ACTIVE


class Integer(_Shown, fields.Integer):
    default_error_messages = _messages("Input should be a valid integer", "int_parsing")

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> int:
        if isinstance(value, str) and _INTEGER.fullmatch(text := value.strip()):
            number = int(text.partition(".")[0])
        elif isinstance(value, float) and value.is_integer():
            number = int(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            number = value
        else:
            raise self.make_error("invalid")
        if not INT_MIN <= number <= INT_MAX:
            raise self.make_error("invalid")
        return number


class Float(_Shown, fields.Float):
    default_error_messages = _messages("Input should be a valid number", "float_parsing")

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise self.make_error("invalid")
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise self.make_error("invalid") from None
        if not math.isfinite(number):
            raise self.make_error("invalid")
        return number


class DateTime(_Shown, fields.DateTime):
    """A time. Parsed as aware UTC, written with suffix `Z`."""

    default_error_messages = _messages("Input should be a valid datetime", "datetime_parsing")
    wire = staticmethod(times.wire)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> datetime:
        try:
            return times.parse_time(value)
        except ValueError as error:
            raise ValidationError(TypedMessage(str(error), "datetime_parsing")) from None


class Seconds(String):
    """A time that is truncated to seconds in responses."""

    wire = staticmethod(times.wire_seconds)


class SummaryType(String):
    """The kind of a summary by its wire name."""

    @staticmethod
    def wire(kind: str) -> str:  # pyrefly: ignore[bad-override]
        return f"honcho_chat_summary_{kind}"


class JsonObject(_Shown, fields.Dict):
    """A JSON object with any keys."""

    default_error_messages = _messages("Input should be a valid dictionary", "dict_type")

    def __init__(self, **kwargs: Any) -> None:
        # the document would omit this default, since it is a function
        if kwargs.get("load_default") is dict:
            kwargs["metadata"] = {"default": {}, **kwargs.get("metadata", {})}
        super().__init__(**kwargs)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.make_error("invalid")
        return value


class Configuration(JsonObject):
    """A workspace's or session's configuration in responses: only known keys in its sections,
    without nulls."""

    wire = staticmethod(configuration.public)


class Map(_Shown, fields.Dict):
    """A JSON object whose keys are names and whose values have the same type. The location of an
    error includes the key."""

    default_error_messages = _messages("Input should be a valid dictionary", "dict_type")

    def __init__(self, values: fields.Field[Any], **kwargs: Any) -> None:
        super().__init__(keys=Name(), values=values, **kwargs)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.make_error("invalid")
        assert self.key_field is not None
        assert self.value_field is not None
        loaded: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        for key, inner in value.items():
            try:
                self.key_field.deserialize(key)
                loaded[key] = self.value_field.deserialize(inner)
            except ValidationError as error:
                errors[key] = error.messages
                if len(errors) == MAX_REPORTED:
                    break
        if errors:
            raise ValidationError(errors)
        return loaded

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        if value is None:
            return None
        assert self.value_field is not None
        return {key: self.value_field._serialize(inner, None, None) for key, inner in value.items()}


class List(fields.List[Any]):
    default_error_messages = _messages("Input should be a valid list", "list_type")

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> list[Any]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        # check the length before the entries
        self._validate(value)
        loaded: list[Any] = []
        errors: dict[int, Any] = {}
        for index, inner in enumerate(value):
            try:
                loaded.append(self.inner.deserialize(inner))
            except ValidationError as error:
                errors[index] = error.messages
                if len(errors) == MAX_REPORTED:
                    break
        if errors:
            raise ValidationError(errors)
        return loaded


class Nested(fields.Nested):
    """An object with its own schema."""

    default_error_messages = _messages(
        "Input should be a valid dictionary or object to extract fields from",
        "model_attributes_type",
    )

    def __init__(self, nested: type[Schema] | Schema, **kwargs: Any) -> None:
        super().__init__(nested, **kwargs)


class OneOrMore(_Shown, fields.Raw):
    """A name, or a list of names. The location of an error includes the index of the entry."""

    def __init__(self, most: int, **kwargs: Any) -> None:
        many = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": most}
        super().__init__(metadata={"anyOf": [{"type": "string"}, many, {"type": "null"}]}, **kwargs)
        self._one = Name()
        self._maximum = most

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str | list[str]:
        if not isinstance(value, list):
            one: str = self._one.deserialize(value)
            return one
        if not 1 <= len(value) <= self._maximum:
            code = "too_short" if not value else "too_long"
            raise ValidationError(
                TypedMessage(f"List should have 1 to {self._maximum} items, not {len(value)}", code)
            )
        errors: dict[int, Any] = {}
        for index, name in enumerate(value):
            try:
                self._one.deserialize(name)
            except ValidationError as error:
                errors[index] = error.messages
        if errors:
            raise ValidationError(errors)
        return value
