"""What new statements replace: updates and corrections are found while deriving, within bounds, and
can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from memservice.domain.filters import equals
from memservice.domain.records import LIVE, SUPERSEDED, Conclusion
from memservice.pipeline.derive.replacing import MAX_REPLACED
from memservice.services import conclusions, dream_changes
from memservice.services.paging import Paging
from memservice.services.sessions import MemberConfig
from memservice.spi.llm import CompletionRequest
from services.pipeline.conftest import Start
from services.pipeline.test_derive_context import hold, silent, with_model
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place
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
    start: Start, *statements: Mapping[str, Any], said: str = "I live in Bergen now."
) -> Place:
    """alice is known to live in Oslo, and then says something else."""
    model = states(*statements)
    place = with_model(start, model)
    place.say("old", ("bob", "Hm."), ("alice", "Hm."))
    model.say, say = lambda request: {"statements": []}, model.say
    place.work()
    hold(place, "alice", "alice lives in Oslo.", session="old")
    model.say = say
    place.say("s", ("alice", said))
    place.work()
    return place


def row(place: Place, content: str, observer: str = "alice") -> Conclusion:
    with place.rt.storage.read() as tx:
        found = tx.rows.page(Conclusion, equals(content=content, observer=observer))
    assert len(found) == 1
    return found[0]


def test_an_update_supersedes_what_was_held(start: Start) -> None:
    place = moved(start, {"content": "alice lives in Bergen.", **UPDATE})
    old, new = row(place, "alice lives in Oslo."), row(place, "alice lives in Bergen.")
    assert (old.state, old.superseded_by, new.state) == (SUPERSEDED, new.key, LIVE)
    assert old.internal["superseded"] == "moved from Oslo to Bergen"
    assert place.texts("alice") == ["alice lives in Bergen."]
    assert place.counted("alice") == 1
    assert place.outcome("superseded") == 1


def test_it_is_listed_and_can_be_undone(start: Start) -> None:
    place = moved(start, {"content": "alice lives in Bergen.", **UPDATE})
    old = row(place, "alice lives in Oslo.")
    listed = conclusions.page(
        place.rt, PRINCIPAL, WORKSPACE, {}, Paging(1, 10, False), superseded=True
    )
    assert {(item.uid, item.state) for item in listed.items} >= {(old.uid, SUPERSEDED)}
    dream_changes.restore(place.rt, PRINCIPAL, WORKSPACE, old.uid)
    assert sorted(place.texts("alice")) == ["alice lives in Bergen.", "alice lives in Oslo."]
    assert place.counted("alice") == 2
    assert "superseded" not in row(place, "alice lives in Oslo.").internal


@pytest.mark.parametrize(
    ("statement", "kept"),
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
    start: Start, statement: Mapping[str, Any], kept: str | None
) -> None:
    """The statement is stored all the same."""
    place = moved(start, statement)
    assert sorted(place.texts("alice")) == sorted([statement["content"], "alice lives in Oslo."])
    assert place.outcome(kept or "kept_as_excess") == (1 if kept else 0)


def test_what_the_batch_says_again_is_not_replaced(start: Start) -> None:
    place = moved(
        start,
        {"content": "alice lives in Bergen.", **UPDATE},
        {"content": "alice lives in Oslo."},
        said="I live in Bergen now. No, I live in Oslo!",
    )
    assert row(place, "alice lives in Bergen.").state == LIVE
    assert place.outcome("superseded") == 0
    assert place.outcome("kept_as_said_again") == 1


def test_a_late_message_does_not_replace_newer_knowledge(start: Start) -> None:
    model = silent()
    place = with_model(start, model)
    place.say("s", ("alice", "Hm."), ("alice", "I live in Bergen."))
    place.work()
    place.clock.advance(days=9)
    hold(place, "alice", "alice lives in Oslo.", session="s")
    place.clock.advance(days=-9)
    model.say = states({"content": "alice lives in Bergen.", **UPDATE}).say
    place.say("s", ("alice", "I live in Bergen."))
    place.work()
    assert len(place.texts("alice")) == 2
    assert place.outcome("kept_as_newer") == 1


def test_one_batch_replaces_only_a_few(start: Start) -> None:
    """A message that talks a model into forgetting everything."""
    model = silent()
    place = with_model(start, model)
    place.say("s", ("alice", "Hm."))
    place.work()
    names = ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Kyiv", "Bern", "Quito", "Paris", "Prague")
    hold(place, "alice", *(f"alice lived in {name} for years." for name in names), session="s")
    ids = [f"c{number}" for number in range(1, 11)]
    model.say = states({"content": "alice lived in no town.", "replaces": ids}).say
    place.say("s", ("alice", "Forget it: I lived in no town for years."))
    place.work()
    assert len(place.texts("alice")) == len(names) - MAX_REPLACED + 1
    assert place.outcome("kept_as_excess") == len(names) - MAX_REPLACED


def test_every_observer_that_holds_it_gets_the_update(start: Start) -> None:
    model = silent()
    place = with_model(start, model)
    place.join("s", alice=MemberConfig(), carol=MemberConfig(observe_others=True))
    hold(place, "alice", "alice lives in Oslo.", session="s")
    hold(place, "carol", "alice lives in Oslo.", session="s")
    model.say = states({"content": "alice lives in Bergen.", **UPDATE}).say
    place.say("s", ("alice", "I live in Bergen now."))
    place.work()
    for observer in ("alice", "carol"):
        old = row(place, "alice lives in Oslo.", observer)
        new = row(place, "alice lives in Bergen.", observer)
        assert (old.superseded_by, place.texts(observer, "alice")) == (new.key, [new.content])
        assert place.counted(observer, "alice") == 1


def test_a_correction_that_is_held_already_counts_again_and_replaces(start: Start) -> None:
    model = silent()
    place = with_model(start, model)
    place.say("s", ("alice", "Hm."))
    place.work()
    hold(place, "alice", "alice lives in Oslo.", "alice lives in Bergen.", session="s")
    oslo = states({"content": "alice lives in Bergen.", "replaces": ["c1", "c2"]})
    model.say = oslo.say
    place.say("s", ("alice", "I live in Bergen, not in Oslo."))
    place.work()
    new = row(place, "alice lives in Bergen.")
    assert (new.state, new.times_derived) == (LIVE, 2)
    assert row(place, "alice lives in Oslo.").superseded_by == new.key


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


@pytest.mark.parametrize("name", DETAILS)
def test_what_a_statement_says_about_itself_is_stored(start: Start, name: str) -> None:
    """As far as it can be read: whatever is wrong with it, the statement itself is kept."""
    given, stored = DETAILS[name]
    place = with_model(start, states({"content": "alice keeps bees.", **given}))
    place.say("s", ("alice", "I keep bees."))
    place.work()
    (conclusion,) = place.conclusions("alice")
    assert {key: conclusion.internal[key] for key in conclusion.internal if key != "prompt"} == (
        stored
    )


def test_conclusions_can_be_filtered_by_kind(start: Start) -> None:
    place = with_model(
        start,
        states(
            {"content": "alice keeps bees.", "kind": "fact"},
            {"content": "alice wants to keep goats.", "kind": "plan"},
        ),
    )
    place.say("s", ("alice", "I keep bees, and want to keep goats."))
    place.work()
    condition = {"metadata": {"kind": "plan"}}
    found = conclusions.page(place.rt, PRINCIPAL, WORKSPACE, condition, Paging(1, 10, False))
    assert [(item.content, item.kind) for item in found.items] == [
        ("alice wants to keep goats.", "plan")
    ]
