"""Leases, and what the settings that concern them do: each does what its name says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from memservice.runtime import Runtime, utc_now
from memservice.spi.capabilities import Capability
from memservice.worker import lease_heartbeat, retention
from memservice.worker.housekeeping import Housekeeping, units_at_once
from memservice.worker.polling import Worker
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Pipeline

OpenPipeline = Callable[..., Pipeline]
PATIENCE = 30.0


def claim(pipeline: Pipeline, unit: str, minutes: float) -> None:
    """By a process of another machine, whose state cannot be checked here."""
    pipeline.rt.storage.write(
        lambda tx: tx.tasks.claim(unit, "elsewhere|1|1|x", pipeline.clock(), minutes * 60)
    )


def test_a_claim_without_heartbeat_is_free_after_stale_session_timeout_minutes(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="7")
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    taken: list[float] = []

    def note(request: object) -> None:
        with pipeline.rt.storage.read() as tx:
            taken.extend(
                (lease.expires_at - pipeline.clock()).total_seconds() for lease in tx.tasks.leases()
            )
        raise SystemExit  # the process ends here

    pipeline.reasoner.act = note
    with pytest.raises(SystemExit):
        pipeline.run(unit)
    assert taken == [7 * 60]
    pipeline.reasoner.act = None
    pipeline.clock.advance(minutes=6.9)
    assert pipeline.ready() == []
    assert not pipeline.run(unit).claimed
    pipeline.clock.advance(minutes=0.2)
    assert pipeline.run(unit).done == 1
    assert [c.times_derived for c in pipeline.conclusions("alice")] == [1]


@pytest.mark.parametrize(("interval", "looks"), [("60", [1, 0, 0, 1]), ("0.0", [1, 1, 1, 1])])
def test_stale_work_unit_cleanup_interval_seconds(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch, interval: str, looks: list[int]
) -> None:
    pipeline = open_pipeline(DERIVER_STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS=interval)
    now = [1000.0]
    monkeypatch.setattr("memservice.worker.housekeeping.time.monotonic", lambda: now[0])
    freed: list[int] = []

    def free(rt: Runtime) -> int:
        freed.append(1)
        return 0

    monkeypatch.setattr(retention, "free_abandoned", free)
    tends = Housekeeping(pipeline.rt)
    calls = []
    for seconds in (0, 1, 58, 2):
        now[0] += seconds
        before = len(freed)
        tends.run_due()
        calls.append(len(freed) - before)
    assert calls == looks


def test_the_bare_name_of_the_cleanup_interval_is_accepted(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS="0.0")
    assert pipeline.rt.settings.deriver.stale_work_unit_cleanup_interval_seconds == 0.0


@pytest.mark.parametrize("seconds", ["30", "0.0"])
def test_deriver_polling_startup_jitter_seconds(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    pipeline = open_pipeline(
        DERIVER_POLLING_STARTUP_JITTER_SECONDS=seconds, DERIVER_POLLING_JITTER_RATIO="0.0"
    )
    longest = [0.0]

    def draw(low: float, high: float) -> float:
        longest[0] = max(longest[0], high)
        return 0.0

    monkeypatch.setattr("memservice.worker.polling.random.uniform", draw)
    stop = threading.Event()
    pipeline.reasoner.act = lambda request: stop.set()
    pipeline.say("s", ("alice", "I like tea."))
    Worker(pipeline.rt, jitter=True).run(stop)
    assert longest == [float(seconds)]
    assert pipeline.texts("alice") == ["I like tea."]


@pytest.mark.parametrize(
    ("ratio", "low", "high"), [("0.5", 0.5, 1.5), ("0.0", 1.0, 1.0), ("1", 0.0, 2.0)]
)
def test_deriver_polling_jitter_ratio(
    open_pipeline: OpenPipeline, ratio: str, low: float, high: float
) -> None:
    pipeline = open_pipeline(
        DERIVER_POLLING_JITTER_RATIO=ratio, DERIVER_POLLING_SLEEP_INTERVAL_SECONDS="1"
    )
    pauses = [Worker(pipeline.rt, jitter=True)._pause(1) for _ in range(50)]
    assert all(low <= pause <= high for pause in pauses)
    assert (len(set(pauses)) > 1) == (low < high)
    assert Worker(pipeline.rt)._pause(1) == 1.0, "the worker beside a server has no jitter"


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
    open_pipeline: OpenPipeline,
    capabilities: tuple[Capability, ...],
    settings: dict[str, str],
    units: int,
) -> None:
    pipeline = open_pipeline(reasoner=ScriptedReasoner(*capabilities), **settings)
    assert units_at_once(pipeline.rt.settings, pipeline.rt.plugins) == units


class Slow:
    """A call that takes several times as long as a lease, while another process tries to claim the
    unit."""

    def __init__(self, pipeline: Pipeline, unit: str) -> None:
        self.pipeline = pipeline
        self.unit = unit
        self.taken_over = False

    def __call__(self, request: object) -> None:
        self.pipeline.reasoner.act = None
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            self.taken_over |= self.pipeline.run(self.unit).claimed
            time.sleep(0.05)


@pytest.mark.parametrize("beats", [True, False])
@pytest.mark.slow
def test_a_heartbeat_keeps_the_lease_during_a_slow_call(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch, beats: bool
) -> None:
    pipeline = open_pipeline(DERIVER_STALE_SESSION_TIMEOUT_MINUTES="0.01")
    pipeline.rt.clock = utc_now
    if not beats:
        monkeypatch.setattr(lease_heartbeat.LeaseHeartbeat, "_beat", lambda self: None)
    pipeline.say("s", ("alice", "I like tea."))
    slow = pipeline.reasoner.act = Slow(pipeline, pipeline.tasks()[0].unit)
    report = pipeline.run(slow.unit)
    assert (slow.taken_over, report.done) == ((False, 1) if beats else (True, 0)), (
        "without a heartbeat the lease of 0.6 s runs out"
    )
    assert [c.times_derived for c in pipeline.conclusions("alice")] == [1]


def test_a_dream_timer_survives_a_restart(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(DREAM_DOCUMENT_THRESHOLD="1", DREAM_IDLE_TIMEOUT_MINUTES="60")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    (timer,) = pipeline.tasks("dream_timer", state="pending")
    pipeline.clock.advance(minutes=59)
    assert pipeline.work() == []
    pipeline.clock.advance(minutes=2)
    # A worker that was started just now knows of it from the store alone.
    assert pipeline.ready() == [timer.unit]
    pipeline.work()
    assert [task.state for task in pipeline.tasks("dream")] == ["done"]
