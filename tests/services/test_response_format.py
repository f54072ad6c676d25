"""Which forms of an answer may be asked for, and what an answer is held to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memservice.domain.errors import InvalidInput
from memservice.domain.json_schema import Validation
from memservice.domain.json_schema.supported import MAX_CHOICES, MAX_DEPTH, MAX_PARTS
from memservice.services.chat.response_format import (
    InvalidAnswer,
    check,
    check_answer,
)
from memservice.spi.reasoner import AnswerRequest
from memservice_extractive.reasoner import ExtractiveReasoner

PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Person",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "The name"},
        "age": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
        "kind": {"enum": ["friend", "other"]},
        "homes": {"type": "array", "items": {"$ref": "#/$defs/Home"}},
        "mood": {"type": ["string", "null"], "const": "calm"},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {
        "Home": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "since": {"$ref": "#/$defs/Year"}},
        },
        "Year": {"type": "integer"},
    },
}


def nested(depth: int) -> dict[str, Any]:
    """Objects in objects, so many levels in all."""
    inner: dict[str, Any] = {"type": "object"}
    for _ in range(depth - 1):
        inner = {"type": "object", "properties": {"in": inner}}
    return inner


def wide(parts: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"p{number}": {"type": "string"} for number in range(parts - 1)},
    }


def shared(choices: int, count: int, longest: str = "") -> dict[str, Any]:
    """One list of choices, to which each property refers."""
    named = [longest, *(str(number) for number in range(choices - 1))]
    properties = {f"p{number}": {"$ref": "#/$defs/c"} for number in range(count)}
    return {"type": "object", "properties": properties, "$defs": {"c": {"enum": named}}}


def doubling(levels: int) -> dict[str, Any]:
    """Few parts whose document has 2 ** levels values."""
    definitions: dict[str, Any] = {f"d{levels}": {"type": "string"}}
    for n in range(levels):
        definitions[f"d{n}"] = {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"},
        }
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema",
    [
        PERSON,
        {"type": "object"},
        {"type": ["object"], "properties": {"x": True}},
        {"$ref": "#/definitions/A", "definitions": {"A": {"type": "object"}}},
        {
            "type": "object",
            "properties": {"a b/c": {"$ref": "#/$defs/x~1y%20z"}},
            "$defs": {"x/y z": {"type": "string"}},
        },
        {"type": "object", "properties": {"a": {"type": "array"}}, "x-anything": {"allOf": 1}},
        {"type": "object", "properties": {"allOf": {"type": "string"}, "not": {"type": "string"}}},
        {
            "type": "object",
            "properties": {"a": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}},
        },
        {
            "type": "object",
            "properties": {
                "a": {
                    "type": ["number", "null"],
                    "oneOf": [{"type": "integer"}, {"type": "string"}],
                }
            },
        },
        nested(MAX_DEPTH),
        wide(MAX_PARTS),
        shared(MAX_CHOICES, 400),
        {"type": "object", "required": ["a"], "properties": {}, "default": {"a": 1}},
        doubling(8),
        {
            "type": "object",
            "properties": {"l": {"type": "array", "minItems": 1000, "items": {"type": "string"}}},
        },
    ],
    ids=range(15),
)
def test_supported_formats_are_accepted(schema: dict[str, Any]) -> None:
    check(schema)
    # Whatever is let in can be answered.
    answer = "".join(
        ExtractiveReasoner().answer(
            AnswerRequest("Who is it?", "alice", [], response_format=schema)
        )
    )
    check_answer(schema, answer)


def test_none_means_no_format() -> None:
    check(None)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({}, "$: the root must be of type 'object'"),
        ({"type": "string"}, "$: the root must be of type 'object'"),
        ({"type": ["object", "null"]}, "$: the root must be of type 'object'"),
        ({"anyOf": [{"type": "object"}]}, "$: the root must be of type 'object'"),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}},
            "$: the root must be of type 'object'",
        ),
        *(
            ({"type": "object", "properties": {"a": {word: {}}}}, f"$.a: '{word}' is not supported")
            for word in ("allOf", "not", "if", "then", "else", "patternProperties", "prefixItems")
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "$: 'additionalProperties' may only be true or false",
        ),
        ({"type": "object", "properties": {"a": {"type": "date"}}}, "$.a: 'type' must be one of"),
        ({"type": "object", "properties": {"a": {"type": []}}}, "$.a: 'type' must be one of"),
        (
            {"type": "object", "properties": {"a": {"type": ["string", {}]}}},
            "$.a: 'type' must be one of",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "anyOf": [{"type": 3}]}}},
            "$.a.anyOf[0]: 'type' must be one of",
        ),
        ({"type": "object", "properties": []}, "$: 'properties' must be an object"),
        ({"type": "object", "properties": {"a": 1}}, "$.a: a schema must be an object"),
        ({"type": "object", "properties": {"a": False}}, "$.a: a schema must be an object"),
        (
            {"type": "object", "properties": {"a": {"items": [{}]}}},
            "$.a[]: a schema must be an object",
        ),
        (
            {"type": "object", "properties": {"a": {"items": {"items": {"enum": []}}}}},
            "$.a[][]: 'enum' must be a list",
        ),
        ({"type": "object", "properties": {"a": {"anyOf": []}}}, "$.a: 'anyOf' must be a list"),
        ({"type": "object", "properties": {"a": {"oneOf": {}}}}, "$.a: 'oneOf' must be a list"),
        (
            {"type": "object", "properties": {"a": {"type": "boolean", "enum": [0, 1]}}},
            "$.a: 'enum' allows nothing that is of the 'type'",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "const": None}}},
            "$.a: 'const' allows nothing that is of the 'type'",
        ),
        (
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "anyOf": [{"type": "integer"}, {"$ref": "#/$defs/n"}]}
                },
                "$defs": {"n": {"type": "null"}},
            },
            "$.a: 'anyOf' has no option that is of the 'type'",
        ),
        ({"type": "object", "required": "a"}, "$: 'required' must be a list of names"),
        (
            {"type": "object", "properties": {"a": {"minItems": "3"}}},
            "$.a: 'minItems' must be a whole number",
        ),
        (
            {"type": "object", "properties": {"a": {"maxLength": -1}}},
            "$.a: 'maxLength' must be a whole number",
        ),
        (
            {"type": "object", "properties": {"a": {"minimum": True}}},
            "$.a: 'minimum' must be a number",
        ),
        (
            {"type": "object", "properties": {"a": {"multipleOf": 0}}},
            "$.a: 'multipleOf' must be a number above zero",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/No"}}},
            "$.a: the reference '#/$defs/No' does not lead",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.org/x"}}},
            "does not lead to a definition at the root",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": 3}}},
            "does not lead to a definition at the root",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#"}}},
            "does not lead to a definition at the root",
        ),
        (
            {"type": "object", "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}},
            "recursive references are not supported",
        ),
        ({"type": "object", "$defs": []}, "$: '$defs' must be an object"),
        (nested(MAX_DEPTH + 1), f"$: it is nested more than {MAX_DEPTH} levels deep"),
        (wide(MAX_PARTS + 1), f"$: it has more than {MAX_PARTS} parts"),
        (
            shared(MAX_CHOICES + 1, 1),
            f"$: it has more than {MAX_CHOICES} choices of 'enum' and names of 'required'",
        ),
        (
            {"type": "object", "required": ["a"] * (MAX_CHOICES + 1)},
            f"$: it has more than {MAX_CHOICES} choices",
        ),
        (shared(1, 400, "x" * 20_000), "it asks for documents of more than 5000 values"),
        ({"type": ["object"] * 8}, "'type' must be one of"),
        (doubling(15), "$: it asks for documents of more than"),
        (
            {
                "type": "object",
                "properties": {
                    "l": {"minItems": 100, "items": {"minItems": 100, "items": {"type": "string"}}}
                },
            },
            "$: it asks for documents of more than",
        ),
        (
            {"type": "object", "properties": {"l": {"minItems": 10**15, "items": {}}}},
            "$: it asks for documents of more than",
        ),
    ],
    ids=range(47),
)
def test_the_error_for_an_unsupported_format_names_the_location(
    schema: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(schema)
    (problem,) = caught.value.problems
    assert problem.loc == ("response_format",)
    assert problem.message.startswith("Invalid response_format: ")
    assert reason in problem.message


def chain(length: int) -> dict[str, Any]:
    """References that lead to references, so many."""
    links: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(length - 1)}
    definitions = {**links, f"d{length - 1}": {"type": "string"}}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def test_chains_of_references_are_limited() -> None:
    schema = chain(MAX_DEPTH - 1)
    check(schema)
    check_answer(schema, '{"a": "x"}')
    with pytest.raises(InvalidAnswer):
        check_answer(schema, '{"a": 1}')
    for length in (MAX_DEPTH, MAX_PARTS - 2):
        with pytest.raises(InvalidInput):
            check(chain(length))


@pytest.mark.parametrize(
    "value",
    [
        {"name": "Al"},
        {
            "name": "",
            "age": 3,
            "kind": "other",
            "homes": [{"city": "Rome", "since": 1999.0}],
            "mood": "calm",
            "more": [1],
        },
        {"name": "Al", "age": None, "homes": []},
        # Constraints of values are hints.
        {"name": "Al", "age": -1},
    ],
)
def test_valid_answers_are_accepted(value: Any) -> None:
    check_answer(PERSON, json.dumps(value))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Al",
        "{'name': 'Al'}",
        "[]",
        "null",
        "{}",
        '{"name": null}',
        '{"name": "Al", "age": "3"}',
        '{"name": "Al", "age": true}',
        '{"name": "Al", "age": 1.5}',
        '{"name": "Al", "age": 1e999}',
        '{"name": "Al", "age": NaN}',
        '{"name": "Al", "kind": "foe"}',
        '{"name": "Al", "homes": {}}',
        '{"name": "Al", "homes": [{"since": "1999"}]}',
        '{"name": "Al", "mood": "wild"}',
        '{"name": "Al", "mood": null}',
    ],
)
def test_invalid_answers_are_refused(answer: str) -> None:
    with pytest.raises(InvalidAnswer):
        check_answer(PERSON, answer)


def test_true_does_not_equal_one() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, [True], {"x": 2}]}}}
    for good in ("1", "1.0", "[true]", '{"x": 2.0}'):
        check_answer(schema, f'{{"a": {good}}}')
    for bad in ("true", "[1]", '{"x": 2, "y": 0}', "[]"):
        with pytest.raises(InvalidAnswer):
            check_answer(schema, f'{{"a": {bad}}}')


def test_an_option_is_chosen_by_structure() -> None:
    """Both options of this `oneOf` fit, because only a hint distinguishes them."""
    schema = {
        "type": "object",
        "properties": {
            "n": {"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 6}]}
        },
    }
    check_answer(schema, '{"n": 4}')
    with pytest.raises(InvalidAnswer):
        check_answer(schema, '{"n": "4"}')


def test_values_that_are_gone_are_not_taken_for_later_ones() -> None:
    """One validation of many values: another value may come to stand where one stood."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    validation = Validation(schema, {})
    results = [validation.of({"a": n if n % 2 else "x"}, schema) is None for n in range(200)]
    assert results == [bool(n % 2) for n in range(200)]
    for value, kind in (({}, "object"), ([], "array"), ("text", "string")):
        results = [validation.of(value, {"type": each}) is None for each in (kind, "null") * 100]
        assert results == [True, False] * 100
