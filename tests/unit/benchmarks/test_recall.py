"""The conversations with an assistant, and the benchmark of recall on a small set."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from benchmarks.recall import __main__ as command
from benchmarks.recall.__main__ import SHORT
from benchmarks.recall.appointments import APPOINTMENTS, with_appointments
from benchmarks.recall.corpora import HOPS, THIRD, corpora, generated
from benchmarks.recall.listeners import about_listeners
from memservice.domain import tokens
from memservice_bench.assistant import ASSISTANT, USER, assistant_conversation
from memservice_bench.assistant_scenes import HELD_BACK, PROJECTS
from memservice_bench.builtin import conversation
from memservice_bench.corpus import Conversation
from memservice_bench.hops import THE_USER
from memservice_bench.scenes import ENGLISH
from memservice_bench.third_set import PROJECTS as THIRD_PROJECTS
from memservice_bench.third_set import WORK


@pytest.fixture(scope="module")
def talk() -> Conversation:
    return assistant_conversation(1, 0, idle=20)


@pytest.mark.slow
def test_conversations_are_the_same_for_a_seed_and_differ_between_seeds() -> None:
    assert assistant_conversation(3, 1, 5) == assistant_conversation(3, 1, 5)
    assert assistant_conversation(3, 1, 5).turns != assistant_conversation(4, 1, 5).turns


@pytest.mark.slow
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


def test_appointments_are_for_another_day_on_which_people_talk() -> None:
    talk = with_appointments(conversation(1, 0))
    turns = {turn.key: turn for turn in talk.turns}
    days = {f"{turn.at.day} {turn.at:%B %Y}" for turn in talk.turns}
    planned = [question for question in talk.questions if question.category == "planned"]
    assert len(planned) == len(APPOINTMENTS)
    for question in planned:
        ((turn, day),) = [
            (turns[key], day)
            for key in question.evidence
            for day in days
            if re.search(rf"\b{day}", turns[key].text)
        ]
        assert day in question.text
        assert day != f"{turn.at.day} {turn.at:%B %Y}"
    assert {question.category for question in talk.questions} == {"planned", "dated"}


def test_questions_about_listeners_name_the_speaker_before_the_evidence() -> None:
    talk = conversation(1, 0)
    turns = {turn.key: turn for turn in talk.turns}
    questions = about_listeners(talk)
    assert len(questions) > 10
    for question in questions:
        (key,) = question.evidence
        assert turns[key - 1].speaker in question.text
        assert turns[key].speaker not in question.text


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_third_split_is_about_other_things() -> None:
    labels = {scene.label for scene in WORK}
    assert not labels & {scene.label for scene in ENGLISH}
    (people,) = generated(THIRD, "people", 1, 0)
    assert all(any(label in turn.text for turn in people.turns) for label in labels)
    (assistant,) = generated(THIRD, "assistant", 1, 5)
    questions = " ".join(question.text for question in assistant.questions)
    assert any(part in questions for project in THIRD_PROJECTS for part in project.parts)
    assert not any(part in questions for project in PROJECTS for part in project.parts)


@pytest.mark.slow
def test_sets_of_any_size_can_be_generated() -> None:
    assert len(assistant_conversation(1, 0, idle=1000).turns) > 2000
    assert list(corpora(["tuning"], ["people", "assistant"], 1, 0, {})) == [
        "people, tuning",
        "assistant, tuning",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOPS)
def test_questions_over_several_messages_have_all_of_them_as_evidence(kind: str) -> None:
    (talk,) = generated("tuning", kind, 1, 0)
    (other,) = generated("held-back", kind, 1, 0)
    turns = {turn.key: turn for turn in talk.turns}
    texts = {turn.text for turn in other.turns}
    for category in ("chain", "open-domain"):
        questions = [each for each in talk.questions if each.category == category]
        assert len(questions) >= 6
        for question in questions:
            assert len(question.evidence) == 2
            assert question.text not in {each.text for each in other.questions}
            assert not {turns[key].text for key in question.evidence} & texts
            if category == "chain":
                assert any(question.answer in turns[key].text for key in question.evidence)
    assert not any("{" in question.text for question in talk.questions)
    assert not any("{" in inference.text for inference in talk.inferences)


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOPS)
def test_conclusions_over_several_messages_rest_on_explicit_ones(kind: str) -> None:
    (talk,) = generated("tuning", kind, 1, 0)
    levels = {inference.level for inference in talk.inferences}
    assert levels == {"explicit", "deductive", "inductive"}
    for inference in talk.inferences:
        rests_on = [talk.inferences[position] for position in inference.premises]
        assert bool(inference.sources) == (inference.level == "explicit") == (not rests_on)
        assert all(premise.level == "explicit" for premise in rests_on)
        assert {premise.about for premise in rests_on} <= {inference.about}


@pytest.mark.slow
def test_the_user_of_an_assistant_asks_in_the_first_person() -> None:
    for split in ("tuning", "held-back"):
        (talk,) = generated(split, "assistant hops", 1, 0)
        texts = [each.text for each in talk.questions if each.category in ("chain", "open-domain")]
        assert not any(THE_USER in text or "I's" in text for text in texts)
        assert all(re.search(r"\b(I|my|me)\b", text) for text in texts)


def lines_of(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database: Path,
    *arguments: str,
) -> list[str]:
    """What a run on this SQLite store prints."""
    monkeypatch.setattr(sys, "argv", ["recall", "--db", f"sqlite:///{database}.db", *arguments])
    command.main()
    return capsys.readouterr().out.splitlines()


@pytest.mark.heavy
@pytest.mark.slow
def test_a_second_run_on_a_store_gives_the_same_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--kind", "assistant hops", "--split", "tuning", "--count", "1", "--idle", "0"]
    small += ["--inferences", "--surface", "workspace search", "--surface", "conclusions query"]
    saved = str(tmp_path / "first.json")
    lines_of(monkeypatch, capsys, tmp_path / "one", *small, "--save", saved)
    lines = lines_of(monkeypatch, capsys, tmp_path / "one", *small, "--against", saved)
    differences = lines[lines.index("Differences:") + 1 :]
    assert len(differences) == 2
    assert all(line.count(" 0.0 ±0.0") == len(SHORT[:3]) for line in differences)


@pytest.mark.slow
def test_two_runs_are_compared_by_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, *arguments: str) -> list[str]:
        return lines_of(monkeypatch, capsys, tmp_path / name, *arguments)

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
