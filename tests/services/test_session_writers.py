"""Requests of a process that store messages in the same session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from memservice.domain.records import Message
from memservice.services import messages
from memservice.services.messages import Draft
from services.conftest import OpenServices
from support.processes.processes import eventually
from support.services.services import ME, WORKSPACE, Services

SECONDS = 30.0


class WaitingWrites:
    """Writes that do not begin before `may_begin` is set."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rt = services.rt
        self.arrived = 0
        self.may_begin = threading.Event()
        self._lock = threading.Lock()
        self._write: Callable[[Any], Any] = self.rt.storage.write
        monkeypatch.setattr(self.rt.storage, "write", self._write_when_allowed)

    def _write_when_allowed(self, store: Callable[..., Any]) -> Any:
        with self._lock:
            self.arrived += 1
        assert self.may_begin.wait(SECONDS)
        return self._write(store)

    @contextmanager
    def requests(self, number: int, session: str) -> Iterator[None]:
        """So many requests for a session, until all have ended."""
        create = partial(messages.create, self.rt, ME, WORKSPACE, session, [Draft("hi", "ann")])
        threads = [threading.Thread(target=create) for _ in range(number)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.may_begin.set()
            for thread in threads:
                thread.join(SECONDS)


@pytest.fixture
def writes(open_services: OpenServices, monkeypatch: pytest.MonkeyPatch) -> WaitingWrites:
    services = open_services(DB_POOL_TIMEOUT="30")
    messages.create(services.rt, ME, WORKSPACE, "s", [Draft("hello", "ann")])
    return WaitingWrites(services, monkeypatch)


def test_two_have_a_transaction_at_a_time_and_other_sessions_do_not_wait(
    writes: WaitingWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "QUEUE_SECONDS", SECONDS)
    queues = writes.rt.session_writers._queues
    with writes.requests(5, "s"):
        eventually(lambda: writes.arrived == 2)
        eventually(lambda: len(queues[WORKSPACE, "s"].waiting) == 3)
        with writes.requests(1, "another"):
            eventually(lambda: writes.arrived == 3)
    assert queues == {}
    with writes.rt.storage.read() as tx:
        stored = [message.seq for message in tx.rows.page(Message) if message.session == "s"]
    assert stored == [1, 2, 3, 4, 5, 6]


def test_after_some_time_all_have_one(
    writes: WaitingWrites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "QUEUE_SECONDS", 0.05)
    with writes.requests(5, "s"):
        eventually(lambda: writes.arrived == 5)
    assert writes.rt.session_writers._queues == {}
    with writes.rt.storage.read() as tx:
        assert tx.rows.count(Message) == 6
