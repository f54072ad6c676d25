"""Summaries with a model: exactly what it is given, and that the answer keeps its bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memservice.domain import tokens
from memservice.reasoning import summarize as reasoning_summarize
from memservice.reasoning.prompts import Prompt
from memservice.reasoning.prompts import summarize as prompt
from memservice.reasoning.summarize import summarize
from memservice.spi.llm import ModelFailure
from memservice.spi.reasoner import Origin, Summarized, SummarizeRequest, Utterance
from support.reasoning.model import ModelHarness, Reply, ScriptedModel

AT = datetime(2024, 5, 17, 12, 30, tzinfo=UTC)


def say(key: int, content: str) -> Utterance:
    return Utterance(
        key, f"uid-{key}", ("alice", "bob")[key % 2], content, AT + timedelta(minutes=key)
    )


TALK = [say(0, "Shall we go to Porto?"), say(1, "In May.\nBy train.")]


def summarized(
    request: SummarizeRequest, *replies: Reply
) -> tuple[Summarized, ScriptedModel, ModelHarness]:
    model = ScriptedModel(*replies)
    harness = ModelHarness(
        model, SUMMARY_MODEL_CONFIG__TRANSPORT="scripted", SUMMARY_MODEL_CONFIG__MODEL="scripted-1"
    )
    return summarize(harness.models, request), model, harness


@pytest.mark.parametrize(("kind", "used"), [("short", prompt.SHORT), ("long", prompt.LONG)])
def test_the_prompt_contains_messages_and_previous_summary(kind: str, used: Prompt) -> None:
    request = SummarizeRequest(
        kind, TALK, "They met.\nBoth like trains.", 1000, "In verse.", Origin(3, "w")
    )
    done, model, harness = summarized(request, " They plan to go to Porto. ")
    system, user = model.last.turns
    assert system.content.startswith(used.text)
    assert "<operator_instructions>\nIn verse.\n</operator_instructions>" in system.content
    assert user.content == (
        "Summary so far:\n    They met.\n    Both like trains.\n\n"
        "Messages since:\n\n"
        "Fri 2024-05-17 12:30 UTC alice: Shall we go to Porto?\n"
        "Fri 2024-05-17 12:31 UTC bob: In May.\n    By train.\n\n"
        "Write the summary now, in at most 600 words."
    )
    assert model.last.max_output_tokens == 1000
    assert (done.content, done.spent.model, done.prompt) == (
        "They plan to go to Porto.",
        "scripted-1",
        used.version,
    )
    assert done.scaffold_tokens > tokens.count(used.text)
    assert [(call.purpose, call.workspace) for call in harness.calls] == [(f"summary.{kind}", "w")]


def test_a_first_summary_has_no_previous_one() -> None:
    _, model, _ = summarized(SummarizeRequest("short", TALK, None, 100))
    assert "Summary so far:\n    (none)\n" in model.last.turns[1].content


def test_without_messages_the_model_is_not_called() -> None:
    for messages in ([], [say(0, " \n")]):
        done, model, _ = summarized(SummarizeRequest("short", messages, "They met.", 100))
        assert (done.content, model.requests) == ("", [])


def test_a_blank_answer_is_empty() -> None:
    assert summarized(SummarizeRequest("short", TALK, None, 100), " \n ")[0].content == ""


def test_an_answer_that_is_too_long_is_cut() -> None:
    done, _, _ = summarized(
        SummarizeRequest("short", TALK, None, 50), "They went to Porto by train. " * 50
    )
    assert 40 < tokens.count(done.content) <= 50


def test_a_long_previous_summary_does_not_displace_messages() -> None:
    _, model, _ = summarized(
        SummarizeRequest("short", TALK, "They went to Porto by train. " * 1000, 100)
    )
    assert sum(tokens.count(turn.content) for turn in model.last.turns) < 1000
    assert "In May." in model.last.turns[1].content


def test_the_newest_of_many_messages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasoning_summarize, "MAX_INPUT_TOKENS", 400)
    _, model, _ = summarized(
        SummarizeRequest(
            "long", [say(n, f"Message number {n} is about Porto.") for n in range(100)], None, 100
        )
    )
    text = model.last.turns[1].content
    assert tokens.count(text) < 500
    assert "Message number 99" in text
    assert "Message number 0 " not in text
    _, model, _ = summarized(SummarizeRequest("long", [say(0, "word " * 5_000)], None, 100))
    assert tokens.count(model.last.turns[1].content) < 500


def test_failures_are_raised() -> None:
    with pytest.raises(ModelFailure):
        summarized(SummarizeRequest("short", TALK, None, 100), ModelFailure("no", retryable=False))
