"""Events about deriving and summaries, with real figures."""

from __future__ import annotations

from datetime import datetime

from memservice.domain import tokens
from memservice.services.sessions import MemberConfig
from memservice.services.tasks import batching
from memservice.telemetry.events import Event, RepresentationCompleted, SummaryCreated
from services.pipeline.conftest import OpenPipeline
from support.pipeline.pipeline import Pipeline
from support.reasoning.model import SCRIPTED, ScriptedModel

MODEL = {key: value for key, value in SCRIPTED.items() if key.startswith(("DERIVER", "SUMMARY"))}


def listening(
    open_pipeline: OpenPipeline, *replies: object, **settings: str
) -> tuple[Pipeline, ScriptedModel, list[Event]]:
    model = ScriptedModel(*replies)  # type: ignore[arg-type]
    pipeline = open_pipeline(model, REASONER="auto", **MODEL, **settings)
    events: list[Event] = []

    def hear(event: Event, at: datetime) -> None:
        events.append(event)

    pipeline.rt.events.on_event(hear)
    return pipeline, model, events


def test_a_batch_emits_an_event(open_pipeline: OpenPipeline) -> None:
    statements = [
        {"content": "Alice lives in Oslo.", "messages": [1]},
        {"content": "alice lives in Oslo. ", "messages": [1]},
        {"content": "Alice keeps bees.", "messages": [2]},
        {"content": "Alice hates boats.", "messages": [9]},
    ]
    pipeline, model, events = listening(
        open_pipeline, {"statements": statements}, DERIVER_FLUSH_ENABLED="true"
    )
    pipeline.join(
        "s", alice=MemberConfig(), bob=MemberConfig(observe_me=False, observe_others=True)
    )
    messages = pipeline.say(
        "s",
        ("bob", "Where do you live?"),
        ("alice", "In Oslo."),
        ("bob", "Alone?"),
        ("alice", "No, I keep bees."),
    )
    pipeline.work()
    (event,) = [event for event in events if isinstance(event, RepresentationCompleted)]
    own, others = [messages[1], messages[3]], [messages[0], messages[2]]
    shown = {
        "workspace_name": "w",
        "session_name": "s",
        "observed": "alice",
        "queue_items_processed": 2,
        "earliest_message_id": messages[1].uid,
        "latest_message_id": messages[3].uid,
        "message_count": 2,
        "explicit_conclusion_count": 4,
        "input_tokens": sum(message.tokens for message in own),
        "total_input_tokens": 100,
        "output_tokens": 10,
        "queued_message_count": 2,
        "prompt_message_count": 4,
        "prompt_message_tokens": sum(message.tokens for message in messages),
        "extra_context_message_count": 2,
        "extra_context_tokens": sum(message.tokens for message in others),
        "exact_dup_in_batch_count": 0,
        "exact_dup_existing_count": 0,
        "batch_max_tokens": 1024,
        "max_input_tokens": 25_000,
        "was_flush_enabled": True,
        "hit_batch_token_cap": False,
        "hit_input_token_cap": False,
        "observer_count": 2,
        "failed_observer_count": 0,
    }
    assert {name: value for name, value in event.data().items() if name in shown} == shown
    assert event.prompt_scaffold_tokens > tokens.count(model.last.turns[0].content)
    assert 0 <= event.context_preparation_ms <= event.total_duration_ms
    assert 0 < event.llm_call_ms <= event.total_duration_ms


def test_duplicates_are_counted(open_pipeline: OpenPipeline) -> None:
    answer = {"statements": [{"content": "Alice lives in Oslo.", "messages": [1]}]}
    pipeline, _, others = listening(
        open_pipeline, answer, answer, DERIVER_FLUSH_ENABLED="true", PEER_CARD_REFRESH="false"
    )
    for _ in range(2):
        pipeline.say("s", ("alice", "I live in Oslo."))
        pipeline.work()
    events = [event for event in others if isinstance(event, RepresentationCompleted)]
    assert [
        (event.explicit_conclusion_count, event.exact_dup_existing_count) for event in events
    ] == [(1, 0), (0, 1)]


def test_a_failed_batch_emits_no_event(open_pipeline: OpenPipeline) -> None:
    pipeline, _, events = listening(open_pipeline, ValueError("no"), DERIVER_FLUSH_ENABLED="true")
    pipeline.say("s", ("alice", "I live in Oslo."))
    pipeline.work()
    assert [event for event in events if isinstance(event, RepresentationCompleted)] == []


def test_a_summary_emits_an_event(open_pipeline: OpenPipeline) -> None:
    pipeline, model, events = listening(
        open_pipeline, "They spoke of Oslo.", DERIVER_ENABLED="false"
    )
    messages = pipeline.say("s", *[("alice", f"Oslo has {number} parks.") for number in range(20)])
    pipeline.clock.advance(seconds=batching.SUMMARY_SECONDS)
    pipeline.work()
    (event,) = [event for event in events if isinstance(event, SummaryCreated)]
    assert (event.workspace_name, event.session_name, event.summary_type) == ("w", "s", "short")
    assert (event.message_id, event.message_count, event.message_seq_in_session) == (
        messages[-1].uid,
        20,
        20,
    )
    assert (event.input_tokens, event.output_tokens, event.previous_summary_tokens) == (100, 10, 0)
    assert event.message_tokens == sum(message.tokens for message in messages)
    assert (
        0
        < event.prompt_scaffold_tokens
        < sum(tokens.count(turn.content) for turn in model.last.turns)
    )


def test_a_blank_summary_is_neither_stored_nor_reported(open_pipeline: OpenPipeline) -> None:
    pipeline, _, events = listening(open_pipeline, " \n", DERIVER_ENABLED="false")
    pipeline.say("s", *[("alice", f"Oslo has {number} parks.") for number in range(20)])
    pipeline.work()
    assert pipeline.summaries("s") == {}
    assert [event for event in events if isinstance(event, SummaryCreated)] == []
