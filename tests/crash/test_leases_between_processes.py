"""A process that is suspended past its lease, killed, or stopped while it works."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from support.processes.gate import DERIVE, Gates
from support.processes.processes import Service, eventually, running, send, stand_still

pytestmark = pytest.mark.crash

Serve = Callable[..., Service]

FACTS = ("I keep bees behind the house.", "I repaired the old boat in May.")
HELD = [("alice", content, 1) for content in FACTS]
SOON: dict[str, Any] = {
    "DERIVER_POLLING_STARTUP_JITTER_SECONDS": "0",
    "DERIVER_POLLING_SLEEP_MAX_INTERVAL_SECONDS": "1",
}


def say(service: Service) -> None:
    service.say("s", *[("alice", fact) for fact in FACTS])


def test_a_suspended_worker_that_lost_its_lease_stores_nothing(serve: Serve, gates: Gates) -> None:
    short = {"DERIVER_STALE_SESSION_TIMEOUT_MINUTES": "0.02", **SOON}
    service = serve("--no-worker", REASONER="gated", **short)
    gates.close(DERIVE)
    asleep = service.add_worker()
    say(service)
    eventually(lambda: gates.waiting(DERIVE) == asleep.pid, what="the first worker works")
    stand_still(asleep.pid, service.database)
    first = service.rows("SELECT number, owner FROM leases WHERE unit LIKE 'representation:%'")
    gates.open(DERIVE)
    other = service.add_worker()
    service.drained()
    assert service.texts() == HELD
    send(asleep.pid, signal.SIGCONT)
    log = service.folder / "worker-0.log"
    eventually(
        lambda: "lost the lease" in log.read_text(encoding="utf-8"), what="the first worker notices"
    )
    service.say("t", ("alice", "I sing on Sundays in a choir."))
    service.drained()
    assert service.texts() == sorted([*HELD, ("alice", "I sing on Sundays in a choir.", 1)])
    assert len(first) == 1
    for worker in (asleep, other):
        send(worker.pid, signal.SIGTERM)
        assert worker.wait(20) == 0


def test_a_worker_killed_during_work_is_replaced_and_its_work_done_once(
    serve: Serve, gates: Gates
) -> None:
    service = serve(REASONER="gated")
    gates.close(DERIVE)
    say(service)
    eventually(lambda: gates.waiting(DERIVE) is not None, what="the worker works")
    (before,) = service.roles()["worker"]
    send(before, signal.SIGKILL)
    gates.open(DERIVE)
    # Its lease would last five minutes: the next worker sees that its holder has ended.
    eventually(lambda: service.texts() == HELD, what="another worker does it")
    (after,) = service.roles()["worker"]
    assert after != before
    assert f"the worker ended with status {-signal.SIGKILL}" in service.server.log
    assert service.rows("SELECT attempts FROM tasks WHERE kind = 'representation'") == [(0,), (0,)]


def test_sigterm_lets_the_current_work_finish(serve: Serve, gates: Gates) -> None:
    service = serve(REASONER="gated")
    gates.close(DERIVE)
    say(service)
    eventually(lambda: gates.waiting(DERIVE) is not None, what="the worker works")
    (worker,) = service.roles()["worker"]
    service.server.process.terminate()
    eventually(lambda: not service.roles()["master"], what="the server ends first")
    assert running(worker), "it still has something in hand"
    gates.open(DERIVE)
    assert service.server.stop() == 0
    assert not running(worker)
    assert service.texts() == HELD
    assert service.rows("SELECT * FROM leases") == []
    assert "Traceback" not in service.server.log


@pytest.mark.heavy
def test_work_beyond_the_shutdown_timeout_is_repeated_after_the_next_start(
    serve: Serve, gates: Gates
) -> None:
    service = serve(REASONER="gated", GRACEFUL_TIMEOUT_SECONDS="0")
    gates.close(DERIVE)
    say(service)
    eventually(lambda: gates.waiting(DERIVE) is not None, what="the worker works")
    assert service.server.stop() == 0
    assert "taken up again at the next start" in service.server.log
    assert service.texts() == []
    gates.open(DERIVE)
    service.restart()
    eventually(lambda: service.texts() == HELD, what="the work is done")
