"""Webhooks, delivered by real workers of which some are killed."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from support.processes.processes import Service, eventually, send
from support.receiver import LOOPBACK, Handler, Receiver, hang

pytestmark = pytest.mark.crash

Serve = Callable[..., Service]

SETTINGS: dict[str, Any] = {
    "WEBHOOK_ALLOW_NETWORKS": LOOPBACK,
    "DERIVER_POLLING_STARTUP_JITTER_SECONDS": "0",
    "DERIVER_POLLING_SLEEP_MAX_INTERVAL_SECONDS": "1",
}


def test_deliveries_of_a_killed_worker_are_made_by_the_next(
    serve: Serve, receiver: Receiver
) -> None:
    service = serve(**SETTINGS)
    service.post("/sessions", {"id": "s"})
    hook = service.post("/webhooks", {"url": receiver.url()})
    receiver.behave = hang
    service.get("/webhooks/test")
    eventually(lambda: len(receiver.requests) == 1, what="the worker delivers")
    (worker,) = service.roles()["worker"]
    receiver.behave = lambda handler: handler.answer(204)
    send(worker, signal.SIGKILL)
    # Its lease would last five minutes: the next worker sees that its holder has ended.
    eventually(lambda: len(receiver.requests) == 2, what="another worker delivers")
    service.drained()
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"], (
        "by this the endpoint knows that it is the same event"
    )
    deliveries = service.get(f"/webhooks/{hook['id']}/deliveries")["items"]
    assert [(one["attempt"], one["status"], one["error"]) for one in deliveries] == [(1, 204, None)]


def test_several_workers_deliver_each_event_once_and_in_order(
    serve: Serve, receiver: Receiver
) -> None:
    service = serve("--no-worker", **SETTINGS)
    service.post("/sessions", {"id": "s"})
    for path in ("/1", "/2"):
        service.post("/webhooks", {"url": receiver.url(path)})
    inside: Counter[str] = Counter()
    overlaps: list[str] = []
    lock = threading.Lock()

    def behave(handler: Handler) -> None:
        with lock:
            inside[handler.path] += 1
            if inside[handler.path] > 1:
                overlaps.append(handler.path)
        time.sleep(0.02)
        with lock:
            inside[handler.path] -= 1
        handler.answer(204)

    receiver.behave = behave
    workers = [service.add_worker() for _ in range(3)]
    for _ in range(12):
        service.get("/webhooks/test")
    service.drained()
    expected = [
        uid
        for (uid,) in service.rows(
            "SELECT json_extract(payload, '$.event_uid') FROM tasks WHERE kind = 'webhook' "
            "ORDER BY key"
        )
    ]
    arrived = {
        path: [one.headers["webhook-id"] for one in receiver.requests if one.path == path]
        for path in ("/1", "/2")
    }
    assert overlaps == []
    for path, ids in arrived.items():
        assert len(ids) == 12, path
        assert ids == [uid for uid in expected if uid in ids], path
    for worker in workers:
        send(worker.pid, signal.SIGTERM)
        assert worker.wait(20) == 0
