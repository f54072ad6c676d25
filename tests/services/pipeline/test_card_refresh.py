"""The card of a peer about itself follows each batch that changes what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from memservice.reasoning.prompts import card as card_prompt
from memservice.services import cards, deletion
from memservice.services.sessions import MemberConfig
from memservice.services.tasks import kinds
from memservice.spi.llm import CompletionRequest, ModelFailure
from memservice.spi.reasoner import Consolidated, ConsolidateRequest
from services.pipeline.conftest import Start
from services.pipeline.test_derive_context import with_model
from support.pipeline.fakes import Scripted
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place
from support.reasoning.model import Reply, ScriptedModel


class Author:
    """A model that takes each first new message for a statement, and writes a card."""

    def __init__(self, **statement: Any) -> None:
        self.statement = statement
        self.card: Callable[[str], Reply] = lambda shown: {"card": ["ATTRIBUTE: lives in Oslo"]}
        self.shown: list[str] = []
        """What each card call was shown."""
        self.model = ScriptedModel()
        self.model.say = self._say

    def _say(self, request: CompletionRequest) -> Reply:
        system, user = request.turns[0].content, request.turns[-1].content
        if system.startswith(card_prompt.PROMPT.text):
            self.shown.append(user)
            return self.card(user)
        said = user.split("[1] ", 1)[1].splitlines()[0].partition(": ")[2]
        return {"statements": [{"content": said, "messages": [1], **self.statement}]}


def card_of(place: Place, observer: str = "alice", target: str | None = None) -> list[str] | None:
    return cards.get(place.rt, PRINCIPAL, WORKSPACE, observer, target)


def test_a_batch_refreshes_the_card_with_one_call(start: Start) -> None:
    author = Author()
    place = with_model(start, author.model)
    place.say("s", ("alice", "I live in Oslo."))
    place.work()
    assert card_of(place) == ["ATTRIBUTE: lives in Oslo"]
    assert len(author.shown) == 1
    assert "The card now:\n(none)\n" in author.shown[0]
    assert "- 2024-03-01: I live in Oslo." in author.shown[0]


def test_batches_that_wait_share_a_call(start: Start) -> None:
    author = Author()
    place = with_model(start, author.model)
    place.say("s", ("alice", "I live in Oslo."))
    place.say("t", ("alice", "I keep bees."))
    place.say("u", ("alice", "I am a pilot."))
    for unit in sorted(unit for unit in place.ready() if unit.startswith(kinds.REPRESENTATION)):
        place.run(unit)
    assert author.shown == []
    assert len(place.tasks(kinds.CARD)) == 2, "one that may run, and one after it"
    place.work()
    assert len(author.shown) == 1
    assert "I keep bees." in author.shown[0]


@pytest.mark.parametrize(
    "statement",
    [
        {"kind": "event"},
        {"kind": "plan"},
        {"kind": "opinion"},
        {"kind": "fact", "certainty": "hedged"},
        {"kind": "fact", "certainty": "hypothetical"},
    ],
)
def test_what_does_not_last_costs_no_call(start: Start, statement: Mapping[str, str]) -> None:
    author = Author(**statement)
    place = with_model(start, author.model)
    place.say("s", ("alice", "I flew to Oslo yesterday."))
    place.work()
    assert place.texts("alice") == ["I flew to Oslo yesterday."]
    assert author.shown == []


def test_what_is_only_said_again_costs_no_call(start: Start) -> None:
    author = Author()
    place = with_model(start, author.model)
    for _ in range(2):
        place.say("s", ("alice", "I live in Oslo."))
        place.work()
    assert len(author.shown) == 1


def test_lines_of_callers_stay(start: Start) -> None:
    author = Author()
    place = with_model(start, author.model)
    place.say("s", ("alice", "Hm."))
    cards.put(place.rt, PRINCIPAL, WORKSPACE, "alice", None, ["Call her Ali"])
    place.work()
    assert card_of(place) == ["Call her Ali", "ATTRIBUTE: lives in Oslo"]
    assert "- Call her Ali" in author.shown[0]


@pytest.mark.parametrize(
    ("answer", "card"),
    [
        ({"card": []}, None),
        ({"card": [7, None, "ATTRIBUTE: lives in Oslo", {"a": 1}]}, ["ATTRIBUTE: lives in Oslo"]),
        ({"card": "- ATTRIBUTE: lives in Oslo\n- no kind"}, ["ATTRIBUTE: lives in Oslo"]),
        ('["ATTRIBUTE: lives in Oslo"]', ["ATTRIBUTE: lives in Oslo"]),
        ({"card": ["lives in Oslo", "GOSSIP: " + "x" * 300]}, None),
    ],
)
def test_what_is_taken_of_an_answer(start: Start, answer: Reply, card: list[str] | None) -> None:
    author = Author()
    author.card = lambda shown: answer
    place = with_model(start, author.model)
    place.say("s", ("alice", "I live in Oslo."))
    place.work()
    assert card_of(place) == card


def test_a_model_that_fails_at_the_card_loses_no_conclusion(start: Start) -> None:
    author = Author()
    author.card = lambda shown: ModelFailure("no", retryable=False)
    place = with_model(start, author.model)
    place.say("s", ("alice", "I live in Oslo."))
    place.work()
    assert place.texts("alice") == ["I live in Oslo."]
    (task,) = place.tasks(kinds.CARD)
    assert task.state == "pending"
    assert place.counts() == (1, 1, 0, 0), "clients that wait for the queue do not wait for it"


@pytest.mark.parametrize("setting", ["PEER_CARD_REFRESH", "PEER_CARD_ENABLED"])
def test_it_can_be_switched_off(start: Start, setting: str) -> None:
    author = Author()
    place = with_model(start, author.model, **{setting: "false"})
    place.say("s", ("alice", "I live in Oslo."))
    place.work()
    assert (author.shown, card_of(place)) == ([], None)


def test_only_the_peer_itself_gets_a_card(start: Start) -> None:
    """The cards of other observers are written by dreams: a batch costs one call at most."""
    author = Author()
    place = with_model(start, author.model)
    place.join("s", alice=MemberConfig(), carol=MemberConfig(observe_others=True))
    place.say("s", ("alice", "I live in Oslo."))
    place.work()
    assert len(author.shown) == 1
    assert card_of(place, "carol", "alice") is None


def test_without_a_model_the_card_is_stored_with_the_batch(start: Start) -> None:
    place = start(REASONER="extractive")
    place.say("s", ("alice", "My name is Alice Larsen. I live in Oslo."))
    place.work()
    assert card_of(place) == ["IDENTITY: My name is Alice Larsen.", "ATTRIBUTE: I live in Oslo."]
    place.clock.advance(days=9)
    place.say("s", ("alice", "I live in Bergen."))
    place.work()
    assert card_of(place) == ["IDENTITY: My name is Alice Larsen.", "ATTRIBUTE: I live in Bergen."]
    assert place.tasks(kinds.CARD) == []


def test_lines_that_quote_an_erased_session_go_with_it(start: Start) -> None:
    place = start(REASONER="extractive")
    place.say("s", ("alice", "My name is Alice Larsen. I live in Oslo."))
    place.say("t", ("alice", "I live in Oslo."), ("alice", "I work at Siemens."))
    place.work()
    cards.put(
        place.rt, PRINCIPAL, WORKSPACE, "alice", None, [*(card_of(place) or []), "Call her Ali"]
    )
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    place.work()
    assert card_of(place) == [
        "ATTRIBUTE: I live in Oslo.",
        "ATTRIBUTE: I work at Siemens.",
        "Call her Ali",
    ]


def test_a_card_that_fails_without_a_model_loses_no_conclusion(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Scripted):
        def consolidate(self, request: ConsolidateRequest) -> Consolidated:
            raise RuntimeError("no card")

    place = start(reasoner=Broken())
    place.say("s", ("alice", "I live in Oslo."))
    place.work()
    assert place.texts("alice") == ["I live in Oslo."]
    assert "the card of alice is not refreshed: RuntimeError" in caplog.text
