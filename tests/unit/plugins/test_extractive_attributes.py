"""Kind, time and certainty of what is derived without a model, and sentences that need another."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memservice.spi.reasoner import DeriveRequest, Statement, Utterance
from memservice_extractive.reasoner import ExtractiveReasoner

SAID = datetime(2024, 7, 8, 22, 30, tzinfo=UTC)


def derived(*turns: tuple[str, str], zone: str | None = None) -> list[Statement]:
    utterances = [
        Utterance(number, f"u{number}", author, content, SAID, zone=zone)
        for number, (author, content) in enumerate(turns, 1)
    ]
    return list(ExtractiveReasoner().derive(DeriveRequest("bob", utterances)).statements)


@pytest.mark.parametrize(
    ("sentence", "kind", "certainty"),
    [
        ("I live in Rome.", "fact", "certain"),
        ("We moved to Braga last weekend!", "event", "certain"),
        ("I moved to Braga last month.", "fact", "certain"),
        ("I prefer tea to coffee.", "preference", "certain"),
        ("Tomorrow I am going to fly to Oslo.", "plan", "certain"),
        ("I think the new office is too loud.", "opinion", "certain"),
        ("Please always answer in German.", "instruction", "certain"),
        ("If I won the lottery I'd buy a house in Iceland.", "fact", "hypothetical"),
        ("In my story, the hero is a vampire who lives in Prague.", "fact", "hypothetical"),
        ("Maybe I left my umbrella at the station.", "fact", "hedged"),
        ("Mein Lieblingsbuch ist Momo.", "fact", "certain"),
        ("Wenn ich reich wäre, würde ich nach Kanada ziehen.", "fact", "hypothetical"),
        ("我更喜欢喝绿茶。", "preference", "certain"),
    ],
)
def test_each_statement_has_a_kind_and_a_certainty(
    sentence: str, kind: str, certainty: str
) -> None:
    (statement,) = derived(("bob", sentence))
    assert (statement.kind, statement.certainty) == (kind, certainty)


def test_days_are_those_of_the_author() -> None:
    (statement,) = derived(("bob", "I moved to Oslo yesterday."), zone="Asia/Tokyo")
    assert statement.when == ("2024-07-08", "2024-07-08")


def test_a_short_reply_keeps_its_question() -> None:
    statements = derived(("ann", "Nice! How old is your son?"), ("bob", "He's 7. He likes chess."))
    assert [statement.content for statement in statements] == [
        "How old is your son? – He's 7. He likes chess."
    ]
    assert statements[0].message_keys == (2,)


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("How are you?", "Quite well."),
        ("Do you like it?", "Yes."),
        ("How old is your son?", "What do you mean?"),
    ],
)
def test_replies_without_content_are_not_stored(question: str, reply: str) -> None:
    assert derived(("ann", question), ("bob", reply)) == []


def test_a_reply_with_a_subject_stands_alone() -> None:
    statements = derived(("ann", "How old are you?"), ("bob", "I'm 34."))
    assert [statement.content for statement in statements] == ["I'm 34."]


def test_a_sentence_about_a_pronoun_keeps_the_one_before_it() -> None:
    statements = derived(("bob", "Our dog is called Rex. He is afraid of thunder. I own a boat."))
    assert [statement.content for statement in statements] == [
        "Our dog is called Rex. He is afraid of thunder.",
        "I own a boat.",
    ]


def test_a_question_of_the_peer_itself_is_not_answered_by_it() -> None:
    assert derived(("bob", "How old is Ann?"), ("bob", "7 or so.")) == []
