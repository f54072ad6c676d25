"""A conversation of three peers about one another: the attribution of statements and the observers
of conclusions, with both reasoners."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from memservice.domain.records import Message
from memservice.pipeline.derive.attribution import attributed
from memservice.services.sessions import MemberConfig
from memservice.spi.llm import CompletionRequest
from memservice.spi.reasoner import Statement
from services.pipeline.conftest import OpenPipeline
from support.pipeline.pipeline import Pipeline
from support.reasoning.model import Reply, ScriptedModel

TALK = (
    ("alice", "I moved to Lisbon in March. My brother Tom is a pilot."),
    ("bob", "Alice is afraid of zebras and owns a yacht in Monaco. I work as a chemist in Ghent."),
    ("carol", "Bob told me that he plays the bassoon every evening. I am allergic to peanuts."),
    ("alice", "I grow tomatoes on my balcony."),
    ("carol", "Do you still keep bees, Bob?"),
    ("bob", "Yes, two hives."),
)

OWN = {
    "alice": {"Lisbon": 0, "pilot": 0, "tomatoes": 3},
    "bob": {"chemist": 1},
    "carol": {"peanuts": 2},
}
"""A word of what each says of itself, and which message says it."""
OF_OTHERS = {"alice": ("zebras", "yacht", "Monaco"), "bob": ("bassoon",), "carol": ()}
"""Words that others say of them, and they never."""


def careless(request: CompletionRequest) -> Reply:
    """A model that ascribes to the observed peer whatever it finds in the conversation, and cites
    whatever it may."""
    text = request.turns[-1].content
    observed = re.findall(r"^Observed peer: (.*)$", text, re.M)[0]
    numbered = re.findall(r"^\[(\d+)\] \S+ \S+ \S+ \S+ \S+: (.*)$", text, re.M)
    others = re.findall(r"^\[[A-Z]+\] \S+ \S+ \S+ \S+ \S+: (.*)$", text, re.M)
    own = [
        {"content": sentence.strip(), "messages": [int(number)]}
        for number, content in numbered
        for sentence in re.findall(r"[^.?]+\.", content)
        if not sentence.strip().startswith(("Bob", "Alice"))
    ]
    of_others = [
        {"content": sentence.strip(), "messages": [number]}
        for content in others
        for sentence in re.findall(r"[^.?]+\.", content)
        for number in (99, *(int(number) for number, _ in numbered))
    ]
    if observed == "bob" and "Do you still keep bees" in text:
        own.append({"content": "Bob keeps bees, in two hives.", "messages": [int(numbered[-1][0])]})
    return {"statements": of_others + own}


def with_model(open_pipeline: OpenPipeline) -> Pipeline:
    model = ScriptedModel()
    model.say = careless
    return open_pipeline(
        model,
        REASONER="auto",
        DERIVER_MODEL_CONFIG__TRANSPORT="scripted",
        DERIVER_FLUSH_ENABLED="true",
    )


def without_model(open_pipeline: OpenPipeline) -> Pipeline:
    return open_pipeline(REASONER="extractive")


@pytest.mark.slow
@pytest.mark.parametrize("opened", [with_model, without_model], ids=["llm", "extractive"])
def test_three_peers_who_speak_of_one_another(
    open_pipeline: OpenPipeline, opened: Callable[[OpenPipeline], Pipeline]
) -> None:
    pipeline = opened(open_pipeline)
    pipeline.join(
        "s", alice=MemberConfig(), bob=MemberConfig(observe_others=True), carol=MemberConfig()
    )
    messages = pipeline.say("s", *TALK)
    pipeline.work()
    assert pipeline.tasks(state="failed") == pipeline.tasks(state="pending") == []

    for peer, words in OWN.items():
        rows = pipeline.conclusions(peer)
        for word, number in words.items():
            (row,) = [row for row in rows if word in row.content]
            assert row.message_keys == [messages[number].key], "with the message that says it"
        for word in OF_OTHERS[peer]:
            assert not any(word in row.content for row in rows), (
                f"{word} is what others say of {peer}"
            )
        for row in rows:
            assert {message.author for message in messages if message.key in row.message_keys} == {
                peer
            }
            assert (row.observer, row.observed, row.session) == (peer, peer, "s")

    # Bob observes the others and holds the same about them, in collections of his own; nobody else
    # holds anything about others.
    assert sorted(pipeline.texts("bob", "alice")) == sorted(pipeline.texts("alice"))
    assert sorted(pipeline.texts("bob", "carol")) == sorted(pipeline.texts("carol"))
    for observer, observed in (
        ("alice", "bob"),
        ("alice", "carol"),
        ("carol", "alice"),
        ("carol", "bob"),
    ):
        assert pipeline.texts(observer, observed) == []


@pytest.mark.slow
def test_confirmed_statements_are_stored(open_pipeline: OpenPipeline) -> None:
    pipeline = with_model(open_pipeline)
    pipeline.say("s", *TALK)
    pipeline.work()
    assert "Bob keeps bees, in two hives." in pipeline.texts("bob")
    assert pipeline.outcome("misattributed") >= 4


@pytest.mark.slow
def test_conclusions_record_their_model_and_prompt(open_pipeline: OpenPipeline) -> None:
    pipeline = with_model(open_pipeline)
    pipeline.say("s", *TALK)
    pipeline.work()
    for row in pipeline.conclusions("alice"):
        assert row.reasoner == "llm"
        assert row.model == "gpt-5.4-mini"
        assert str(row.internal["prompt"]).startswith("derive.")


@pytest.mark.slow
def test_echoes_are_not_passed_to_the_model(open_pipeline: OpenPipeline) -> None:
    """An assistant that repeats facts about Alice is not their source, even if a model rephrases
    them."""
    model = ScriptedModel()
    model.say = careless
    pipeline = open_pipeline(
        model,
        REASONER="auto",
        DERIVER_MODEL_CONFIG__TRANSPORT="scripted",
        DERIVER_FLUSH_ENABLED="true",
    )
    pipeline.say(
        "s", ("alice", "I moved to Lisbon in March with two cats."), ("assistant", "Noted.")
    )
    pipeline.work()
    pipeline.say(
        "s",
        (
            "assistant",
            '"I moved to Lisbon in March with two cats." The weather service is down today.',
        ),
    )
    pipeline.work()
    shown = model.prompts()[-1]
    assert "The weather service is down today." in shown
    assert shown.count("two cats") == 1, "in alice's own message, as context"


def test_a_choice_is_stored_with_the_message_of_the_peer(open_pipeline: OpenPipeline) -> None:
    """From the prompt to the store: the model names the offer, and the choice is kept."""
    model = ScriptedModel()

    def say(request: CompletionRequest) -> Reply:
        text = request.turns[-1].content
        (offer,) = re.findall(r"^\[([A-Z])\] .*Villa Rosa", text, re.M)
        (choice,) = re.findall(r"^\[(\d+)\] .*The second one", text, re.M)
        statement = {
            "content": "alice wants to stay at the Villa Rosa.",
            "messages": [int(choice)],
            "basis": "confirmed",
            "confirms": [offer],
        }
        return {"statements": [statement]}

    model.say = say
    pipeline = open_pipeline(
        model,
        REASONER="auto",
        DERIVER_MODEL_CONFIG__TRANSPORT="scripted",
        DERIVER_FLUSH_ENABLED="true",
    )
    pipeline.join("s", alice=MemberConfig(), bob=MemberConfig(observe_me=False))
    messages = pipeline.say(
        "s",
        ("bob", "We stayed at the Hotel Aurora. I suggest the Villa Rosa for you."),
        ("alice", "The second one sounds perfect, let's take that!"),
    )
    pipeline.work()
    (row,) = pipeline.conclusions("alice")
    assert row.content == "alice wants to stay at the Villa Rosa."
    assert row.message_keys == [messages[1].key]


NOW = datetime(2024, 5, 17, tzinfo=UTC)


def message(key: int, author: str, content: str) -> Message:
    return Message(
        key=key,
        uid=f"uid-{key}",
        workspace_key=1,
        session_key=1,
        author_key={"alice": 1, "bob": 2}[author],
        session="s",
        author=author,
        seq=key,
        content=content,
        tokens=1,
        tokens_through=key,
        created_at=NOW,
    )


@pytest.mark.parametrize(
    ("others_text", "own", "statement", "is_stored"),
    [
        (
            "You own a yacht in Monaco.",
            "I grow tomatoes on my balcony.",
            "Alice owns a yacht in Monaco.",
            False,
        ),
        ("You own a yacht in Monaco.", "Yes.", "Alice owns a yacht in Monaco.", True),
        (
            "Do you own a yacht in Monaco?",
            "I inherited one from my grandmother long ago.",
            "Alice owns a yacht in Monaco.",
            True,
        ),
        (
            "You own a yacht in Monaco.",
            "The yacht is in Monaco since May.",
            "Alice owns a yacht in Monaco.",
            True,
        ),
        (
            "You own a yacht in Monaco.",
            "I grow tomatoes on my balcony.",
            "Alice grows tomatoes.",
            True,
        ),
        ("你在摩纳哥有一艘游艇。", "我在阳台上种西红柿和黄瓜。", "你在摩纳哥有一艘游艇", False),
    ],
)
def test_statements_that_repeat_another_peer_are_dropped(
    others_text: str, own: str, statement: str, is_stored: bool
) -> None:
    messages = [message(1, "bob", others_text), message(2, "alice", own)]
    remaining, dropped = attributed([Statement(statement, (2,))], messages[1:], messages, ["alice"])
    assert ([s.content for s in remaining], dropped) == (([statement], 0) if is_stored else ([], 1))


def test_only_the_peers_own_new_messages_can_be_cited() -> None:
    messages = [
        message(1, "bob", "I keep bees."),
        message(2, "alice", "I grow tomatoes."),
        message(3, "alice", "I grow beans."),
    ]
    statements = [
        Statement("Alice grows tomatoes.", (1, 2, 3)),
        Statement("Alice keeps bees.", (1,)),
        Statement("Alice grows beans.", (7,)),
    ]
    remaining, dropped = attributed(statements, messages[1:2], messages, ["alice"])
    assert [statement.message_keys for statement in remaining] == [(2,)]
    assert dropped == 2
