"""A real Redis with the vectors becomes unreachable and comes back: searches answer, writes
continue, and the index is repaired automatically.

A proxy on the port of the index simulates the outage: it forwards everything, or nothing.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memservice import timed_calls
from memservice.compose import open_runtime
from memservice.pipeline.indexing import reconcile
from memservice.runtime import Runtime
from memservice.services import conclusions, peers, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.stores import redis_vectors
from support.stores.stores import sqlite_store_at

ME = Principal(admin=True)
PAIR = {"observer": "alice", "observed": "alice"}


class Wire:
    """Passes on what comes in at its port, as long as it is not cut."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._ended = threading.Event()
        self.cut = threading.Event()
        self.passed = 0
        """Bytes that were passed on."""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        other: dict[socket.socket, socket.socket] = {}
        while not self._ended.is_set():
            for ready in select.select([self._listening, *other], [], [], 0.02)[0]:
                if ready is self._listening:
                    coming, _ = self._listening.accept()
                    going = socket.create_connection(self._to)
                    other |= {coming: going, going: coming}
                elif ready in other:
                    data = b"" if self.cut.is_set() else ready.recv(65_536)
                    if data:
                        self.passed += len(data)
                        other[ready].sendall(data)
                    else:
                        self._part(other, ready)
            if self.cut.is_set():
                for each in list(other):
                    if each in other:
                        self._part(other, each)
        for each in other:
            each.close()

    def _part(self, other: dict[socket.socket, socket.socket], one: socket.socket) -> None:
        for each in (one, other[one]):
            other.pop(each, None)
            each.close()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._listening.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    parts = urlsplit(redis_vectors.url())
    opened = Wire(parts.hostname or "localhost", parts.port or 6379)
    yield opened
    opened.close()


@pytest.fixture
def runtime(wire: Wire, tmp_path: Path) -> Iterator[Runtime]:
    name = redis_vectors.namespace()
    environ = {
        "DB_CONNECTION_URI": sqlite_store_at(tmp_path / "m.db"),
        "VECTOR_STORE_TYPE": "redis",
        "VECTOR_STORE_URL": f"redis://127.0.0.1:{wire.port}/0",
        "VECTOR_STORE_NAMESPACE": name,
        "VECTOR_STORE_RECONCILIATION_INTERVAL_SECONDS": "1",
        "WORKER_RETRY_BACKOFF_SECONDS": "0.2",
    }
    opened = open_runtime(load_settings(environ=environ, cwd=tmp_path))
    opened.storage.migrate()
    workspaces.get_or_create(opened, ME, "w", None, None)
    peers.get_or_create(opened, ME, "w", "alice", None, None)
    yield opened
    wire.cut.clear()
    opened.close()
    with redis_vectors.opened() as client:
        redis_vectors.erase(client, name)


def conclude(rt: Runtime, *texts: str) -> None:
    conclusions.create(rt, ME, "w", [ConclusionDraft(text, "alice", "alice") for text in texts])


def matching(rt: Runtime, query: str) -> list[str]:
    return [each.content for each in conclusions.query(rt, ME, "w", query, 9, filters=PAIR)]


def vector_count(rt: Runtime) -> int:
    with rt.storage.read() as tx:
        (space,) = tx.spaces.of_workspace(1)
    return rt.vectors.count(None, space)


def test_vectors_are_repaired_automatically_after_an_outage(runtime: Runtime, wire: Wire) -> None:
    conclude(runtime, "Alice likes green tea.", "Alice owns a boat.")
    Worker(runtime).run_until_idle(10)
    assert vector_count(runtime) == 2

    wire.cut.set()
    conclude(runtime, "Alice keeps bees.")
    began = time.monotonic()
    matches = matching(runtime, "bees")
    assert matches[0] == "Alice keeps bees.", "from text alone"
    assert len(matches) == 3, "what the index does not return is there all the same"
    assert time.monotonic() - began < runtime.settings.vector_store.query_timeout_seconds + 1
    tea = next(each for each in conclusions.query(runtime, ME, "w", "tea", 1, filters=PAIR))
    conclusions.delete(runtime, ME, "w", tea.uid)
    assert tea.content not in matching(runtime, "tea")
    Worker(runtime).run_until_idle(10)
    with runtime.storage.read() as tx:
        waiting = tx.tasks.pending(f"{kinds.EMBED}:1:conclusion")
    assert [task.kind for task in waiting] == [kinds.EMBED, kinds.DELETE_VECTORS]
    assert waiting[0].last_error is not None
    assert waiting[0].last_error.startswith(
        "IndexUnavailable: the vector index at redis://127.0.0.1"
    )

    wire.cut.clear()
    stop = threading.Event()
    worker = threading.Thread(target=Worker(runtime).run, args=(stop,))
    worker.start()
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not _settled(runtime):
            time.sleep(0.1)
    finally:
        stop.set()
        worker.join()
    assert _settled(runtime)
    assert vector_count(runtime) == 2
    passed = wire.passed
    deadline = time.monotonic() + 2 * timed_calls.OPEN_SECONDS
    while time.monotonic() < deadline and wire.passed == passed:
        assert set(matching(runtime, "bees")) == {"Alice keeps bees.", "Alice owns a boat."}
        time.sleep(0.2)
    assert wire.passed > passed, "searches use the vectors again"


def _settled(rt: Runtime) -> bool:
    with rt.storage.read() as tx:
        return not tx.tasks.pending(f"{kinds.EMBED}:1:conclusion")


def test_an_index_that_came_back_empty_is_filled_again(runtime: Runtime) -> None:
    conclude(runtime, *(f"Alice owns boat number {number}." for number in range(30)))
    Worker(runtime).run_until_idle(10)
    assert vector_count(runtime) == 30
    with runtime.storage.read() as tx:
        (space,) = tx.spaces.of_workspace(1)
    runtime.vectors.drop(None, space)
    while reconcile.run(runtime) == 0.0:
        pass
    real = runtime.clock
    runtime.clock = lambda: (
        real() + timedelta(seconds=runtime.settings.vector_store.reconciliation_interval_seconds)
    )
    while reconcile.run(runtime) == 0.0:
        pass
    Worker(runtime).run_until_idle(10)
    assert vector_count(runtime) == 30
