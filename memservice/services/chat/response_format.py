"""The requested structure of an answer: a JSON Schema, validated with the request
and used to validate the answer."""

from __future__ import annotations

import json
from typing import NoReturn

from memservice.domain.errors import InvalidInput, MemserviceError
from memservice.domain.json_schema import (
    Schema,
    UnsupportedSchema,
    require_supported,
    violation,
)

ARGUMENT = ("response_format",)


class InvalidAnswer(MemserviceError):
    """The reasoner's answer does not have the structure of the response format."""


def check(schema: Schema | None) -> None:
    """Raise InvalidInput, with a text that names the location, for a schema that is not
    supported."""
    if schema is None:
        return
    try:
        require_supported(schema)
    except UnsupportedSchema as error:
        raise InvalidInput.at(*ARGUMENT, message=f"Invalid response_format: {error}") from None


def check_answer(schema: Schema, answer: str) -> None:
    """Raise InvalidAnswer unless `answer` is a JSON document of the schema's structure."""
    try:
        value = json.loads(answer, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer(
            "The answer is not JSON, although a response_format was given"
        ) from error
    if violation(schema, value) is not None:
        raise InvalidAnswer("The answer does not have the structure of the response_format")


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")
