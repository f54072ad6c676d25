"""The conversations with an assistant, and the benchmark of recall on a small set."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.recall import __main__ as command
from benchmarks.recall.corpora import corpora, generated
from memservice.domain import tokens
from memservice_bench.assistant import ASSISTANT, USER, assistant_conversation
from memservice_bench.assistant_scenes import HELD_BACK, PROJECTS
from memservice_bench.corpus import Conversation


@pytest.fixture(scope="module")
def talk() -> Conversation:
    return assistant_conversation(1, 0, idle=20)


def test_conversations_are_the_same_for_a_seed_and_differ_between_seeds() -> None:
    assert assistant_conversation(3, 1, 5) == assistant_conversation(3, 1, 5)
    assert assistant_conversation(3, 1, 5).turns != assistant_conversation(4, 1, 5).turns


def test_evidence_is_the_message_that_states_it(talk: Conversation) -> None:
    turns = {turn.key: turn for turn in talk.turns}
    assert list(turns) == list(range(1, len(turns) + 1))
    assert talk.kind == "assistant"
    assert not any("{" in question.text for question in talk.questions)
    for question in talk.questions:
        texts = [turns[key].text for key in question.evidence]
        assert all(question.answer.casefold() in text.casefold() for text in texts)
        speaker = ASSISTANT if question.category == "assistant" else USER
        assert {turns[key].speaker for key in question.evidence} == {speaker}
    assert {question.category for question in talk.questions} == {
        *("information", "update", "multi-session", "temporal", "ordering", "summary"),
        *("assistant", "instruction", "preference", "contradiction"),
    }


def test_answers_are_long_and_hold_lists_code_and_quotations(talk: Conversation) -> None:
    answers = [turn.text for turn in talk.turns if turn.speaker == ASSISTANT]
    requests = [turn.text for turn in talk.turns if turn.speaker == USER]
    assert sum(map(tokens.count, answers)) / len(answers) > 400
    assert sum(map(tokens.count, requests)) / len(requests) < 100
    for mark, texts in (
        ("```", answers),
        ("\n1. ", answers),
        ("```", requests),
        ("\n> ", requests),
    ):
        assert 0.05 < sum(mark in text for text in texts) / len(texts) < 1


def test_held_back_conversations_are_about_other_projects() -> None:
    tuning, held_back = (
        {project.name for project in projects}
        for projects in (PROJECTS[:HELD_BACK], PROJECTS[HELD_BACK:])
    )
    assert not tuning & held_back
    texts = " ".join(
        turn.text for talk in generated("held-back", "assistant", 2, 5) for turn in talk.turns
    )
    assert not any(name in texts for name in tuning)
    assert any(name in texts for name in held_back)


def test_sets_of_any_size_can_be_generated() -> None:
    assert len(assistant_conversation(1, 0, idle=1000).turns) > 2000
    assert list(corpora(["tuning"], ["people", "assistant"], 1, 0, {})) == [
        "people, tuning",
        "assistant, tuning",
    ]


@pytest.mark.slow
def test_two_runs_are_compared_by_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, *arguments: str) -> list[str]:
        database = f"sqlite:///{tmp_path / name}.db"
        monkeypatch.setattr(sys, "argv", ["recall", "--db", database, *arguments])
        command.main()
        return capsys.readouterr().out.splitlines()

    small = ["--kind", "assistant", "--split", "tuning", "--count", "1", "--idle", "0"]
    small += ["--surface", "workspace search"]
    saved = str(tmp_path / "first.json")
    run("one", *small, "--save", saved, "--option", "SEARCH_NEIGHBOUR_WEIGHT=0")
    values = json.loads(Path(saved).read_text("utf-8"))
    row = "assistant, tuning / workspace search / all"
    assert 0 < sum(values[row]["r@10"]) / len(values[row]["r@10"]) < 1
    lines = run("two", *small, "--against", saved)
    (difference,) = lines[lines.index("Differences:") + 1 :]
    assert difference.startswith(row)
    assert "0.0 ±0.0" not in difference
