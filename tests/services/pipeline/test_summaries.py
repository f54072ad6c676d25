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
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


def talk(pipeline: Pipeline, first: int, last: int, session: str = "s") -> list[Message]:
    """Messages m<first> … m<last>, of two peers."""
    return pipeline.say(
        session, *[("alice" if n % 2 else "bob", f"m{n}") for n in range(first, last + 1)]
    )


def ranges(pipeline: Pipeline) -> list[tuple[str, str, str, str | None]]:
    """Of each summary that was asked for: kind, first and last message, what came before."""
    return [
        (r.kind, r.messages[0].content, r.messages[-1].content, r.previous)
        for r in pipeline.reasoner.summaries
    ]


@pytest.mark.slow
def test_short_and_long_summaries_are_written_at_their_intervals(pipeline: Pipeline) -> None:
    messages: list[Message] = []
    for open_pipeline in range(1, 61, 10):
        messages += talk(pipeline, open_pipeline, open_pipeline + 9)
        pipeline.work()
    assert ranges(pipeline) == [
        ("short", "m1", "m20", None),
        ("short", "m21", "m40", "short of 20, m1 to m20"),
        ("long", "m1", "m60", None),
        ("short", "m41", "m60", "short of 20, m21 to m40"),
    ]
    summaries = pipeline.summaries("s")
    assert set(summaries) == {"short", "long"}
    assert summaries["short"].content == "short of 20, m41 to m60"
    for summary in summaries.values():
        assert (summary.message_key, summary.message_uid) == (messages[59].key, messages[59].uid)
        assert summary.tokens == tokens.count(summary.content)
        assert summary.reasoner == "scripted"


def test_nineteen_messages_create_no_summary(pipeline: Pipeline) -> None:
    talk(pipeline, 1, 19)
    pipeline.work()
    assert pipeline.summaries("s") == {}
    assert pipeline.tasks(kinds.SUMMARY) == []


@pytest.mark.slow
def test_a_backlog_collapses_into_the_newest_of_each_kind(pipeline: Pipeline) -> None:
    messages = talk(pipeline, 1, 70)
    assert len(pipeline.tasks(kinds.SUMMARY)) == 3
    pipeline.work()
    assert sorted(ranges(pipeline)) == [("long", "m1", "m60", None), ("short", "m1", "m60", None)]
    assert {summary.message_uid for summary in pipeline.summaries("s").values()} == {
        messages[59].uid
    }
    assert {task.state for task in pipeline.tasks(kinds.SUMMARY)} == {"done"}
    assert pipeline.outcome("stored") == 70 + 2


@pytest.mark.slow
def test_covered_messages_are_not_summarised_again(pipeline: Pipeline) -> None:
    messages = talk(pipeline, 1, 40)
    pipeline.work()
    summary_count = len(pipeline.reasoner.summaries)
    before = pipeline.summaries("s")
    late = Task(
        uid=new_uid(),
        unit=pipeline.tasks(kinds.SUMMARY)[0].unit,
        kind=kinds.SUMMARY,
        workspace_key=messages[0].workspace_key,
        session_key=messages[0].session_key,
        message_key=messages[19].key,
        payload={"kinds": ["short"], "instructions": None},
        not_before=pipeline.clock(),
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([late]))
    pipeline.work()
    assert len(pipeline.reasoner.summaries) == summary_count
    assert pipeline.summaries("s") == before
    assert pipeline.tasks(kinds.SUMMARY)[-1].outcome == {"wanted": 0, "stored": 0}


@pytest.mark.slow
def test_intervals_and_instructions_are_the_sessions_own(pipeline: Pipeline) -> None:
    configuration = {
        "summary": {
            "messages_per_short_summary": 10,
            "messages_per_long_summary": 25,
            "custom_instructions": "In verse.",
        }
    }
    sessions.get_or_create(
        pipeline.rt, PRINCIPAL, WORKSPACE, "s", SessionFields(configuration=configuration)
    )
    talk(pipeline, 1, 10)
    talk(pipeline, 11, 25)
    pipeline.work()
    assert sorted(ranges(pipeline)) == [("long", "m1", "m25", None), ("short", "m1", "m20", None)]
    assert {request.instructions for request in pipeline.reasoner.summaries} == {"In verse."}


@pytest.mark.slow
def test_summaries_can_be_switched_off(pipeline: Pipeline) -> None:
    sessions.get_or_create(
        pipeline.rt,
        PRINCIPAL,
        WORKSPACE,
        "s",
        SessionFields(configuration={"summary": {"enabled": False}}),
    )
    talk(pipeline, 1, 60)
    talk(pipeline, 1, 20, "other")
    pipeline.work()
    assert pipeline.summaries("s") == {}
    assert set(pipeline.summaries("other")) == {"short"}


def test_a_blank_summary_is_not_stored(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(REASONER="extractive")
    pipeline.say("s", *[("alice", "👍")] * 20)
    pipeline.work()
    assert pipeline.summaries("s") == {}
    (task,) = pipeline.tasks(kinds.SUMMARY)
    assert (task.state, task.outcome) == ("done", {"wanted": 1, "stored": 0})


@pytest.mark.slow
def test_the_default_reasoner_summarises(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(REASONER="extractive")
    facts = [
        "I moved to Lisbon in March",
        "I teach chemistry at a school",
        "I play the cello",
        "I am allergic to nuts",
    ]
    messages = pipeline.say(
        "s", *[("alice", f"{facts[n % 4]}, as I said in week {n}.") for n in range(20)]
    )
    pipeline.work()
    short = pipeline.summaries("s")["short"]
    assert short.message_uid == messages[19].uid
    assert "Lisbon" in short.content
    assert short.tokens <= 1_000


@pytest.mark.slow
def test_a_failed_summary_is_retried_and_the_previous_one_stays(pipeline: Pipeline) -> None:
    talk(pipeline, 1, 20)
    pipeline.work()
    before = pipeline.summaries("s")

    def fail(request: SummarizeRequest) -> None:
        raise RuntimeError("no words")

    pipeline.reasoner.act_on_summary = fail
    talk(pipeline, 21, 40)
    pipeline.work()
    assert pipeline.summaries("s") == before
    assert pipeline.tasks(kinds.SUMMARY)[-1].attempts == 1
    pipeline.reasoner.act_on_summary = None
    pipeline.clock.advance(minutes=1)
    pipeline.work()
    assert pipeline.summaries("s")["short"].content == "short of 20, m21 to m40"


@pytest.mark.slow
def test_only_the_end_of_a_long_backlog_is_summarised(pipeline: Pipeline) -> None:
    for open_pipeline in range(1, 1_001, 100):
        talk(pipeline, open_pipeline, open_pipeline + 99)
    pipeline.work()
    (short,) = [request for request in pipeline.reasoner.summaries if request.kind == "short"]
    assert (len(short.messages), short.messages[-1].content) == (500, "m1000")
