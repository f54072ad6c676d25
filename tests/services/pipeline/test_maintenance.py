"""What is over is erased in time, and leases of processes that have ended are freed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import (
    DONE,
    FAILED,
    SUPERSEDED,
    Conclusion,
    Fact,
    IdempotencyKey,
    Message,
    Task,
)
from memservice.services import conclusions, deletion
from memservice.services.tasks import lease_owner
from memservice.spi.storage import Transaction
from memservice.worker import retention
from memservice.worker.housekeeping import Housekeeping
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


def pass_time(pipeline: Pipeline, **by: float) -> None:
    """The clock runs that far, and does not jump."""
    pipeline.clock.advance(**by)
    pipeline.rt.storage.write(lambda tx: tx.rows.delete(Fact, equals(name=retention.FACT)))


def fail(request: object) -> None:
    raise RuntimeError("no")


def test_done_and_failed_tasks_are_erased_after_their_retention(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(WORKER_MAX_ATTEMPTS="1")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    pipeline.reasoner.act = fail
    pipeline.say("s", ("alice", "I own a boat."))
    pipeline.work()
    pipeline.clock.advance(hours=11.9)
    assert retention.sweep(pipeline.rt).total() == 0
    pipeline.clock.advance(hours=0.2)
    assert retention.sweep(pipeline.rt)["done tasks"] == 1
    assert [task.state for task in pipeline.tasks()] == ["failed"]
    pass_time(pipeline, days=29.4)
    assert retention.sweep(pipeline.rt).total() == 0
    pass_time(pipeline, days=0.2)
    assert retention.sweep(pipeline.rt)["failed tasks"] == 1
    assert pipeline.tasks(None) == []


def test_each_sweep_reclaims_for_a_limited_time(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[bool] = [True, True, False]
    monkeypatch.setattr(pipeline.rt.storage, "reclaim", lambda: steps.pop(0))
    retention.sweep(pipeline.rt)
    assert steps == [], "until there is no more"
    pipeline.clock.advance(minutes=2)
    monkeypatch.setattr(retention, "RECLAIM_SECONDS", 0.1)
    monkeypatch.setattr(pipeline.rt.storage, "reclaim", lambda: True)
    began = time.monotonic()
    retention.sweep(pipeline.rt)
    assert time.monotonic() - began < 20, "the next sweep goes on"


@pytest.mark.every_storage("sqlite")
def test_texts_of_an_erased_workspace_are_not_left_in_the_file(pipeline: Pipeline) -> None:
    if pipeline.rt.storage.name != "sqlite":
        pytest.skip("a matter of SQLite's file")
    folder = Path(pipeline.rt.settings.db.connection_uri.removeprefix("sqlite:///")).parent

    def written() -> int:
        return sum(file.read_bytes().count(b"zorbmarker") for file in folder.glob("*.db*"))

    pipeline.say("s", *[("alice", f"I keep zorbmarker{number} bees.") for number in range(50)])
    pipeline.work()
    assert written() > 50
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE)
    pipeline.work()
    retention.sweep(pipeline.rt)
    assert written() == 0


def test_pending_tasks_are_never_erased(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.clock.advance(days=1_000)
    assert retention.sweep(pipeline.rt).total() == 0
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]


def test_deleted_conclusions_are_erased_and_superseded_ones_kept(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea.\nI own a boat.\nI sing."))
    pipeline.work()
    tea, boat, song = pipeline.conclusions("alice")
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, tea.uid)
    pipeline.rt.storage.write(
        lambda tx: tx.conclusions.put([replace(boat, state=SUPERSEDED, superseded_by=song.key)])
    )
    pipeline.clock.advance(minutes=4.9)
    assert retention.sweep(pipeline.rt).total() == 0
    pipeline.clock.advance(minutes=0.2)
    assert retention.sweep(pipeline.rt)["deleted conclusions"] == 1
    with pipeline.rt.storage.read() as tx:
        assert {row.uid for row in tx.rows.page(Conclusion)} == {boat.uid, song.uid}


def test_one_process_sweeps_at_a_time(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    pipeline.clock.advance(hours=13)
    lease = pipeline.rt.storage.write(
        lambda tx: tx.tasks.claim(retention.UNIT, "another", pipeline.clock(), 60)
    )
    assert lease is not None
    assert retention.sweep(pipeline.rt).total() == 0
    assert len(pipeline.tasks()) == 1
    pipeline.rt.storage.write(lambda tx: tx.tasks.release(lease))
    assert retention.sweep(pipeline.rt).total() == 1


@pytest.fixture
def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def test_leases_of_ended_processes_of_this_machine_are_freed_and_no_others(
    pipeline: Pipeline, ended_pid: int
) -> None:
    here = lease_owner._machine()
    mine = lease_owner.start_claim()
    started = mine.split("|")[4]
    parent = f"{here}|{os.getppid()}||x"
    stale = {
        f"{here}|{ended_pid}|1|x",
        f"{here}|{os.getpid()}|1|x",
        f"{here}|{os.getpid()}|{started}|a claim that is over",
    }
    host, boot, namespace = here.split("|")
    elsewhere = {
        f"elsewhere|{boot}|{namespace}",
        f"{host}|another-boot|{namespace}",
        f"{host}|{boot}|1",
        host,
    }
    others = {f"{machine}|{ended_pid}|1|x" for machine in elsewhere}
    there = {mine, parent, *others, "somebody", f"{here}|none|1|x", f"{here}|{ended_pid}"}
    for number, name in enumerate(sorted(stale | there)):
        pipeline.rt.storage.write(
            lambda tx, n=number, o=name: tx.tasks.claim(f"unit:{n}", o, pipeline.clock(), 60)  # type: ignore[misc]
        )
    assert retention.free_abandoned(pipeline.rt) == len(stale)
    with pipeline.rt.storage.read() as tx:
        assert {lease.owner for lease in tx.tasks.leases()} == there
    assert retention.free_abandoned(pipeline.rt) == 0
    lease_owner.end_claim(mine)
    assert retention.free_abandoned(pipeline.rt) == 1


@pytest.mark.skipif(
    not Path("/proc/self/ns/pid").exists(),
    reason="PID namespaces are read from /proc, as Linux has it",
)
def test_a_process_of_another_pid_namespace_is_not_judged_by_its_pid() -> None:
    """As containers with one host name are: the pid of one means something else, or nothing, in the
    other."""
    host, boot, namespace, pid, started, unique = lease_owner.start_claim().split("|")
    other = [host, boot, str(int(namespace) + 1), pid, started, unique]
    assert lease_owner.has_ended("|".join([host, boot, namespace, pid, "1", unique]))
    assert not lease_owner.has_ended("|".join([*other[:4], "1", unique]))
    assert not lease_owner.has_ended("|".join([host, "another boot", namespace, pid, "1", unique]))


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(),
    reason="the state of a process is read from /proc, as Linux has it",
)
def test_a_zombie_process_counts_as_ended(pipeline: Pipeline) -> None:
    """As it may be for ever where a container has no init process."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    name = f"{lease_owner._machine()}|{process.pid}|{lease_owner._started(process.pid)}|x"
    assert not lease_owner.has_ended(name)
    process.kill()  # and nobody waits for it
    deadline = time.monotonic() + 30
    while not lease_owner.has_ended(name):
        assert time.monotonic() < deadline, "it is taken to be alive"
        time.sleep(0.01)
    assert process.poll() is not None
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.slow
def test_a_unit_of_an_ended_process_is_taken_over_at_once(
    pipeline: Pipeline, ended_pid: int
) -> None:
    pipeline.say("s", ("alice", "I like tea."))
    unit = pipeline.unit()
    dead = f"{lease_owner._machine()}|{ended_pid}|1|x"
    pipeline.rt.storage.write(lambda tx: tx.tasks.claim(unit, dead, pipeline.clock(), 300))
    assert pipeline.work() == []
    retention.free_abandoned(pipeline.rt)
    pipeline.work()
    assert [c.times_derived for c in pipeline.conclusions("alice")] == [1]


def test_every_kind_is_erased_in_batches_and_time_slices(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No transaction holds the only lock of a SQLite store for long, and other work need not wait
    until all is erased."""
    monkeypatch.setattr(retention, "BATCH_SIZE", 3)
    pipeline = open_pipeline()
    stored = [
        [
            Task(
                uid=f"{state} {n}",
                kind="k",
                unit="u",
                state=state,
                finished_at=pipeline.clock(),
                **times(pipeline),
            )
            for n in range(7)
        ]
        for state in (DONE, FAILED)
    ]
    pipeline.rt.storage.write(lambda tx: [tx.tasks.add(tasks) for tasks in stored])
    message = pipeline.say("s", ("alice", "I like tea."))[0]
    pipeline.rt.storage.write(lambda tx: tx.rows.put([key(pipeline, message, n) for n in range(7)]))
    most: list[int] = []
    delete = pipeline.rt.storage.write
    pipeline.clock.advance(days=31)

    def counted(fn: Callable[[Transaction], Any]) -> Any:
        result = delete(fn)
        if isinstance(result, int) and not isinstance(result, bool):
            most.append(result)
        return result

    monkeypatch.setattr(pipeline.rt.storage, "write", counted)
    swept = retention.sweep(pipeline.rt)
    assert {name: number for name, number in swept.items() if number} == {
        "done tasks": 7,
        "failed tasks": 7,
        "idempotency keys": 7,
    }
    assert max(most) == 3
    assert not swept.unfinished


def test_a_long_purge_continues_in_the_next_round(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 3)
    monkeypatch.setattr(retention, "TIME_SLICE_SECONDS", 0.0)
    pipeline = open_pipeline()
    tasks = [
        Task(
            uid=str(n),
            kind="k",
            unit="u",
            state=DONE,
            finished_at=pipeline.clock(),
            **times(pipeline),
        )
        for n in range(7)
    ]
    pipeline.rt.storage.write(lambda tx: tx.tasks.add(tasks))
    pipeline.clock.advance(days=1)
    housekeeping = Housekeeping(pipeline.rt)
    left = []
    for _ in range(4):
        housekeeping.run_due()
        left.append(len(pipeline.tasks(None)))
    assert left == [4, 1, 0, 0]


def times(pipeline: Pipeline) -> dict[str, Any]:
    return {"not_before": pipeline.clock(), "created_at": pipeline.clock()}


def key(pipeline: Pipeline, message: Message, number: int) -> IdempotencyKey:
    return IdempotencyKey(
        workspace_key=message.workspace_key,
        session_key=message.session_key,
        digest=f"k{number}",
        request="r",
        message_keys=[message.key],
        created_at=pipeline.clock(),
    )
