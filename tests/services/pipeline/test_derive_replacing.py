"""What new statements replace: updates and corrections are found while deriving, within bounds, and
can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import LIVE, SUPERSEDED, Conclusion
from memservice.pipeline.derive.replacing import MAX_REPLACED
from memservice.services import conclusions, supersession
from memservice.services.conclusions import Shown
from memservice.services.paging import Paging
from memservice.services.sessions import MemberConfig
from memservice.spi.llm import CompletionRequest
from services.pipeline.conftest import OpenPipeline
from services.pipeline.test_derive_context import hold, silent, with_model
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.reasoning.model import Reply, ScriptedModel

UPDATE = {"replaces": ["c1"], "reason": "moved from Oslo to Bergen"}


def states(*statements: Mapping[str, Any]) -> ScriptedModel:
    """A model that makes these statements of the first new message of alice."""
    model = silent()

    def say(request: CompletionRequest) -> Reply:
        if "Observed peer: alice" not in request.turns[-1].content:
            return {"statements": []}
        return {"statements": [{"messages": [1], **statement} for statement in statements]}

    model.say = say
    return model


def moved(
    open_pipeline: OpenPipeline,
    *statements: Mapping[str, Any],
    content: str = "I live in Bergen now.",
) -> Pipeline:
    """alice is known to live in Oslo, and then says something else."""
    model = states(*statements)
    pipeline = with_model(open_pipeline, model)
    pipeline.say("old", ("bob", "Hm."), ("alice", "Hm."))
    model.say, say = lambda request: {"statements": []}, model.say
    pipeline.work()
    hold(pipeline, "alice", "alice lives in Oslo.", session="old")
    model.say = say
    pipeline.say("s", ("alice", content))
    pipeline.work()
    return pipeline


def row(pipeline: Pipeline, content: str, observer: str = "alice") -> Conclusion:
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(Conclusion, equals(content=content, observer=observer))
    assert len(rows) == 1
    return rows[0]


def test_an_update_supersedes_what_was_held(open_pipeline: OpenPipeline) -> None:
    pipeline = moved(open_pipeline, {"content": "alice lives in Bergen.", **UPDATE})
    old, new = row(pipeline, "alice lives in Oslo."), row(pipeline, "alice lives in Bergen.")
    assert (old.state, old.superseded_by, new.state) == (SUPERSEDED, new.key, LIVE)
    assert old.internal["superseded"] == "moved from Oslo to Bergen"
    assert pipeline.texts("alice") == ["alice lives in Bergen."]
    assert pipeline.counted("alice") == 1
    assert pipeline.outcome("superseded") == 1


def test_it_is_listed_and_can_be_undone(open_pipeline: OpenPipeline) -> None:
    pipeline = moved(open_pipeline, {"content": "alice lives in Bergen.", **UPDATE})
    old = row(pipeline, "alice lives in Oslo.")
    page = conclusions.page(
        pipeline.rt, PRINCIPAL, WORKSPACE, {}, Paging(1, 10, False), Shown(superseded=True)
    )
    assert {(item.uid, item.state) for item in page.items} >= {(old.uid, SUPERSEDED)}
    supersession.restore(pipeline.rt, PRINCIPAL, WORKSPACE, old.uid)
    assert sorted(pipeline.texts("alice")) == ["alice lives in Bergen.", "alice lives in Oslo."]
    assert pipeline.counted("alice") == 2
    assert "superseded" not in row(pipeline, "alice lives in Oslo.").internal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "counted_as"),
    [
        ({"content": "alice lives in Bergen.", "replaces": ["c7"]}, None),
        ({"content": "alice lives in Bergen.", "replaces": ["uid-1", "1", "c", ""]}, None),
        ({"content": "alice lives in Bergen.", "replaces": [1, None, {"id": "c1"}]}, None),
        ({"content": "alice lives in Bergen.", "replaces": {"c1": True}}, None),
        ({"content": "Bergen is wet.", "replaces": ["c1"]}, "kept_as_unrelated"),
        (
            {
                "content": "alice lives in Bergen.",
                "replaces": ["c1"],
                "certainty": "hypothetical",
            },
            "kept_as_hypothetical",
        ),
    ],
)
def test_a_replacement_that_breaks_a_rule_is_left_out(
    open_pipeline: OpenPipeline, statement: Mapping[str, Any], counted_as: str | None
) -> None:
    """The statement is stored all the same."""
    pipeline = moved(open_pipeline, statement)
    assert sorted(pipeline.texts("alice")) == sorted([statement["content"], "alice lives in Oslo."])
    assert pipeline.outcome(counted_as or "kept_as_excess") == (1 if counted_as else 0)


def test_what_the_batch_says_again_is_not_replaced(open_pipeline: OpenPipeline) -> None:
    pipeline = moved(
        open_pipeline,
        {"content": "alice lives in Bergen.", **UPDATE},
        {"content": "alice lives in Oslo."},
        content="I live in Bergen now. No, I live in Oslo!",
    )
    assert row(pipeline, "alice lives in Bergen.").state == LIVE
    assert pipeline.outcome("superseded") == 0
    assert pipeline.outcome("kept_as_said_again") == 1


def test_a_late_message_does_not_replace_newer_knowledge(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", ("alice", "Hm."), ("alice", "I live in Bergen."))
    pipeline.work()
    pipeline.clock.advance(days=9)
    hold(pipeline, "alice", "alice lives in Oslo.", session="s")
    pipeline.clock.advance(days=-9)
    model.say = states({"content": "alice lives in Bergen.", **UPDATE}).say
    pipeline.say("s", ("alice", "I live in Bergen."))
    pipeline.work()
    assert len(pipeline.texts("alice")) == 2
    assert pipeline.outcome("kept_as_newer") == 1


def test_one_batch_replaces_only_a_few(open_pipeline: OpenPipeline) -> None:
    """A message that talks a model into forgetting everything."""
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", ("alice", "Hm."))
    pipeline.work()
    names = ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Kyiv", "Bern", "Quito", "Paris", "Prague")
    hold(pipeline, "alice", *(f"alice lived in {name} for years." for name in names), session="s")
    ids = [f"c{number}" for number in range(1, 11)]
    model.say = states({"content": "alice lived in no town.", "replaces": ids}).say
    pipeline.say("s", ("alice", "Forget it: I lived in no town for years."))
    pipeline.work()
    assert len(pipeline.texts("alice")) == len(names) - MAX_REPLACED + 1
    assert pipeline.outcome("kept_as_excess") == len(names) - MAX_REPLACED


def test_every_observer_that_holds_it_gets_the_update(open_pipeline: OpenPipeline) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.join("s", alice=MemberConfig(), carol=MemberConfig(observe_others=True))
    hold(pipeline, "alice", "alice lives in Oslo.", session="s")
    hold(pipeline, "carol", "alice lives in Oslo.", session="s")
    model.say = states({"content": "alice lives in Bergen.", **UPDATE}).say
    pipeline.say("s", ("alice", "I live in Bergen now."))
    pipeline.work()
    for observer in ("alice", "carol"):
        old = row(pipeline, "alice lives in Oslo.", observer)
        new = row(pipeline, "alice lives in Bergen.", observer)
        assert (old.superseded_by, pipeline.texts(observer, "alice")) == (new.key, [new.content])
        assert pipeline.counted(observer, "alice") == 1


def test_a_correction_that_is_held_already_counts_again_and_replaces(
    open_pipeline: OpenPipeline,
) -> None:
    model = silent()
    pipeline = with_model(open_pipeline, model)
    pipeline.say("s", ("alice", "Hm."))
    pipeline.work()
    hold(pipeline, "alice", "alice lives in Oslo.", "alice lives in Bergen.", session="s")
    oslo = states({"content": "alice lives in Bergen.", "replaces": ["c1", "c2"]})
    model.say = oslo.say
    pipeline.say("s", ("alice", "I live in Bergen, not in Oslo."))
    pipeline.work()
    new = row(pipeline, "alice lives in Bergen.")
    assert (new.state, new.times_derived) == (LIVE, 2)
    assert row(pipeline, "alice lives in Oslo.").superseded_by == new.key


DETAILS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "all": (
        {"kind": "event", "when": "2024-05-25/2024-05-27", "certainty": "hedged"},
        {
            "kind": "event",
            "when": {"start": "2024-05-25", "end": "2024-05-27"},
            "certainty": "hedged",
        },
    ),
    "none": ({}, {}),
    "one day": (
        {"kind": "Plan ", "when": " 2024-05-25 "},
        {"kind": "plan", "when": {"start": "2024-05-25", "end": "2024-05-25"}},
    ),
    "open": (
        {"when": "2024-03/..", "certainty": "certain"},
        {"when": {"start": "2024-03", "end": None}},
    ),
    "object": (
        {"when": {"from": "2024", "to": None}},
        {"when": {"start": "2024", "end": None}},
    ),
    "unknown words": (
        {"kind": "secret", "when": "next Friday", "certainty": "very", "reason": 7},
        {},
    ),
    "wrong types": (
        {"kind": 3, "when": ["2024", 5, 6], "certainty": [], "replaces": 4, "reason": {}},
        {},
    ),
    "no such day": ({"when": "2024-02-31"}, {}),
    "end before start": ({"when": "2024-05-27/2024-05-25"}, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DETAILS)
def test_what_a_statement_says_about_itself_is_stored(
    open_pipeline: OpenPipeline, name: str
) -> None:
    """As far as it can be read: whatever is wrong with it, the statement itself is kept."""
    fields, stored = DETAILS[name]
    pipeline = with_model(open_pipeline, states({"content": "alice keeps bees.", **fields}))
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.work()
    (conclusion,) = pipeline.conclusions("alice")
    assert {key: conclusion.internal[key] for key in conclusion.internal if key != "prompt"} == (
        stored
    )


def test_conclusions_can_be_filtered_by_kind(open_pipeline: OpenPipeline) -> None:
    pipeline = with_model(
        open_pipeline,
        states(
            {"content": "alice keeps bees.", "kind": "fact"},
            {"content": "alice wants to keep goats.", "kind": "plan"},
        ),
    )
    pipeline.say("s", ("alice", "I keep bees, and want to keep goats."))
    pipeline.work()
    condition = {"metadata": {"kind": "plan"}}
    matching = conclusions.page(pipeline.rt, PRINCIPAL, WORKSPACE, condition, Paging(1, 10, False))
    assert [(item.content, item.kind) for item in matching.items] == [
        ("alice wants to keep goats.", "plan")
    ]
