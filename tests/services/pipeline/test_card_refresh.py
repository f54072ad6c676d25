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
from services.pipeline.conftest import OpenPipeline
from services.pipeline.test_derive_context import with_model
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
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
        statement = user.split("[1] ", 1)[1].splitlines()[0].partition(": ")[2]
        return {"statements": [{"content": statement, "messages": [1], **self.statement}]}


def card_of(
    pipeline: Pipeline, observer: str = "alice", target: str | None = None
) -> list[str] | None:
    return cards.get(pipeline.rt, PRINCIPAL, WORKSPACE, observer, target)


def test_a_batch_refreshes_the_card_with_one_call(open_pipeline: OpenPipeline) -> None:
    author = Author()
    pipeline = with_model(open_pipeline, author.model)
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert card_of(pipeline) == ["ATTRIBUTE: lives in Oslo"]
    assert len(author.shown) == 1
    assert "The card now:\n(none)\n" in author.shown[0]
    assert "- 2024-03-01: I live in Oslo." in author.shown[0]


def test_batches_that_wait_share_a_call(open_pipeline: OpenPipeline) -> None:
    author = Author()
    pipeline = with_model(open_pipeline, author.model)
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.say("t", ("alice", "I keep bees."))
    pipeline.say("u", ("alice", "I am a pilot."))
    for unit in sorted(unit for unit in pipeline.ready() if unit.startswith(kinds.REPRESENTATION)):
        pipeline.run(unit)
    assert author.shown == []
    assert len(pipeline.tasks(kinds.CARD)) == 2, "one that may run, and one after it"
    pipeline.work()
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
def test_what_does_not_last_costs_no_call(
    open_pipeline: OpenPipeline, statement: Mapping[str, str]
) -> None:
    author = Author(**statement)
    pipeline = with_model(open_pipeline, author.model)
    pipeline.say("s", ("alice", "I flew to Oslo yesterday."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I flew to Oslo yesterday."]
    assert author.shown == []


def test_what_is_only_said_again_costs_no_call(open_pipeline: OpenPipeline) -> None:
    author = Author()
    pipeline = with_model(open_pipeline, author.model)
    for _ in range(2):
        pipeline.say("s", ("alice", "I live in Oslo."))
        pipeline.work()
    assert len(author.shown) == 1


def test_lines_of_callers_stay(open_pipeline: OpenPipeline) -> None:
    author = Author()
    pipeline = with_model(open_pipeline, author.model)
    pipeline.say("s", ("alice", "Hm."))
    cards.put(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None, ["Call her Ali"])
    pipeline.work()
    assert card_of(pipeline) == ["Call her Ali", "ATTRIBUTE: lives in Oslo"]
    assert "- Call her Ali" in author.shown[0]


@pytest.mark.slow
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
def test_what_is_taken_of_an_answer(
    open_pipeline: OpenPipeline, answer: Reply, card: list[str] | None
) -> None:
    author = Author()
    author.card = lambda shown: answer
    pipeline = with_model(open_pipeline, author.model)
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert card_of(pipeline) == card


def test_a_model_that_fails_at_the_card_loses_no_conclusion(open_pipeline: OpenPipeline) -> None:
    author = Author()
    author.card = lambda shown: ModelFailure("no", retryable=False)
    pipeline = with_model(open_pipeline, author.model)
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I live in Oslo."]
    (task,) = pipeline.tasks(kinds.CARD)
    assert task.state == "pending"
    assert pipeline.counts() == (1, 1, 0, 0), "clients that wait for the queue do not wait for it"


@pytest.mark.parametrize("setting", ["PEER_CARD_REFRESH", "PEER_CARD_ENABLED"])
def test_it_can_be_switched_off(open_pipeline: OpenPipeline, setting: str) -> None:
    author = Author()
    pipeline = with_model(open_pipeline, author.model, **{setting: "false"})
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert (author.shown, card_of(pipeline)) == ([], None)


def test_only_the_peer_itself_gets_a_card(open_pipeline: OpenPipeline) -> None:
    """The cards of other observers are written by dreams: a batch costs one call at most."""
    author = Author()
    pipeline = with_model(open_pipeline, author.model)
    pipeline.join("s", alice=MemberConfig(), carol=MemberConfig(observe_others=True))
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert len(author.shown) == 1
    assert card_of(pipeline, "carol", "alice") is None


def test_without_a_model_the_card_is_stored_with_the_batch(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(REASONER="extractive")
    pipeline.say("s", ("alice", "My name is Alice Larsen. I live in Oslo."))
    pipeline.work()
    assert card_of(pipeline) == ["IDENTITY: My name is Alice Larsen.", "ATTRIBUTE: I live in Oslo."]
    pipeline.clock.advance(days=9)
    pipeline.say("s", ("alice", "I live in Bergen."))
    pipeline.work()
    assert card_of(pipeline) == [
        "IDENTITY: My name is Alice Larsen.",
        "ATTRIBUTE: I live in Bergen.",
    ]
    assert pipeline.tasks(kinds.CARD) == []


def test_lines_that_quote_an_erased_session_go_with_it(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(REASONER="extractive")
    pipeline.say("s", ("alice", "My name is Alice Larsen. I live in Oslo."))
    pipeline.say("t", ("alice", "I live in Oslo."), ("alice", "I work at Siemens."))
    pipeline.work()
    cards.put(
        pipeline.rt,
        PRINCIPAL,
        WORKSPACE,
        "alice",
        None,
        [*(card_of(pipeline) or []), "Call her Ali"],
    )
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    assert card_of(pipeline) == [
        "ATTRIBUTE: I live in Oslo.",
        "ATTRIBUTE: I work at Siemens.",
        "Call her Ali",
    ]


def test_a_card_that_fails_without_a_model_loses_no_conclusion(
    open_pipeline: OpenPipeline, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ScriptedReasoner):
        def consolidate(self, request: ConsolidateRequest) -> Consolidated:
            raise RuntimeError("no card")

    pipeline = open_pipeline(reasoner=Broken())
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I live in Oslo."]
    assert "the card of alice is not refreshed: RuntimeError" in caplog.text
