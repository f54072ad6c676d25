"""How values are read: as lenient as the clients expect, and no more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from marshmallow import Schema, ValidationError, fields

from memservice.api.fields import (
    MAX_REPORTED,
    Boolean,
    DateTime,
    Float,
    Integer,
    JsonObject,
    List,
    Map,
    Name,
    Nested,
    OneOrMore,
    String,
    TypedMessage,
)
from memservice.api.schema import BaseSchema
from memservice.api.validators import Length, OneOf, Pattern, Range


def read(field: fields.Field[Any], value: object) -> Any:
    return BaseSchema.from_dict({"it": field})().load({"it": value})["it"]


def code(field: fields.Field[Any], value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(field, value)
    messages = caught.value.messages
    assert isinstance(messages, dict)
    (message,) = messages["it"]
    assert isinstance(message, TypedMessage)
    return message.code


@pytest.mark.parametrize(
    "value", [True, "true", "TRUE", "True", "1", 1, 1.0, "on", "t", "y", "YES"]
)
def test_values_that_count_as_true(value: object) -> None:
    assert read(Boolean(), value) is True


@pytest.mark.parametrize("value", [False, "false", "0", 0, 0.0, "off", "F", "n", "No"])
def test_values_that_count_as_false(value: object) -> None:
    assert read(Boolean(), value) is False


@pytest.mark.parametrize("value", ["", "2", 2, -1, 0.5, "maybe", [], {}, None, " true"])
def test_values_that_are_not_booleans_are_refused(value: object) -> None:
    assert code(Boolean(), value) == "bool_parsing"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        ("5", 5),
        (5.0, 5),
        ("5.0", 5),
        (" 5 ", 5),
        ("-5", -5),
        ("+5", 5),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_integers_are_accepted(value: object, number: int) -> None:
    read_value = read(Integer(), value)
    assert read_value == number
    assert type(read_value) is int


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        5.5,
        "5.5",
        True,
        None,
        [],
        "1e3",
        "1_000",
        "٣",
        2**63,
        "9" * 5_000,
        float("1e300"),
        "0x10",
    ],
)
def test_values_that_are_not_integers_are_refused(value: object) -> None:
    assert code(Integer(), value) == "int_parsing"


@pytest.mark.parametrize(("value", "number"), [(0.5, 0.5), ("0.5", 0.5), (1, 1.0), ("1e-3", 0.001)])
def test_numbers_are_accepted(value: object, number: float) -> None:
    assert read(Float(), value) == number


@pytest.mark.parametrize(
    "value", ["", "x", "nan", "inf", "-Infinity", True, None, [], "1e400", 10**400]
)
def test_values_that_are_not_numbers_are_refused(value: object) -> None:
    assert code(Float(), value) == "float_parsing"


@pytest.mark.parametrize("value", [5, 1.5, True, None, [], {}, b"x"])
def test_only_strings_are_accepted_as_text(value: object) -> None:
    assert code(String(), value) == "string_type"


def test_nul_in_names_is_refused() -> None:
    assert read(Name(), "any thing ü") == "any thing ü"
    assert code(Name(), "a\0") == "value_error"


def test_times_are_utc() -> None:
    assert read(DateTime(), "2024-01-01T02:00:00+02:00") == datetime(2024, 1, 1, tzinfo=UTC)
    assert read(DateTime(), 0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert code(DateTime(), "soon") == "datetime_parsing"


def test_errors_of_bounds_have_kinds() -> None:
    assert code(String(validate=Length(2, 3)), "a") == "string_too_short"
    assert code(String(validate=Length(2, 3)), "abcd") == "string_too_long"
    assert code(List(String(), validate=Length(1, 1)), []) == "too_short"
    assert code(List(String(), validate=Length(1, 1)), ["a", "b"]) == "too_long"
    assert code(Integer(validate=Range(1, 2)), 0) == "greater_than_equal"
    assert code(Integer(validate=Range(1, 2)), 3) == "less_than_equal"
    assert code(String(validate=OneOf("a", "b")), "c") == "literal_error"
    assert code(String(validate=Pattern("^[a-z]+$")), "a\n") == "string_pattern_mismatch"
    assert code(JsonObject(), []) == "dict_type"
    assert code(List(String()), "abc") == "list_type"
    assert code(List(String()), {"a": 1}) == "list_type"


def test_nested_problems_have_nested_locations() -> None:
    class Inner(BaseSchema):
        x = Integer(required=True)

    def messages(field: fields.Field[Any], value: object) -> Any:
        with pytest.raises(ValidationError) as caught:
            read(field, value)
        assert isinstance(caught.value.messages, dict)
        return caught.value.messages["it"]

    assert list(messages(Map(Nested(Inner)), {"a": {"x": 1}, "b": {}, "c": 5})) == ["b", "c"]
    assert list(messages(List(Nested(Inner)), [{"x": 1}, {}])) == [1]
    assert list(messages(OneOrMore(3), ["a", 1, None])) == [1, 2]


def test_one_value_or_a_list_is_accepted() -> None:
    assert read(OneOrMore(2), "a") == "a"
    assert read(OneOrMore(2), ["a", "b"]) == ["a", "b"]
    assert code(OneOrMore(2), []) == "too_short"
    assert code(OneOrMore(2), ["a", "b", "c"]) == "too_long"
    assert code(OneOrMore(2), 5) == "string_type"


def test_missing_fields_are_reported_and_unknown_ones_ignored() -> None:
    class Inner(BaseSchema):
        x = String(required=True)

    assert isinstance(Inner(), Schema)
    assert Inner().load({"x": "a", "y": 1}) == {"x": "a"}
    with pytest.raises(ValidationError) as caught:
        Inner().load({})
    assert isinstance(caught.value.messages, dict)
    assert caught.value.messages["x"][0].code == "missing"


class Looked(String):
    """Counts what it was asked to read."""

    number = 0

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        self.number += 1
        return super()._deserialize(value, *args, **kwargs)


def test_a_list_that_is_too_long_is_refused_without_reading_it() -> None:
    """A small body can contain a million entries, each of which would be read and reported."""
    inner = Looked()
    assert code(List(inner, validate=Length(1, 100)), [None] * 1000) == "too_long"
    assert inner.number == 0


@pytest.mark.parametrize("field", [List(String()), Map(Nested(BaseSchema))])
def test_the_number_of_reported_entries_is_limited(field: fields.Field[Any]) -> None:
    entries = dict.fromkeys(map(str, range(1000)), 5)
    with pytest.raises(ValidationError) as caught:
        read(field, entries if isinstance(field, Map) else list(entries.values()))
    assert isinstance(caught.value.messages, dict)
    messages = caught.value.messages["it"]
    assert (len(messages), list(messages)[-1]) == (
        MAX_REPORTED,
        "99" if isinstance(field, Map) else 99,
    )


def test_invalid_entries_are_reported_by_their_index() -> None:
    with pytest.raises(ValidationError) as caught:
        read(List(String()), ["a", 5, "b", None])
    assert isinstance(caught.value.messages, dict)
    assert list(caught.value.messages["it"]) == [1, 3]
