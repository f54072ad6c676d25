"""Summaries: when they are written, from what, and that a backlog costs one of each kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memservice.domain import tokens
from memservice.domain.ids import new_uid
from memservice.domain.records import Message, Task
from memservice.services import sessions
from memservice.services.sessions import SessionFields
from memservice.services.tasks import kinds
from memservice.spi.reasoner import SummarizeRequest
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

Start = Callable[..., Place]


def talk(place: Place, first: int, last: int, session: str = "s") -> list[Message]:
    """Messages m<first> … m<last>, of two peers."""
    return place.say(
        session, *[("alice" if n % 2 else "bob", f"m{n}") for n in range(first, last + 1)]
    )


def ranges(place: Place) -> list[tuple[str, str, str, str | None]]:
    """Of each summary that was asked for: kind, first and last message, what came before."""
    return [
        (r.kind, r.messages[0].content, r.messages[-1].content, r.previous)
        for r in place.reasoner.summaries
    ]


def test_short_and_long_summaries_are_written_at_their_intervals(place: Place) -> None:
    said: list[Message] = []
    for start in range(1, 61, 10):
        said += talk(place, start, start + 9)
        place.work()
    assert ranges(place) == [
        ("short", "m1", "m20", None),
        ("short", "m21", "m40", "short of 20, m1 to m20"),
        ("long", "m1", "m60", None),
        ("short", "m41", "m60", "short of 20, m21 to m40"),
    ]
    found = place.summaries("s")
    assert set(found) == {"short", "long"}
    assert found["short"].content == "short of 20, m41 to m60"
    for summary in found.values():
        assert (summary.message_key, summary.message_uid) == (said[59].key, said[59].uid)
        assert summary.tokens == tokens.count(summary.content)
        assert summary.reasoner == "scripted"


def test_nineteen_messages_create_no_summary(place: Place) -> None:
    talk(place, 1, 19)
    place.work()
    assert place.summaries("s") == {}
    assert place.tasks(kinds.SUMMARY) == []


def test_a_backlog_collapses_into_the_newest_of_each_kind(place: Place) -> None:
    said = talk(place, 1, 70)
    assert len(place.tasks(kinds.SUMMARY)) == 3
    place.work()
    assert sorted(ranges(place)) == [("long", "m1", "m60", None), ("short", "m1", "m60", None)]
    assert {summary.message_uid for summary in place.summaries("s").values()} == {said[59].uid}
    assert {task.state for task in place.tasks(kinds.SUMMARY)} == {"done"}
    assert place.outcome("stored") == 70 + 2


def test_covered_messages_are_not_summarised_again(place: Place) -> None:
    said = talk(place, 1, 40)
    place.work()
    asked = len(place.reasoner.summaries)
    before = place.summaries("s")
    late = Task(
        uid=new_uid(),
        unit=place.tasks(kinds.SUMMARY)[0].unit,
        kind=kinds.SUMMARY,
        workspace_key=said[0].workspace_key,
        session_key=said[0].session_key,
        message_key=said[19].key,
        payload={"kinds": ["short"], "instructions": None},
        not_before=place.clock(),
        created_at=place.clock(),
    )
    place.rt.storage.write(lambda tx: tx.tasks.add([late]))
    place.work()
    assert len(place.reasoner.summaries) == asked
    assert place.summaries("s") == before
    assert place.tasks(kinds.SUMMARY)[-1].outcome == {"wanted": 0, "stored": 0}


def test_intervals_and_instructions_are_the_sessions_own(place: Place) -> None:
    configuration = {
        "summary": {
            "messages_per_short_summary": 10,
            "messages_per_long_summary": 25,
            "custom_instructions": "In verse.",
        }
    }
    sessions.get_or_create(
        place.rt, PRINCIPAL, WORKSPACE, "s", SessionFields(configuration=configuration)
    )
    talk(place, 1, 10)
    talk(place, 11, 25)
    place.work()
    assert sorted(ranges(place)) == [("long", "m1", "m25", None), ("short", "m1", "m20", None)]
    assert {request.instructions for request in place.reasoner.summaries} == {"In verse."}


def test_summaries_can_be_switched_off(place: Place) -> None:
    sessions.get_or_create(
        place.rt,
        PRINCIPAL,
        WORKSPACE,
        "s",
        SessionFields(configuration={"summary": {"enabled": False}}),
    )
    talk(place, 1, 60)
    talk(place, 1, 20, "other")
    place.work()
    assert place.summaries("s") == {}
    assert set(place.summaries("other")) == {"short"}


def test_a_blank_summary_is_not_stored(start: Start) -> None:
    place = start(REASONER="extractive")
    place.say("s", *[("alice", "👍")] * 20)
    place.work()
    assert place.summaries("s") == {}
    (task,) = place.tasks(kinds.SUMMARY)
    assert (task.state, task.outcome) == ("done", {"wanted": 1, "stored": 0})


def test_the_default_reasoner_summarises(start: Start) -> None:
    place = start(REASONER="extractive")
    facts = [
        "I moved to Lisbon in March",
        "I teach chemistry at a school",
        "I play the cello",
        "I am allergic to nuts",
    ]
    said = place.say(
        "s", *[("alice", f"{facts[n % 4]}, as I said in week {n}.") for n in range(20)]
    )
    place.work()
    short = place.summaries("s")["short"]
    assert short.message_uid == said[19].uid
    assert "Lisbon" in short.content
    assert short.tokens <= 1_000


def test_a_failed_summary_is_retried_and_the_previous_one_stays(place: Place) -> None:
    talk(place, 1, 20)
    place.work()
    before = place.summaries("s")

    def fail(request: SummarizeRequest) -> None:
        raise RuntimeError("no words")

    place.reasoner.act_on_summary = fail
    talk(place, 21, 40)
    place.work()
    assert place.summaries("s") == before
    assert place.tasks(kinds.SUMMARY)[-1].attempts == 1
    place.reasoner.act_on_summary = None
    place.clock.advance(minutes=1)
    place.work()
    assert place.summaries("s")["short"].content == "short of 20, m21 to m40"


@pytest.mark.slow
def test_only_the_end_of_a_long_backlog_is_summarised(place: Place) -> None:
    for start in range(1, 1_001, 100):
        talk(place, start, start + 99)
    place.work()
    (short,) = [request for request in place.reasoner.summaries if request.kind == "short"]
    assert (len(short.messages), short.messages[-1].content) == (500, "m1000")
