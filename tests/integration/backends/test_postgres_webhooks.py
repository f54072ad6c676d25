"""Deliveries while others change what they are about: only on PostgreSQL do such transactions
really run at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memservice.compose import open_runtime
from memservice.domain.records import Delivery, Task, WebhookEndpoint
from memservice.pipeline.webhook_delivery import Webhook
from memservice.runtime import Runtime
from memservice.services import webhooks, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.paging import Paging
from memservice.services.tasks import outbox
from memservice.settings import load_settings
from memservice.spi.repositories.webhooks import Webhooks
from memservice.spi.webhooks import Outcome
from memservice.worker.runner import run
from support.processes.processes import eventually
from support.receiver import LOOPBACK, Receiver
from support.stores.postgres_server import connect
from support.stores.stores import store_of

PRINCIPAL, WORKSPACE = Principal(admin=True), "w"


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    with store_of("postgres", tmp_path) as uri:
        settings = {"DB_CONNECTION_URI": uri, "WEBHOOK_ALLOW_NETWORKS": LOOPBACK}
        opened = open_runtime(load_settings(environ={}, cwd=tmp_path, overrides=settings))
        workspaces.get_or_create(opened, PRINCIPAL, WORKSPACE, None, None)
        yield opened
        opened.close()


def ready(rt: Runtime, receiver: Receiver) -> tuple[WebhookEndpoint, str]:
    """An endpoint that an event waits for, and its unit."""
    endpoint = webhooks.register(rt, PRINCIPAL, WORKSPACE, receiver.url()).endpoint
    webhooks.send_test(rt, PRINCIPAL, WORKSPACE)
    return endpoint, outbox.webhook_unit(endpoint)


@pytest.mark.parametrize("status", [204, 500])
def test_an_attempt_that_ends_while_its_endpoint_is_deleted_leaves_no_record(
    rt: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    receiver.answers(status)
    endpoint, unit = ready(rt, receiver)
    recorded, goes_on = threading.Event(), threading.Event()
    real = Webhooks.record

    def record(self: Webhooks, delivery: Delivery) -> Delivery:
        stored = real(self, delivery)
        recorded.set()
        assert goes_on.wait(60)
        return stored

    monkeypatch.setattr(Webhooks, "record", record)
    delivering = threading.Thread(target=run, args=(rt, unit))
    deleting = threading.Thread(
        target=webhooks.delete, args=(rt, PRINCIPAL, WORKSPACE, endpoint.uid)
    )
    delivering.start()
    assert recorded.wait(60)
    deleting.start()
    with connect(rt.settings.db.connection_uri) as connection:
        connection.autocommit = True
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND "
            "wait_event_type = 'Lock'"
        )
        eventually(
            lambda: connection.execute(waiting).fetchone() is not None,
            what="the deletion waits for the record",
        )
    goes_on.set()
    delivering.join(60)
    deleting.join(60)
    with rt.storage.read() as tx:
        assert tx.rows.page(WebhookEndpoint) == []
        assert tx.rows.page(Delivery) == []


def test_a_delivery_during_a_retry_request_is_not_undone(
    rt: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking reads that it waits; before that is written, a worker has delivered it."""
    receiver.answers(500, 200)
    monkeypatch.setattr(Webhook, "retry_after", lambda *args: 3600.0)
    endpoint, unit = ready(rt, receiver)
    run(rt, unit)
    (attempt,) = webhooks.deliveries(rt, PRINCIPAL, WORKSPACE, endpoint.uid, Paging()).items
    real = webhooks._undelivered_task

    def overtaken(*args: Any) -> Task:
        undelivered = real(*args)
        assert undelivered is not None
        result: Task = undelivered

        def deliver() -> None:
            rt.storage.write(lambda tx: tx.tasks.make_due(result))
            run(rt, unit)

        other = threading.Thread(target=deliver)
        other.start()
        other.join(60)
        return result

    monkeypatch.setattr(webhooks, "_undelivered_task", overtaken)
    webhooks.redeliver(rt, PRINCIPAL, WORKSPACE, attempt.uid)
    run(rt, unit)
    assert len(receiver.requests) == 2
    with rt.storage.read() as tx:
        assert [(task.state, task.attempts) for task in tx.rows.page(Task)] == [("done", 1)]


@pytest.mark.parametrize("error", ["a\0b", "a\ud800b"], ids=["NUL", "surrogate"])
def test_an_error_text_that_no_column_accepts_is_recorded_in_part(
    rt: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    endpoint, unit = ready(rt, receiver)
    monkeypatch.setattr(
        rt.webhook_transport(endpoint.url), "deliver", lambda *args: Outcome(error=error)
    )
    assert run(rt, unit).failed == 1
    (attempt,) = webhooks.deliveries(rt, PRINCIPAL, WORKSPACE, endpoint.uid, Paging()).items
    assert attempt.error in ("ab", "a\ufffdb")
