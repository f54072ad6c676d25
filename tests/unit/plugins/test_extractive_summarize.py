"""Summaries without a model: central sentences, each once, within the budget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memservice.domain import tokens
from memservice.spi.reasoner import SummarizeRequest, Utterance
from memservice_extractive import sentences
from memservice_extractive.reasoner import ExtractiveReasoner
from support.examples import examples

START = datetime(2023, 5, 8, 10, tzinfo=UTC)

TALK = [
    ("bob", "Hi Alice! I moved to Berlin last month."),
    ("alice", "Wow, that's great! How do you like it?"),
    ("bob", "I work at Siemens now, and Berlin has good museums."),
    ("alice", "I visited the Pergamon museum in Berlin in 2019."),
    ("bob", "My dog Rex loves the parks in Berlin."),
    ("alice", "My cat is 14 years old."),
    ("bob", "I play chess on Tuesdays."),
    ("alice", "Ok, see you later!"),
]


def summary(
    talk: list[tuple[str, str]],
    previous: str | None = None,
    max_tokens: int = 1000,
    kind: str = "short",
) -> str:
    messages = [
        Utterance(key, f"u{key}", author, content, START + timedelta(minutes=key))
        for key, (author, content) in enumerate(talk, 1)
    ]
    return (
        ExtractiveReasoner()
        .summarize(SummarizeRequest(kind, messages, previous, max_tokens))
        .content
    )


def test_lines_name_the_speaker_and_follow_time() -> None:
    lines = summary(TALK).splitlines()

    full_lines = [f"{author}: {content}" for author, content in TALK]
    positions = [
        next(
            i
            for i, whole in enumerate(full_lines)
            if line.split(": ")[1] in whole and line.startswith(whole.split(":")[0])
        )
        for line in lines
    ]
    assert positions == sorted(positions)
    assert 2 < len(lines) < len(TALK)
    assert "bob: I moved to Berlin last month." in lines
    assert not any("How do you like it" in line or "see you later" in line for line in lines)


def test_the_same_input_gives_the_same_summary() -> None:
    assert summary(TALK) == summary(TALK) != ""


@pytest.mark.parametrize("budget", [0, 1, 12, 30, 60, 1000])
def test_the_token_limit_is_kept(budget: int) -> None:
    content = summary(TALK, previous="carol: I keep bees in Kent.", max_tokens=budget)

    assert tokens.count(content) <= budget
    assert bool(content) == (budget >= 12)


@pytest.mark.slow
def test_a_long_conversation_is_shortened() -> None:
    talk = [
        ("bob", f"I bought the book number {number} about the history of Rome and of its emperors.")
        for number in range(200)
    ]

    assert len(summary(talk).splitlines()) == 16
    assert len(summary(talk, max_tokens=4000, kind="long").splitlines()) == 48


def test_the_previous_summary_is_included_first() -> None:
    previous = (
        "bob: I moved to Berlin last month.\nalice: I visited the Pergamon museum in Berlin in "
        "2019."
    )

    lines = summary(TALK[4:], previous=previous).splitlines()

    assert lines[:2] == previous.splitlines()
    assert any(line.startswith("bob: ") and "Rex" in line for line in lines[2:])


def test_prose_of_a_previous_summary_is_split_into_sentences() -> None:
    lines = summary(
        [("bob", "I adopted a dog.")],
        previous="Bob lives in Berlin with Dr. Weber. He works at Siemens.",
    ).splitlines()

    assert lines == [
        "Bob lives in Berlin with Dr. Weber.",
        "He works at Siemens.",
        "bob: I adopted a dog.",
    ]


def test_no_line_is_repeated() -> None:
    talk = [
        ("bob", "I live in Rome."),
        ("alice", "I live in Rome."),
        ("bob", "I live in Rome! I live in Rome."),
    ]

    assert sorted(summary(talk, previous="bob: I live in Rome.").splitlines()) == [
        "alice: I live in Rome.",
        "bob: I live in Rome.",
    ]


def test_small_talk_is_summarised_only_without_other_text() -> None:
    assert (
        summary([("bob", "Hi there!"), ("alice", "What about the concert?")])
        == "alice: What about the concert?"
    )
    assert summary([("bob", "Hi!"), ("alice", "Ok.")]) == ""
    assert summary([]) == ""
    assert summary([], previous="bob: I live in Rome.") == "bob: I live in Rome."


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        ("我住在北京。你好！", "bob: 我住在北京。"),
        ("私は東京に住んでいます。", "bob: 私は東京に住んでいます。"),
        ("Na ja, ich wohne in Köln.", "bob: Na ja, ich wohne in Köln."),
    ],
)
def test_summaries_are_in_the_language_of_the_messages(sentence: str, line: str) -> None:
    assert summary([("bob", sentence)]) == line


TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
"""Without lone surrogates, which no message has: they are refused at the door."""


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["bob", "alice"]), TEXT), max_size=5),
    st.none() | TEXT,
    st.integers(0, 60),
)
def test_any_text_gives_distinct_lines_within_the_budget(
    talk: list[tuple[str, str]], previous: str | None, budget: int
) -> None:
    content = summary(talk, previous, budget)

    assert tokens.count(content) <= budget
    assert len(set(content.split("\n"))) == len(content.split("\n"))


def test_sentences_of_a_long_message_are_whole_without_the_segmenter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It compiles its patterns again and again: most of the cost of a summary of long messages."""

    def segmenter() -> None:
        raise AssertionError("a long message was given to the segmenter")

    monkeypatch.setattr(sentences, "_segmenter_class", segmenter)
    clocks = [
        f"My neighbour Dr. Smith repaired clock {n} of the {word} tower, e.g. its bell."
        for n, word in enumerate(("old", "new", "north", "south", "east", "west"), 1)
    ]
    long = " ".join(
        [*clocks, *clocks, "He sings in a choir on Mondays! We met him at the harbour."]
    )
    assert len(long) > 800
    lines = summary([("bob", long)]).splitlines()
    assert lines
    assert {line.removeprefix("bob: ") for line in lines} <= {
        *clocks,
        "He sings in a choir on Mondays!",
        "We met him at the harbour.",
    }
