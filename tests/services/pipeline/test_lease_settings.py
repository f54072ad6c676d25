"""Leases, and what the settings that concern them do: each does what its name says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from memservice.runtime import Runtime, utc_now
from memservice.spi.capabilities import Capability
from memservice.worker import retention, runner
from memservice.worker.housekeeping import Housekeeping, units_at_once
from memservice.worker.polling import Worker
from support.pipeline.fakes import Scripted
from support.pipeline.place import Place

Start = Callable[..., Place]
PATIENCE = 30.0


def claim(place: Place, unit: str, minutes: float) -> None:
    """By a process of another machine, whose state cannot be checked here."""
    place.rt.storage.write(
        lambda tx: tx.tasks.claim(unit, "elsewhere|1|1|x", place.clock(), minutes * 60)
    )


def test_a_claim_without_heartbeat_is_free_after_stale_session_timeout_minutes(
    start: Start,
) -> None:
    place = start(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="7")
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    taken: list[float] = []

    def note(request: object) -> None:
        with place.rt.storage.read() as tx:
            taken.extend(
                (lease.expires_at - place.clock()).total_seconds() for lease in tx.tasks.leases()
            )
        raise SystemExit  # the process ends here

    place.reasoner.act = note
    with pytest.raises(SystemExit):
        place.run(unit)
    assert taken == [7 * 60]
    place.reasoner.act = None
    place.clock.advance(minutes=6.9)
    assert place.ready() == []
    assert not place.run(unit).claimed
    place.clock.advance(minutes=0.2)
    assert place.run(unit).done == 1
    assert [c.times_derived for c in place.conclusions("alice")] == [1]


@pytest.mark.parametrize(("interval", "looks"), [("60", [1, 0, 0, 1]), ("0.0", [1, 1, 1, 1])])
def test_stale_work_unit_cleanup_interval_seconds(
    start: Start, monkeypatch: pytest.MonkeyPatch, interval: str, looks: list[int]
) -> None:
    place = start(DERIVER_STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS=interval)
    now = [1000.0]
    monkeypatch.setattr("memservice.worker.housekeeping.time.monotonic", lambda: now[0])
    freed: list[int] = []

    def free(rt: Runtime) -> int:
        freed.append(1)
        return 0

    monkeypatch.setattr(retention, "free_abandoned", free)
    tends = Housekeeping(place.rt)
    found = []
    for seconds in (0, 1, 58, 2):
        now[0] += seconds
        before = len(freed)
        tends.run_due()
        found.append(len(freed) - before)
    assert found == looks


def test_the_bare_name_of_the_cleanup_interval_is_accepted(start: Start) -> None:
    place = start(STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS="0.0")
    assert place.rt.settings.deriver.stale_work_unit_cleanup_interval_seconds == 0.0


@pytest.mark.parametrize("seconds", ["30", "0.0"])
def test_deriver_polling_startup_jitter_seconds(
    start: Start, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    place = start(
        DERIVER_POLLING_STARTUP_JITTER_SECONDS=seconds, DERIVER_POLLING_JITTER_RATIO="0.0"
    )
    longest = [0.0]

    def draw(low: float, high: float) -> float:
        longest[0] = max(longest[0], high)
        return 0.0

    monkeypatch.setattr("memservice.worker.polling.random.uniform", draw)
    stop = threading.Event()
    place.reasoner.act = lambda request: stop.set()
    place.say("s", ("alice", "I like tea."))
    Worker(place.rt, jitter=True).run(stop)
    assert longest == [float(seconds)]
    assert place.texts("alice") == ["I like tea."]


@pytest.mark.parametrize(
    ("ratio", "low", "high"), [("0.5", 0.5, 1.5), ("0.0", 1.0, 1.0), ("1", 0.0, 2.0)]
)
def test_deriver_polling_jitter_ratio(start: Start, ratio: str, low: float, high: float) -> None:
    place = start(DERIVER_POLLING_JITTER_RATIO=ratio, DERIVER_POLLING_SLEEP_INTERVAL_SECONDS="1")
    pauses = [Worker(place.rt, jitter=True)._pause(1) for _ in range(50)]
    assert all(low <= pause <= high for pause in pauses)
    assert (len(set(pauses)) > 1) == (low < high)
    assert Worker(place.rt)._pause(1) == 1.0, "the worker beside a server has no jitter"


@pytest.mark.parametrize(
    ("capabilities", "settings", "units"),
    [
        ((), {}, 1),
        ((Capability.REMOTE,), {}, 4),
        ((Capability.REMOTE,), {"WORKER_REMOTE_UNITS": "2"}, 2),
        ((), {"DERIVER_WORKERS": "3"}, 3),
        ((Capability.REMOTE,), {"DERIVER_WORKERS": "9"}, 9),
    ],
)
def test_units_in_flight(
    start: Start, capabilities: tuple[Capability, ...], settings: dict[str, str], units: int
) -> None:
    place = start(reasoner=Scripted(*capabilities), **settings)
    assert units_at_once(place.rt.settings, place.rt.plugins) == units


class Slow:
    """A call that takes several times as long as a lease, while another process tries to claim the
    unit."""

    def __init__(self, place: Place, unit: str) -> None:
        self.place = place
        self.unit = unit
        self.taken_over = False

    def __call__(self, request: object) -> None:
        self.place.reasoner.act = None
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            self.taken_over |= self.place.run(self.unit).claimed
            time.sleep(0.05)


@pytest.mark.parametrize("beats", [True, False])
def test_a_heartbeat_keeps_the_lease_during_a_slow_call(
    start: Start, monkeypatch: pytest.MonkeyPatch, beats: bool
) -> None:
    place = start(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="0.01")
    place.rt.clock = utc_now
    if not beats:
        monkeypatch.setattr(runner.Heartbeat, "_beat", lambda self: None)
    place.say("s", ("alice", "I like tea."))
    slow = place.reasoner.act = Slow(place, place.tasks()[0].unit)
    report = place.run(slow.unit)
    assert (slow.taken_over, report.done) == ((False, 1) if beats else (True, 0)), (
        "without a heartbeat the lease of 0.6 s runs out"
    )
    assert [c.times_derived for c in place.conclusions("alice")] == [1]


def test_a_dream_timer_survives_a_restart(start: Start) -> None:
    place = start(DREAM_DOCUMENT_THRESHOLD="1", DREAM_IDLE_TIMEOUT_MINUTES="60")
    place.say("s", ("alice", "I like tea."))
    place.work()
    (timer,) = place.tasks("dream_timer", state="pending")
    place.clock.advance(minutes=59)
    assert place.work() == []
    place.clock.advance(minutes=2)
    # A worker that was started just now knows of it from the store alone.
    assert place.ready() == [timer.unit]
    place.work()
    assert [task.state for task in place.tasks("dream")] == ["done"]
