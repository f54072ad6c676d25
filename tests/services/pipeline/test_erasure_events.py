"""Events of the end of an erasure: to endpoints, to plugins and to telemetry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.hookspecs import hookimpl
from memservice.services import deletion
from memservice.services.erasure import messages, peers, receipts, retention
from memservice.services.tasks import kinds
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.webhooks import OpenPipeline, opened, register
from support.receiver import Receiver


class Events:
    """What plugins receive."""

    def __init__(self) -> None:
        self.data: dict[str, list[dict[str, Any]]] = {}

    @hookimpl
    def memservice_event_emitted(self, type: str, data: dict[str, Any]) -> None:
        self.data.setdefault(type, []).append(data)


def erase_message(pipeline: Pipeline, message: r.Message) -> None:
    messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, message.session, message.uid)


def erase_peer(pipeline: Pipeline, message: r.Message) -> None:
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, message.author)


def erase_session(pipeline: Pipeline, message: r.Message) -> None:
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, message.session)


def erase_workspace(pipeline: Pipeline, message: r.Message) -> None:
    deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE, with_sessions=True)


def erase_old(pipeline: Pipeline, message: r.Message) -> None:
    def configure(tx: Any) -> None:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        days = {"retention": {"messages_days": 1}}
        tx.workspaces.save(replace(workspace, configuration=days))

    pipeline.rt.storage.write(configure)
    pipeline.clock.advance(hours=48)
    retention.erase_messages(pipeline.rt, message.session_key, pipeline.clock())


ERASURES: dict[str, Callable[[Pipeline, r.Message], None]] = {
    "message": erase_message,
    "peer": erase_peer,
    "session": erase_session,
    "workspace": erase_workspace,
    "messages": erase_old,
}
"""By the kind of the receipt."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ERASURES)
def test_the_end_of_an_erasure_is_reported(
    open_pipeline: OpenPipeline, receiver: Receiver, kind: str
) -> None:
    events = Events()
    pipeline = opened(open_pipeline, events)
    register(pipeline, receiver)
    (message,) = pipeline.say("s", ("alice", "I own a quokka."))
    pipeline.work()
    ERASURES[kind](pipeline, message)
    assert "erasure_done" not in events.data, "nothing is erased yet"
    pipeline.work()
    with pipeline.rt.storage.read() as tx:
        (erasure,) = tx.erasures.page()
        receipt = receipts.receipt(tx, erasure)
    assert (receipt.kind, receipt.state) == (kind, r.FINISHED)
    webhook = {
        "workspace_id": WORKSPACE,
        "erasure_id": receipt.uid,
        "kind": kind,
        "session_id": receipt.session,
        "target_id": receipt.target,
        "counts": dict(receipt.counts),
    }
    assert events.data["erasure_done"] == [webhook]
    delivered = [event for event in receiver.events if event["type"] == "erasure.done"]
    # The endpoints of an erased workspace are erased with it.
    assert [event["data"] for event in delivered] == ([] if kind == "workspace" else [webhook])
    (telemetry,) = events.data["erasure.completed"]
    assert telemetry == {
        "workspace_name": WORKSPACE,
        "erasure_id": receipt.uid,
        "erasure_type": kind,
        "success": True,
        **{
            f"{name}_deleted": receipt.counts.get(name, 0)
            for name in ("peers", "sessions", "messages", "conclusions")
        },
        "error_class": None,
    }
    assert telemetry["messages_deleted"] == telemetry["conclusions_deleted"] == 1
    assert "quokka" not in repr(events.data["erasure_done"]) + repr(delivered) + repr(telemetry)


@pytest.mark.slow
def test_a_failed_erasure_is_reported_to_telemetry_only(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = Events()
    pipeline = opened(open_pipeline, events)
    (message,) = pipeline.say("s", ("alice", "I own a quokka."))
    pipeline.work()
    erase_message(pipeline, message)
    monkeypatch.setattr(type(pipeline.rt.storage.text), "indexed", lambda *_: [message.key])
    for _ in range(20):
        assert "erasure.completed" not in events.data
        pipeline.work()
        pipeline.clock.advance(hours=6)
        if {task.state for task in pipeline.tasks(kinds.ERASE)} == {r.FAILED}:
            break
    (telemetry,) = events.data["erasure.completed"]
    assert (telemetry["success"], telemetry["error_class"]) == (False, "NotErased")
    assert "erasure_done" not in events.data
