"""Answers that are JSON: read with patience, held against their schema, asked for once more."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.reasoning import structured
from memservice.reasoning.client import ModelClient
from memservice.spi.llm import Completion, MalformedAnswer, ModelFailure, Turn
from memservice.spi.reasoner import Origin
from support.reasoning.model import ModelHarness, Reply, ScriptedModel

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
}
TURNS = [Turn("system", "Be brief."), Turn("user", "Who?")]


def ask(*replies: Reply, **options: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*replies)
    harness = ModelHarness(model, DERIVER_MODEL_CONFIG__TRANSPORT="scripted")
    client = ModelClient(
        harness.models,
        "deriver.representation",
        harness.models.settings.deriver.model_config,
        Origin(),
    )
    return structured.ask(client, TURNS, SCHEMA, **options), model


@pytest.mark.parametrize(
    "text",
    [
        '{"names": ["Ada"]}',
        '  {"names": ["Ada"]}\n',
        '```json\n{"names": ["Ada"]}\n```',
        'Here you are:\n```\n{"names": ["Ada"]}\n```\nAnything else?',
        'Sure [as you wish]: {"names": ["Ada"]} — done.',
        '["Ada"]',
    ],
)
def test_documents_are_found_in_text(text: str) -> None:
    document, model = ask(text)
    assert document == {"names": ["Ada"]}
    assert len(model.requests) == 1
    assert model.last.response_schema == SCHEMA


def test_line_breaks_inside_strings_are_accepted() -> None:
    assert ask('{"names": ["A\nB"]}')[0] == {"names": ["A\nB"]}


def test_unstorable_characters_are_removed() -> None:
    assert ask(r'{"names": ["a\u0000b", "\ud800x"]}')[0] == {"names": ["ab", "\ufffdx"]}


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ("I do not know.", "there is no JSON document in it"),
        ("", "there is no JSON document in it"),
        ('{"names": "Ada"}', "$.names must be of type array"),
        ('{"name": ["Ada"]}', "$ lacks names"),
        ('{"names": ["Ada", 1]}', "$.names[1] must be of type string"),
        ('{"names": [NaN]}', "there is no JSON document in it"),
        (
            Completion('{"names": ["Ada", "Bo', finish_reason="length"),
            "it was cut off because it grew too long; be briefer",
        ),
        ("[" * 100_000, "there is no JSON document in it"),
    ],
)
def test_an_answer_that_does_not_fit_is_retried_once(first: Reply, problem: str) -> None:
    document, model = ask(first, {"names": []})
    assert document == {"names": []}
    again = model.last.turns
    assert list(again[:2]) == TURNS
    assert [turn.role for turn in again[2:]] == ["assistant", "user"]
    assert again[2].content
    assert problem in again[3].content


def test_a_second_invalid_answer_fails() -> None:
    with pytest.raises(MalformedAnswer, match="names must be of type array") as raised:
        ask("Ada, secretly", '{"names": "Ada, secretly"}', {"names": []})
    assert "secretly" not in str(raised.value)


def test_an_additional_check_can_reject_an_answer() -> None:
    document, model = ask(
        {"names": []},
        {"names": ["Bo"]},
        check=lambda value: None if value["names"] else "nobody is named",
    )
    assert document == {"names": ["Bo"]}
    assert "nobody is named" in model.prompts()[-1]


def test_failures_of_the_model_are_raised() -> None:
    with pytest.raises(ModelFailure, match="no key"):
        ask(ModelFailure("no key", retryable=False))
