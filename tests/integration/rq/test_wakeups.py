"""Wake-ups after the commit: the units that are woken, and that requests never wait for it."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from redis import ConnectionError as NoConnection

from memservice.compose import open_runtime
from memservice.runtime import Runtime
from memservice.services import messages
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.services.tasks import outbox
from memservice.settings import load_settings
from memservice.spi.storage import Transaction
from memservice.worker import wakeups
from memservice.worker.rq_queues import QUEUES, JobQueues
from memservice.worker.wakeups import Wakeups
from support.redis_server import RedisServer
from support.stores.stores import sqlite_store_at

PATIENCE = 30.0


def opened(folder: Path, **settings: str) -> Runtime:
    loaded = load_settings(
        environ={"DB_CONNECTION_URI": sqlite_store_at(folder / "w.db"), **settings}, cwd=folder
    )
    rt = open_runtime(loaded, "api")
    rt.storage.migrate()
    return rt


def say(rt: Runtime, session: str = "s", text: str = "I like tea.") -> None:
    messages.create(rt, Principal(admin=True), "w", session, [Draft(text, "alice")])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Recorded:
    """Stands in for Redis."""

    def __init__(self) -> None:
        self.units: list[str] = []
        self.away = False
        self.tries = 0
        self.looked: Callable[[], None] = lambda: None

    def wake(self, units: Sequence[str]) -> int:
        self.tries += 1
        self.looked()
        if self.away:
            raise NoConnection("nobody there")
        self.units += units
        return len(units)


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def rt(tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setattr(Wakeups, "to_queues", lambda settings: Wakeups(lambda: recorded))
    return opened(tmp_path, REDIS_URL="redis://127.0.0.1:1")


def test_a_write_wakes_its_units_after_the_commit(rt: Runtime, recorded: Recorded) -> None:
    counts: list[int] = []

    def look() -> None:
        with rt.storage.read() as tx:
            counts.append(len(tx.tasks.ready(rt.clock(), 10)))

    recorded.looked = look
    say(rt)
    rt.close()
    assert recorded.units == ["representation:1:1:1"]
    assert counts == [1], "the task is committed when Redis hears of it"


def test_a_rolled_back_write_wakes_no_unit(rt: Runtime, recorded: Recorded) -> None:
    say(rt)

    def fails(tx: Transaction) -> None:
        workspace = tx.workspaces.by_slug("w")
        assert workspace is not None
        tx.tasks.add([outbox.erase_workspace(rt, workspace)])
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        rt.storage.write(fails)
    rt.close()
    assert recorded.units == ["representation:1:1:1"]


def test_a_retried_task_wakes_its_unit(rt: Runtime, recorded: Recorded) -> None:
    say(rt)
    with rt.storage.read() as tx:
        (task,) = tx.tasks.pending("representation:1:1:1")
    rt.storage.write(lambda tx: tx.tasks.fail(task.key, "no", rt.clock(), None))
    until(lambda: len(recorded.units) == 1)
    rt.storage.write(lambda tx: tx.tasks.retry([task.key]))
    rt.close()
    assert recorded.units == ["representation:1:1:1"] * 2


def test_an_outage_and_its_end_are_logged_once(
    rt: Runtime,
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(wakeups, "PAUSE_SECONDS", 0.02)
    recorded.away = True
    with caplog.at_level(logging.INFO, "memservice.wakeups"):
        for number in range(5):
            say(rt, f"s{number}")
            until(lambda: recorded.tries > 0)
            time.sleep(0.05)
        recorded.away = False
        say(rt, "t")
        until(lambda: bool(recorded.units))
    rt.close()
    assert recorded.tries >= 3
    records = [record for record in caplog.records if record.name == "memservice.wakeups"]
    assert [record.levelname for record in records] == ["ERROR", "WARNING"]
    assert "cannot be reached" in records[0].getMessage()
    assert "is reachable again" in records[1].getMessage()


@pytest.mark.parametrize("state", ["refuses", "hangs"])
def test_an_unreachable_redis_neither_fails_nor_slows_a_write(tmp_path: Path, state: str) -> None:
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        if state == "hangs":
            silent.listen()  # connections are taken, and nothing is ever answered
        rt = opened(tmp_path, REDIS_URL=f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        say(rt)  # the first write of a workspace does more
        took = []
        for number in range(20):
            began = time.monotonic()
            say(rt, f"s{number}")
            took.append(time.monotonic() - began)
        began = time.monotonic()
        rt.close()
        assert time.monotonic() - began < wakeups.LAST_SECONDS + 1
    # A write that waited for Redis would take a second each, that is its time-out.
    assert sorted(took)[10] < 0.5


def test_the_number_of_queued_units_is_limited(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "MAX_WAITING", 10)
    gate = threading.Event()

    def wait() -> None:
        gate.wait(PATIENCE)

    recorded.looked = wait
    waking = Wakeups(lambda: recorded)
    waking.wake(["first"])
    until(lambda: recorded.tries == 1)
    for number in range(50):
        waking.wake([f"u{number}"])
    gate.set()
    waking.close()
    assert recorded.units == ["first", *(f"u{number}" for number in range(10))]


def test_without_a_url_no_worker_is_woken(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wakeups, "to_queues", lambda settings: Wakeups(lambda: recorded))
    rt = opened(tmp_path)
    say(rt)
    rt.close()
    assert recorded.tries == 0


def test_a_real_redis_holds_a_job_soon_after_the_write(
    tmp_path: Path, redis_url: str, namespace: str, queues: JobQueues
) -> None:
    rt = opened(tmp_path, REDIS_URL=redis_url, NAMESPACE=namespace)
    say(rt)
    until(lambda: [queue.count for queue in queues.named(QUEUES)] == [1, 0, 0, 0, 0])
    rt.close()


def test_the_application_wakes_workers(
    tmp_path: Path, redis_url: str, namespace: str, queues: JobQueues
) -> None:
    from memservice.app import create_app

    app = create_app(
        load_settings(
            environ={
                "REDIS_URL": redis_url,
                "NAMESPACE": namespace,
                "DB_CONNECTION_URI": "memory://",
            },
            cwd=tmp_path,
        )
    )
    body = {"messages": [{"peer_id": "alice", "content": "I like tea."}]}
    assert (
        app.test_client().post("/v3/workspaces/w/sessions/s/messages", json=body).status_code == 201
    )
    until(lambda: queues.named(["ingest"])[0].count == 1)
    app.extensions["memservice"].close()


def test_redis_gets_wake_ups_again_after_an_outage_without_a_restart(
    tmp_path: Path, own_redis: RedisServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    rt = opened(tmp_path, REDIS_URL=own_redis.url, NAMESPACE=namespace)
    say(rt, "s")
    until(lambda: "Redis cannot be reached" in caplog.text)
    own_redis.start()
    queues = JobQueues.of(rt.settings)

    def is_queued() -> bool:
        say(rt, "t")
        return queues.named(["ingest"])[0].count == 1

    until(is_queued)
    rt.close()
    queues.connection.close()
