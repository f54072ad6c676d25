"""Deriving with a language model: one call for a run of messages, whose answer can only cite what
it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memservice.domain import tokens
from memservice.domain.derived_rules import MAX_CONTENT_LENGTH
from memservice.reasoning import structured
from memservice.reasoning.client import ModelClient
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import derive as prompt
from memservice.reasoning.transcript import called, cut, name, transcript
from memservice.spi.llm import Turn
from memservice.spi.reasoner import Derived, DeriveRequest, Statement, Utterance

PURPOSE = "deriver.representation"
MAX_STATEMENTS = 500
"""Of one answer; a batch of messages never states so much, so what is beyond is a model that cannot
stop."""
MARK_TOKENS = 5
"""Tokens of the number in front of a message, at most."""


def derive(models: Models, request: DeriveRequest) -> Derived:
    """Statements in the order of the answer, each with keys of new messages by the observed peer;
    those without any are left out, and so is what is longer than any conclusion may be, or more
    than there can be."""
    numbers = _numbers(request)
    if not numbers:
        return Derived([])
    client = ModelClient(models, PURPOSE, models.settings.deriver.model_config, request.origin)
    asked = prompt_of(request, models.settings.deriver.max_input_tokens)
    answer = structured.ask(client, asked.turns, prompt.SCHEMA)
    statements = _statements(answer["statements"], {number: key for key, number in numbers.items()})
    return Derived(
        statements, client.spent, prompt.PROMPT.version, asked.scaffold_tokens, asked.hit_cap
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model is given."""

    turns: Sequence[Turn]
    scaffold_tokens: int
    """Of everything but the messages."""
    hit_cap: bool
    """Was something of the messages left out?"""


def prompt_of(request: DeriveRequest, maximum: int) -> Asked:
    """At most that many tokens, as far as the messages can be shortened."""
    system = prompt.PROMPT.text
    if request.instructions and request.instructions.strip():
        system += prompt.INSTRUCTIONS.format(request.instructions.strip())
    scaffold = tokens.count(system) + tokens.count(_user(request, []))
    messages = _fitting(request, maximum - scaffold)
    return Asked(
        [Turn("system", system), Turn("user", _user(request, messages))],
        scaffold,
        messages != list(request.messages),
    )


def _numbers(request: DeriveRequest) -> dict[int, int]:
    """The numbers by which the model knows the messages that it may cite, by key."""
    own = [
        m.key
        for m in request.messages
        if m.new and m.author == request.observed and m.content.strip()
    ]
    return {key: number for number, key in enumerate(own, start=1)}


def _user(request: DeriveRequest, messages: Sequence[Utterance]) -> str:
    numbers = _numbers(request)
    present = {message.author for message in messages} | {request.observed}
    names = called(
        {slug: shown for slug, shown in request.names.items() if slug in present}, present
    )
    return prompt.REQUEST.format(
        observed=name(request.observed),
        names="".join(f"{line}\n" for line in names),
        transcript=transcript(messages, lambda message: str(numbers.get(message.key, ""))),
        numbers=", ".join(f"[{number}]" for number in numbers.values()),
    )


def _fitting(request: DeriveRequest, maximum: int) -> list[Utterance]:
    """The messages within a budget of tokens: context goes first, the oldest before the newer, then
    the texts are cut evenly."""
    numbers = _numbers(request)
    size = {
        message.key: tokens.count(transcript([message])) + MARK_TOKENS
        for message in request.messages
    }
    total = sum(size.values())
    utterances = []
    for message in request.messages:
        if total > maximum and message.key not in numbers:
            total -= size[message.key]
        else:
            utterances.append(message)
    if total <= maximum:
        return utterances
    share = maximum // len(utterances)
    return [
        replace(m, content=cut(m.content, max(1, share - (size[m.key] - tokens.count(m.content)))))
        for m in utterances
    ]


def _statements(found: Sequence[Mapping[str, Any]], keys: Mapping[int, int]) -> list[Statement]:
    statements: dict[str, Statement] = {}
    for item in found:
        content = item["content"].strip()
        cited = tuple(
            dict.fromkeys(keys[int(number)] for number in item["messages"] if int(number) in keys)
        )
        if not content or not cited or len(content) > MAX_CONTENT_LENGTH:
            continue
        same = " ".join(content.casefold().split())
        if same not in statements and len(statements) >= MAX_STATEMENTS:
            break
        before = statements.get(same, Statement(content, ()))
        statements[same] = Statement(
            before.content, tuple(dict.fromkeys((*before.message_keys, *cited)))
        )
    return list(statements.values())
