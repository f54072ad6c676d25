"""Answers that are JSON: read with patience, held against their schema, and asked for once more if
they do not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from memservice.domain.json_schema import problem
from memservice.reasoning.client import ModelClient
from memservice.reasoning.prompts import again as prompt
from memservice.spi.llm import Completion, MalformedAnswer, Turn

CUT_OFF = ("length", "max_tokens", "MAX_TOKENS")
"""Finish reasons of answers that grew too long."""

_FENCED = re.compile(r"```[a-zA-Z]*+[^\S\n]*+\n(.*?)```", re.DOTALL)
_START = re.compile(r"[{\[]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_STARTS = 50
"""Places in a text at which a document is looked for."""
_MAX_QUOTED = 20_000
"""Characters of an unfit answer that the model is shown again."""


def ask(
    client: ModelClient,
    turns: Sequence[Turn],
    schema: dict[str, Any],
    *,
    max_output_tokens: int | None = None,
    check: Callable[[Any], str | None] | None = None,
    iteration: int | None = None,
) -> Any:
    """The model's answer as a value that fits `schema`, and of which `check`, if given, finds
    nothing wrong.

    An answer that does not fit is asked for once more, with what is wrong about it. Raises
    MalformedAnswer if the second is no better, and as `ModelClient.complete` does.
    """
    asked = list(turns)
    problem = None
    for _ in range(2):
        done = client.complete(
            asked, schema=schema, max_output_tokens=max_output_tokens, iteration=iteration
        )
        value, problem = _judged(done, schema, check)
        if problem is None:
            return value
        quoted = done.content[:_MAX_QUOTED] or prompt.NOTHING_SAID
        asked = [
            *turns,
            Turn("assistant", quoted),
            Turn("user", prompt.AGAIN.format(problem=problem)),
        ]
    raise MalformedAnswer(
        f"the model's answer cannot be used, nor could the one before it: {problem}"
    )


def _judged(
    done: Completion, schema: dict[str, Any], check: Callable[[Any], str | None] | None
) -> tuple[Any, str | None]:
    try:
        value = fitted(read_json(done.content), schema)
    except ValueError as error:
        return None, prompt.TOO_LONG if done.finish_reason in CUT_OFF else str(error)
    return value, problem(schema, value) or (None if check is None else check(value))


def read_json(text: str) -> Any:
    """The JSON document in a text: the text itself, what a code fence holds, or the first object or
    list that stands in it.

    Texts in it can be stored: without NUL and lone surrogates. Raises ValueError if there is no
    document.
    """
    fenced = _FENCED.search(text)
    for candidate in (text.strip(), *([fenced.group(1).strip()] if fenced else [])):
        try:
            return storable(json.loads(candidate, strict=False, parse_constant=_refuse))
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse)
    for number, start in enumerate(_START.finditer(text)):
        if number >= _MAX_STARTS:
            break
        try:
            return storable(decoder.raw_decode(text, start.start())[0])
        except (ValueError, RecursionError):
            continue
    raise ValueError("there is no JSON document in it")


def fitted(value: Any, schema: dict[str, Any]) -> Any:
    """A bare list is what some models make of an object whose only part is a list: it is put back
    into its place."""
    properties = schema.get("properties", {})
    if isinstance(value, list) and schema.get("type") == "object" and len(properties) == 1:
        ((name, part),) = properties.items()
        if part.get("type") == "array":
            return {name: value}
    return value


def storable(value: Any) -> Any:
    """The value with texts that can be stored and counted: without NUL and lone surrogates."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value.replace("\0", ""))
    if isinstance(value, dict):
        return {storable(name): storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [storable(inner) for inner in value]
    return value


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")
