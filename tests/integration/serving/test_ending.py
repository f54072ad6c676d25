"""The end of the processes: they finish current requests, end together, and are never left
behind."""

from __future__ import annotations

import resource
import signal
import sqlite3
import threading
import urllib.error
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.processes.gate import STORE, Gates
from support.processes.processes import Service, eventually, running, send

pytestmark = pytest.mark.e2e

Serve = Callable[..., Service]


def start(job: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Do it in a thread; what came of it, an error included, is in the list afterwards."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(job())
        except Exception as error:  # the test looks at it
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.heavy)]
)
def test_the_current_request_is_answered_and_no_other_accepted(
    serve: Serve, gates: Gates, number: signal.Signals
) -> None:
    service = serve("--port", "0")
    gates.close(STORE)
    thread, outcome = start(lambda: service.say("s", ("alice", "I speak slowly.")))
    eventually(lambda: gates.waiting(STORE) is not None, what="the request is in hand")
    service.server.process.send_signal(number)
    (server,) = service.roles()["server"]
    eventually(lambda: not service.roles()["worker"], what="the worker has ended")
    with pytest.raises(OSError):
        service.say("s", ("alice", "I come too late."), timeout=3)
    assert running(server)
    gates.open(STORE)
    thread.join(20)
    assert [message["content"] for message in outcome[0]] == ["I speak slowly."]
    assert service.server.stop() == 0
    assert service.rows("SELECT content FROM messages") == [("I speak slowly.",)]
    assert "Traceback" not in service.server.log


def test_the_children_end_when_the_supervisor_is_killed(serve: Serve) -> None:
    service = serve("--port", "0")
    roles = service.roles()
    assert [len(roles[role]) for role in ("supervisor", "master", "server", "worker")] == [
        1,
        1,
        1,
        1,
    ]
    children = [pid for role in ("master", "server", "worker") for pid in roles[role]]
    send(service.server.process.pid, signal.SIGKILL)
    eventually(lambda: not any(running(pid) for pid in children), what="they end")


def test_a_worker_that_ends_is_restarted_after_growing_pauses(serve: Serve) -> None:
    service = serve("--port", "0")
    pauses: list[float] = []
    for _ in range(2):
        eventually(lambda: len(service.roles()["worker"]) == 1, what="there is a worker")
        service.remember()
        (worker,) = service.roles()["worker"]
        send(worker, signal.SIGKILL)
        pauses.append(
            eventually(
                lambda ended=worker: service.roles()["worker"] not in ([], [ended]),  # type: ignore[misc]
                what="there is another",
            )
        )
    service.remember()
    assert 0.5 < pauses[0] < pauses[1] < 15
    service.say("s", ("alice", "I keep bees behind the house."))
    eventually(lambda: len(service.texts()) == 1, what="it works")
    assert service.server.stop() == 0


def test_a_server_process_is_replaced_but_the_end_of_the_master_ends_all(
    serve: Serve,
) -> None:
    service = serve("--port", "0")
    (server,) = service.roles()["server"]
    send(server, signal.SIGKILL)
    eventually(lambda: service.roles()["server"] not in ([], [server]), what="there is another")
    service.remember()
    service.server.wait_until_healthy()
    assert service.say("s", ("alice", "I keep bees."))[0]["content"] == "I keep bees."
    (master,) = service.roles()["master"]
    (worker,) = service.roles()["worker"]
    send(master, signal.SIGKILL)
    assert service.server.process.wait(20) == 1
    assert not running(worker)
    eventually(lambda: "the server ended with status" in service.server.log)


def test_a_worker_without_server_ends_on_a_signal(serve: Serve) -> None:
    service = serve("--port", "0", "--no-worker", DERIVER_POLLING_STARTUP_JITTER_SECONDS="0")
    assert service.roles()["worker"] == []
    worker = service.add_worker()
    service.say("s", ("alice", "I keep bees behind the house."))
    eventually(lambda: len(service.texts()) == 1, what="it works")
    worker.terminate()
    assert worker.wait(30) == 0


def test_a_full_disk_is_an_error_to_the_caller_and_nothing_half_stored(serve: Serve) -> None:
    service = serve("--port", "0", "--no-worker")
    service.say("s", ("alice", "This fits."))
    (server,) = service.roles()["server"]
    _, most = resource.prlimit(server, resource.RLIMIT_FSIZE)
    # From now on no file of this process grows beyond what it has.
    resource.prlimit(server, resource.RLIMIT_FSIZE, (1024, most))
    with pytest.raises(urllib.error.HTTPError) as refused:
        service.say(
            "s", *[("alice", f"{number} " + "much to say " * 1_000) for number in range(20)]
        )
    with closing(refused.value) as answer:
        assert (answer.code, answer.headers["Retry-After"]) == (503, "1")
        assert b"detail" in answer.read()
    assert service.post("/sessions/s/messages/list", {})["total"] == 1, "reading goes on"
    resource.prlimit(server, resource.RLIMIT_FSIZE, (most, most))
    service.say("s", ("alice", "This fits again."))
    assert service.rows("SELECT seq, content FROM messages ORDER BY key") == [
        (1, "This fits."),
        (2, "This fits again."),
    ]
    assert service.rows("PRAGMA integrity_check") == [("ok",)]


def test_a_locked_database_is_an_error_to_the_caller(serve: Serve) -> None:
    service = serve("--port", "0", "--no-worker", DB_POOL_TIMEOUT="0.5")
    service.say("s", ("alice", "This is stored."))
    with closing(sqlite3.connect(service.database, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(urllib.error.HTTPError) as refused:
            service.say("s", ("alice", "This is not."))
        with closing(refused.value) as answer:
            assert (answer.code, answer.headers["Retry-After"]) == (503, "1")
        assert service.post("/sessions/s/messages/list", {})["total"] == 1
        holder.execute("ROLLBACK")
    service.say("s", ("alice", "This is again."))
    assert [
        content for (content,) in service.rows("SELECT content FROM messages ORDER BY seq")
    ] == ["This is stored.", "This is again."]


def test_a_locked_database_only_delays_the_worker(serve: Serve, tmp_path: Path) -> None:
    service = serve("--port", "0", DB_POOL_TIMEOUT="0.3")
    with closing(sqlite3.connect(service.database, isolation_level=None)) as holder:
        service.say("s", ("alice", "I keep bees behind the house."))
        holder.execute("PRAGMA busy_timeout=5000")
        holder.execute("BEGIN IMMEDIATE")
        eventually(
            lambda: "cannot be reached" in service.server.log or len(service.texts()) == 1,
            what="it notices",
        )
        holder.execute("ROLLBACK")
    eventually(
        lambda: service.texts() == [("alice", "I keep bees behind the house.", 1)],
        what="it works again",
    )
    assert service.rows("SELECT attempts FROM tasks WHERE kind = 'representation'") == [(0,)]
    assert service.server.stop() == 0
