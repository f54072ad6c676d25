"""Answers that are JSON: read leniently, validated against their schema, and requested once more if
they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from memservice.domain.answers.json_text import Unreadable, read
from memservice.domain.answers.refusals import is_refusal
from memservice.reasoning.client import CUT_OFF, ModelClient
from memservice.reasoning.prompts import again as prompt
from memservice.spi.llm import Completion, MalformedAnswer, Refusal, Turn

MAX_QUOTED = 20_000
"""Characters of an invalid answer that the next request quotes."""

Shape = Callable[[Any], Any]
"""Converts a document into the requested form."""


class Answer(Struct, frozen=True):
    """A document that fits its schema."""

    value: Any
    is_cut: bool = False
    """Whether the answer ended too early: `value` has the whole items of its lists."""


def ask(
    client: ModelClient,
    turns: Sequence[Turn],
    schema: dict[str, Any],
    *,
    max_output_tokens: int | None = None,
    check: Callable[[Any], str | None] | None = None,
    iteration: int | None = None,
) -> Any:
    """The model's answer as a value that fits `schema`, and for which `check`, if given, returns
    no problem.

    An answer that does not fit, or is cut, is requested once more, with a description of the
    problem. Of two answers that are cut, the second counts. Raises MalformedAnswer if the second
    does not fit, Refusal for one that only declines, and as `ModelClient.complete` does."""
    return ask_once_more(
        client,
        turns,
        schema,
        shape=lambda value: fitted(value, schema),
        max_output_tokens=max_output_tokens,
        check=check,
        iteration=iteration,
        accept_cut=False,
    ).value


def ask_once_more(
    client: ModelClient,
    turns: Sequence[Turn],
    schema: dict[str, Any],
    *,
    shape: Shape,
    max_output_tokens: int | None = None,
    check: Callable[[Any], str | None] | None = None,
    iteration: int | None = None,
    accept_cut: bool = True,
) -> Answer:
    """As `ask`. With `accept_cut`, the first answer counts also if it is cut."""
    request, wrong = list(turns), ""
    for attempt in (1, 2):
        completion = client.complete(
            request, schema=schema, max_output_tokens=max_output_tokens, iteration=iteration
        )
        try:
            answer = parsed(completion, schema, shape)
        except Unreadable as error:
            wrong = str(error)
        else:
            wrong = (check(answer.value) if check else None) or ""
            if not wrong and answer.is_cut and not accept_cut and attempt == 1:
                wrong = prompt.TOO_LONG
            if not wrong:
                return answer
        quoted = completion.content[:MAX_QUOTED] or prompt.NOTHING_SAID
        request = [
            *turns,
            Turn("assistant", quoted),
            Turn("user", prompt.AGAIN.format(problem=wrong)),
        ]
    raise MalformedAnswer(f"two answers of the model in a row cannot be used: {wrong}")


def parsed(completion: Completion, schema: dict[str, Any], shape: Shape) -> Answer:
    """The document of one answer. Raises Unreadable, and Refusal for an answer that only
    declines."""
    was_cut = completion.finish_reason in CUT_OFF
    try:
        document = read(completion.content, schema, shape)
    except Unreadable:
        if is_refusal(completion.content):
            raise Refusal("the model refused to answer") from None
        if was_cut:
            raise Unreadable(prompt.TOO_LONG) from None
        raise
    return Answer(document.value, not document.is_whole)


def fitted(value: Any, schema: dict[str, Any]) -> Any:
    """Some models write a bare list for an object whose only part is a list: this restores the
    object."""
    properties = schema.get("properties", {})
    if isinstance(value, list) and schema.get("type") == "object" and len(properties) == 1:
        ((name, part),) = properties.items()
        if part.get("type") == "array":
            return {name: value}
    return value
