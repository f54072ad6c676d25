"""The sweep: one leader finds what is ready and waits nowhere."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from redis import RedisError
from rq import SimpleWorker
from rq.job import Job
from rq.serializers import JSONSerializer

from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.settings import load_settings
from memservice.spi.storage import Transaction
from memservice.worker import sweep
from memservice.worker.rq_queues import QUEUES, JobQueues, connect
from memservice.worker.unit_jobs import UnitJob
from support.pipeline.fakes import ScriptedReasoner
from support.pipeline.pipeline import Clock, Pipeline
from support.process_state import restored_process

T = TypeVar("T")


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """A store whose writes wake no worker: each wake-up is lost."""
    environ = {
        "DB_CONNECTION_URI": "memory://",
        "REASONER": "scripted",
        "DREAM_DOCUMENT_THRESHOLD": "1",
    }
    settings = load_settings(environ=environ, cwd=tmp_path)
    reasoner, clock = ScriptedReasoner(), Clock()
    rt = open_runtime(settings, plugins=load_plugins(settings, extra=[reasoner]), clock=clock)
    yield Pipeline(rt, clock, reasoner)
    rt.close()


def waiting(queues: JobQueues) -> list[str]:
    jobs = [job for queue in queues.named(QUEUES) for job in queue.get_jobs()]
    return [job.unit for job in jobs if isinstance(job, UnitJob) and job.unit is not None]


def test_a_unit_without_a_wake_up_is_enqueued_once(pipeline: Pipeline, queues: JobQueues) -> None:
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I sing."))
    units = pipeline.ready()
    assert sweep.sweep(pipeline.rt, queues) == 2
    assert sweep.sweep(pipeline.rt, queues) == 0
    assert waiting(queues) == units


def test_a_leased_unit_is_not_enqueued(pipeline: Pipeline, queues: JobQueues) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    swept: list[int] = []
    pipeline.reasoner.act = lambda request: swept.append(sweep.sweep(pipeline.rt, queues))
    pipeline.run(pipeline.unit())
    assert swept == [0]


def test_units_are_enqueued_when_a_back_off_or_timer_ends(
    pipeline: Pipeline, queues: JobQueues
) -> None:
    def fail(request: object) -> None:
        raise RuntimeError("no")

    pipeline.reasoner.act = fail
    pipeline.say("s", ("alice", "I like tea."))
    (unit,) = pipeline.ready()
    pipeline.run(unit)
    assert sweep.sweep(pipeline.rt, queues) == 0
    pipeline.clock.advance(minutes=1)
    assert sweep.sweep(pipeline.rt, queues) == 1
    assert waiting(queues) == [unit]
    pipeline.reasoner.act = None
    pipeline.run(unit)
    (timer,) = pipeline.tasks("dream_timer")
    assert sweep.sweep(pipeline.rt, queues) == 0
    pipeline.clock.advance(minutes=61)
    assert sweep.sweep(pipeline.rt, queues) == 1
    assert timer.unit in waiting(queues)


def test_one_process_leads_at_a_time(pipeline: Pipeline, queues: JobQueues) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    lease = pipeline.rt.storage.write(
        lambda tx: tx.tasks.claim(sweep.UNIT, "another", pipeline.clock(), sweep.LEASE_SECONDS)
    )
    assert lease is not None
    assert sweep.sweep(pipeline.rt, queues) == 0
    pipeline.clock.advance(seconds=sweep.LEASE_SECONDS + 1)  # it is gone
    assert sweep.sweep(pipeline.rt, queues) == 1
    with pipeline.rt.storage.read() as tx:
        assert tx.tasks.leases() == []


def test_an_idle_sweep_writes_nothing(
    pipeline: Pipeline, queues: JobQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    write = pipeline.rt.storage.write

    def counted(fn: Callable[[Transaction], T]) -> T:
        writes.append(1)
        return write(fn)

    monkeypatch.setattr(pipeline.rt.storage, "write", counted)
    assert sweep.sweep(pipeline.rt, queues) == 0
    assert writes == []


def test_failures_of_another_worker_are_removed_and_their_work_is_done(
    pipeline: Pipeline, queues: JobQueues, caplog: pytest.LogCaptureFixture
) -> None:
    """`rq worker` cannot do this work: its jobs end in RQ's list of failed ones, for a year."""
    pipeline.say("s", ("alice", "I like tea."), ("bob", "I sing."))
    units = pipeline.ready()
    assert sweep.sweep(pipeline.rt, queues) == 2
    (queue,) = queues.named(["ingest"])
    stock = SimpleWorker([queue.name], connection=queues.connection, serializer=JSONSerializer)
    with restored_process():
        stock.work(burst=True, logging_level="CRITICAL")
    assert queue.failed_job_registry.count == 2
    assert waiting(queues) == []
    ids = queue.failed_job_registry.get_job_ids()
    stale = queue.started_job_registry
    queues.connection.zadd(stale.key, {"gone:1": 1})
    assert sweep.sweep(pipeline.rt, queues) == 2
    assert waiting(queues) == units
    assert queue.failed_job_registry.get_job_ids() == []
    assert queues.connection.zcard(stale.key) == 0
    for id in ids:
        is_new = queues.connection.hget(Job.key_for(id), "status") in (b"queued", None)
        assert is_new, "no failed job is left"
    assert "removed 2 job(s) that another program took" in caplog.text
    assert queues.clear_failures() == 0


def test_an_unreachable_redis_leaves_no_leader_lease(pipeline: Pipeline, namespace: str) -> None:
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = JobQueues(connect(f"redis://127.0.0.1:{nobody.getsockname()[1]}/0"), namespace)
        pipeline.say("s", ("alice", "I like tea."))
        with pytest.raises(RedisError):
            sweep.sweep(pipeline.rt, away)
    with pipeline.rt.storage.read() as tx:
        assert tx.tasks.leases() == []
