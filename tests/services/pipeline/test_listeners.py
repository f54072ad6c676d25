"""Plugins that have a word in what is stored are asked before the transaction, and heard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from memservice.domain.errors import Refused
from memservice.domain.records import Conclusion, Message
from memservice.services import conclusions, messages
from memservice.services.conclusions import ConclusionDraft
from memservice.services.paging import Paging
from memservice.services.sessions import MemberConfig
from support.pipeline.fakes import Listener
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


def test_a_hook_can_change_a_message(open_pipeline: OpenPipeline) -> None:
    listener = Listener()
    listener.on_message = lambda message: replace(
        message, content=message.content.replace("4111 1111", "[card]")
    )
    pipeline = open_pipeline(listener)
    (stored,) = pipeline.say("s", ("alice", "My number is 4111 1111, keep it."))
    assert stored.content == "My number is [card], keep it."
    pipeline.work()
    assert pipeline.texts("alice") == ["My number is [card], keep it."]
    with pipeline.rt.storage.read() as tx:
        assert [message.content for message in tx.rows.page(Message)] == [
            "My number is [card], keep it."
        ]


def test_a_message_refused_by_a_hook_rejects_the_request(
    open_pipeline: OpenPipeline,
) -> None:
    listener = Listener()

    def refuse(message: Message) -> None:
        if "secret" in message.content:
            raise Refused("no secrets here")

    listener.on_message = refuse
    pipeline = open_pipeline(listener)
    with pytest.raises(Refused, match="no secrets"):
        pipeline.say("s", ("alice", "I like tea."), ("alice", "My secret is safe."))
    assert (
        messages.page(pipeline.rt, PRINCIPAL, WORKSPACE, "s", None, Paging(1, 50, False)).total == 0
    )
    assert pipeline.tasks(None) == []


def test_a_conclusion_refused_by_a_hook_is_not_stored_and_counted(
    open_pipeline: OpenPipeline,
) -> None:
    listener = Listener()
    listener.on_conclusion = lambda conclusion: "password" not in conclusion.content
    pipeline = open_pipeline(listener)
    pipeline.say("s", ("alice", "I like tea.\nMy password is tea."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    (task,) = pipeline.tasks()
    assert (task.outcome["statements"], task.outcome["refused"], task.outcome["stored"]) == (
        2,
        1,
        1,
    )
    assert pipeline.counted("alice") == 1


def test_a_hook_may_refuse_a_conclusion_for_one_observer(open_pipeline: OpenPipeline) -> None:
    listener = Listener()
    listener.on_conclusion = lambda conclusion: conclusion.observer == conclusion.observed
    pipeline = open_pipeline(listener)
    pipeline.join("s", bob=MemberConfig(observe_others=True))
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    assert pipeline.texts("bob", "alice") == []


def test_a_hook_gets_the_new_row_and_may_use_the_store(open_pipeline: OpenPipeline) -> None:
    listener = Listener()
    pipeline = open_pipeline(listener)
    new_rows: list[Conclusion] = []

    def look(conclusion: Conclusion) -> None:
        # Inside a transaction this would be a write inside a write.
        pipeline.rt.storage.write(lambda tx: tx.facts.set("listener", conclusion.content))
        new_rows.append(conclusion)

    listener.on_conclusion = look
    (message,) = pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    (conclusion,) = new_rows
    assert (conclusion.content, conclusion.observer, conclusion.observed, conclusion.session) == (
        "I like tea.",
        "alice",
        "alice",
        "s",
    )
    assert conclusion.message_keys == [message.key]
    with pipeline.rt.storage.read() as tx:
        assert tx.facts.get("listener") == "I like tea."


def test_a_failing_hook_fails_only_its_task(open_pipeline: OpenPipeline) -> None:
    listener = Listener()

    def stumble(conclusion: Conclusion) -> None:
        if "tea" in conclusion.content:
            raise ZeroDivisionError("in a plugin")

    listener.on_conclusion = stumble
    pipeline = open_pipeline(listener, WORKER_MAX_ATTEMPTS="1")
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    pipeline.work()
    assert pipeline.texts("alice") == ["I own a boat."]
    assert [task.last_error for task in pipeline.tasks()] == [
        "ZeroDivisionError: in a plugin",
        None,
    ]


def test_a_callers_conclusion_refused_by_a_hook_rejects_the_request(
    open_pipeline: OpenPipeline,
) -> None:
    listener = Listener()
    listener.on_conclusion = lambda conclusion: "password" not in conclusion.content
    pipeline = open_pipeline(listener)
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    drafts = [
        ConclusionDraft("Alice sails", "alice", "alice"),
        ConclusionDraft("Her password is tea", "alice", "alice"),
    ]
    with pytest.raises(Refused, match="Conclusion 1 was refused"):
        conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, drafts)
    assert pipeline.texts("alice") == ["I like tea."]
    conclusions.create(pipeline.rt, PRINCIPAL, WORKSPACE, drafts[:1])
    assert sorted(pipeline.texts("alice")) == ["Alice sails", "I like tea."]
