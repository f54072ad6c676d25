"""Events for endpoints: content, time and signatures."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from memservice.domain.records import Task
from memservice.runtime import Runtime
from memservice.services import sessions, webhooks, workspaces
from memservice.services.tasks import kinds
from support.pipeline.pipeline import PRINCIPAL, Pipeline
from support.pipeline.webhooks import (
    SECRET,
    SETTINGS,
    OpenPipeline,
    emit_test,
    legacy_signature,
    opened,
    register,
    standard_signature,
)
from support.receiver import Receiver


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline) -> Pipeline:
    return opened(open_pipeline)


@pytest.mark.slow
def test_deliveries_have_the_contracts_body_and_valid_signatures(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    secret = register(pipeline, receiver).secret
    emit_test(pipeline)
    pipeline.work()
    (request,) = receiver.requests
    assert (
        request.body
        == b'{"data":{"workspace_id":"w"},"timestamp":"2024-03-01T12:00:00Z","type":"test.event"}'
    )
    headers = request.headers
    assert headers["content-type"] == "application/json"
    assert headers["x-honcho-signature"] == legacy_signature(request.body, SECRET)
    assert headers["webhook-timestamp"] == str(int(pipeline.clock().timestamp()))
    assert headers["webhook-signature"] == standard_signature(
        secret, headers["webhook-id"], headers["webhook-timestamp"], request.body
    )
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 24


def test_without_the_global_secret_only_the_standard_headers_are_sent(
    open_pipeline: OpenPipeline, receiver: Receiver
) -> None:
    pipeline = open_pipeline(
        **{name: value for name, value in SETTINGS.items() if name != "WEBHOOK_SECRET"}
    )
    pipeline.join("s", alice=sessions.MemberConfig())
    secret = register(pipeline, receiver).secret
    emit_test(pipeline)
    pipeline.work()
    headers = receiver.requests[0].headers
    assert "x-honcho-signature" not in headers
    assert headers["webhook-signature"] == standard_signature(
        secret, headers["webhook-id"], headers["webhook-timestamp"], receiver.requests[0].body
    )


def test_each_endpoint_has_its_secret_and_its_own_event_id(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    one, two = register(pipeline, receiver, "/1"), register(pipeline, receiver, "/2")
    assert one.secret != two.secret
    emit_test(pipeline)
    pipeline.work()
    by_path = {request.path: request for request in receiver.requests}
    for path, secret in (("/1", one.secret), ("/2", two.secret)):
        headers = by_path[path].headers
        assert headers["webhook-signature"] == standard_signature(
            secret, headers["webhook-id"], headers["webhook-timestamp"], by_path[path].body
        )
    assert by_path["/1"].headers["webhook-id"] != by_path["/2"].headers["webhook-id"]


def test_a_secret_is_not_part_of_the_repr_of_its_endpoint(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    hook = register(pipeline, receiver)
    assert hook.uid in repr(hook)
    assert hook.secret not in repr(hook)


def test_an_empty_unit_sends_an_event(pipeline: Pipeline, receiver: Receiver) -> None:
    register(pipeline, receiver)
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a boat."))
    pipeline.work()
    assert receiver.events == [
        {
            "type": "queue.empty",
            "timestamp": "2024-03-01T12:00:00Z",
            "data": {
                "workspace_id": "w",
                "queue_type": "representation",
                "session_id": "s",
                "observer": None,
                "observed": "alice",
            },
        }
    ]


def test_a_summary_sends_an_event(open_pipeline: OpenPipeline, receiver: Receiver) -> None:
    pipeline = opened(
        open_pipeline, SUMMARY_MESSAGES_PER_SHORT_SUMMARY="10", DERIVER_ENABLED="false"
    )
    register(pipeline, receiver)
    pipeline.say("s", *(("alice", f"Line {n}.") for n in range(10)))
    pipeline.work()
    assert [event["data"] for event in receiver.events] == [
        {
            "workspace_id": "w",
            "queue_type": "summary",
            "session_id": "s",
            "observer": None,
            "observed": None,
        }
    ]


def test_the_event_is_stored_by_the_transaction_that_releases_the_unit(
    pipeline: Pipeline, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If that transaction is lost, so is the event, and the unit is worked off again: neither
    without the other."""
    register(pipeline, receiver)
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    real = webhooks.queue_empty

    def lost(rt: Runtime, tx: Any, task: Task) -> Any:
        real(rt, tx, task)
        raise RuntimeError("the transaction is lost")

    monkeypatch.setattr(webhooks, "queue_empty", lost)
    with pytest.raises(RuntimeError):
        pipeline.run(unit)
    assert pipeline.tasks(kinds.WEBHOOK) == []
    with pipeline.rt.storage.read() as tx:
        assert [lease.unit for lease in tx.tasks.leases()] == [unit]


def test_a_unit_with_failed_or_pending_tasks_sends_no_event(
    open_pipeline: OpenPipeline, receiver: Receiver
) -> None:
    pipeline = opened(open_pipeline)
    register(pipeline, receiver)

    def fail(request: object) -> None:
        raise RuntimeError("no")

    pipeline.reasoner.act = fail
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert receiver.requests == []
    pipeline.reasoner.act = None
    pipeline.clock.advance(minutes=10)
    pipeline.work()
    assert [event["data"]["queue_type"] for event in receiver.events] == ["representation"]


def test_a_workspace_gets_its_own_events_only(pipeline: Pipeline, receiver: Receiver) -> None:
    register(pipeline, receiver)
    workspaces.get_or_create(pipeline.rt, PRINCIPAL, "other", None, None)
    webhooks.send_test(pipeline.rt, PRINCIPAL, "other")
    webhooks.send_test(pipeline.rt, PRINCIPAL, "unknown")
    pipeline.work()
    assert receiver.requests == []
