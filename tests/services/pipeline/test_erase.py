"""Erasing what was deleted: everything, nothing else, in small steps, whatever interrupts it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.pipeline.deletion import batches, erase
from memservice.pipeline.handler import Unfinished
from memservice.services import deletion
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.schema import BY_RECORD, TABLES
from memservice.spi.storage import Transaction
from memservice.worker import runner
from support.erasure.kills import run_with_crashes
from support.pipeline.all_tables import fill, indexed, rows
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]

KEPT = {r.Usage, r.Erasure}
"""Tables that outlive their workspace."""


def only_task(pipeline: Pipeline) -> r.Task:
    (task,) = pipeline.tasks(kinds.ERASE)
    return task


@pytest.mark.slow
def test_a_session_is_erased_completely_and_nothing_else(pipeline: Pipeline) -> None:
    other, doomed = fill(pipeline, WORKSPACE, "kept"), fill(pipeline, WORKSPACE, "s")
    before, texts = rows(pipeline, session_key=other), indexed(pipeline, 1)
    assert before.keys() == {BY_RECORD[record].name for record in erase.OF_SESSION}
    assert rows(pipeline, session_key=doomed) == before
    pairs = (("alice", "alice"), ("scope.team", "bob"), ("alice", "bob"))
    assert [pipeline.counted(*pair) for pair in pairs] == [50, 50, 2]
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    assert rows(pipeline, session_key=doomed) == {}
    assert rows(pipeline, session_key=other) == before
    with pipeline.rt.storage.read() as tx:
        assert tx.sessions.by_key(doomed) is None
    assert [pipeline.counted(*pair) for pair in pairs] == [25, 25, 1]
    total_erased = before["messages"] + before["conclusions"]
    assert indexed(pipeline, 1)[0] == texts[0] - total_erased
    with pipeline.rt.storage.read() as tx:
        notes = tx.rows.page(r.Metamessage)
        leases = tx.rows.page(r.Lease)
    assert len(notes) == 4 + 1, "a note of the user stays"
    assert [lease.unit.rpartition(":")[2] for lease in leases] == [str(other)]
    task = only_task(pipeline)
    assert task.state == "done"
    assert task.outcome["messages"] == before["messages"]
    assert task.outcome["conclusions"] == before["conclusions"]
    assert task.outcome["sessions"] == 1


def test_what_was_concluded_only_from_a_session_goes_with_it(pipeline: Pipeline) -> None:
    pipeline.say("kept", ("alice", "I like tea."))
    pipeline.say("s", ("alice", "I own a quokka."), ("alice", "I paint boats."))
    pipeline.work()
    tea, quokka, boats = pipeline.conclusions("alice")
    conclusion = partial(
        replace,
        tea,
        key=0,
        level=r.DEDUCTIVE,
        internal={"premises": ["I own a quokka."]},
        message_keys=quokka.message_keys,
    )

    def conclude(tx: Transaction) -> list[r.Conclusion]:
        only = conclusion(uid=new_uid(), source_ids=[quokka.uid])
        both = conclusion(uid=new_uid(), source_ids=[boats.uid, tea.uid])
        deeper = conclusion(uid=new_uid(), source_ids=[only.uid])
        return tx.conclusions.put([only, both, deeper])

    _, both, _ = pipeline.rt.storage.write(conclude)
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    left = {row.uid: row for row in pipeline.conclusions("alice")}
    assert left.keys() == {tea.uid, both.uid}
    assert left[both.uid].source_ids == [tea.uid]
    assert left[both.uid].internal == {"premises": ["I like tea."]}
    assert left[both.uid].message_keys == []
    assert only_task(pipeline).outcome["conclusions"] == 4


@pytest.mark.slow
def test_a_workspace_is_erased_completely_and_nothing_else(pipeline: Pipeline) -> None:
    fill(pipeline, "kept", "s")
    for session in ("a", "b", "c"):
        fill(pipeline, WORKSPACE, session)
    (other, doomed) = (1, 2)
    before, texts = rows(pipeline, workspace_key=other), indexed(pipeline, other)
    every = {spec.name for spec in TABLES if "workspace_key" in spec.record.__struct_fields__} - {
        "erasures"
    }
    assert rows(pipeline, workspace_key=doomed).keys() == before.keys() == every, (
        "the example has something in every table"
    )
    for session in ("a", "b", "c"):
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, session)
    deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE)
    pipeline.work()
    assert rows(pipeline, workspace_key=doomed).keys() == {"usage", "erasures"}
    assert rows(pipeline, workspace_key=other) == before
    assert indexed(pipeline, doomed) == (0, 0)
    assert indexed(pipeline, other) == texts
    with pipeline.rt.storage.read() as tx:
        assert tx.workspaces.by_key(doomed) is None
        assert tx.workspaces.by_key(other) is not None
    assert {task.state for task in pipeline.tasks(kinds.ERASE)} == {"done"}


def test_erasure_covers_every_table_of_a_workspace() -> None:
    for name, covered, others in (
        ("workspace_key", erase.OF_WORKSPACE, KEPT),
        ("session_key", erase.OF_SESSION, set()),
    ):
        having = {spec.record for spec in TABLES if name in spec.record.__struct_fields__}
        assert having - others == set(covered)


@contextmanager
def counting(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows each step erases. Steps of several tasks run at the same time."""
    steps: list[int] = []
    current = threading.local()
    original = erase._erase
    take = erase._step

    def counted(rt: Any, tx: Any, doomed: Any, record: Any, erased_rows: Any) -> None:
        current.number += len(erased_rows)
        original(rt, tx, doomed, record, erased_rows)

    def step(*arguments: Any) -> Any:
        current.number = 0
        try:
            return take(*arguments)
        finally:
            steps.append(current.number)

    with monkeypatch.context() as patched:
        patched.setattr(erase, "_erase", counted)
        patched.setattr(erase, "_step", step)
        yield steps


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_no_step_erases_more_than_a_thousand_rows(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr(erase, "BATCH_SIZE", 7)
    fill(pipeline, WORKSPACE, "s")
    with counting(pipeline, monkeypatch) as steps:
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
        if whole:
            deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE)
        pipeline.work()
    assert max(steps) == 7
    assert len(steps) > 20
    assert all(task.state == "done" for task in pipeline.tasks(kinds.ERASE))
    assert rows(pipeline, workspace_key=1).keys() == (
        {"usage", "erasures"} if whole else rows(pipeline, workspace_key=1).keys()
    )
    assert "messages" not in rows(pipeline, workspace_key=1)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_an_interrupted_erasure_continues(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr(erase, "BATCH_SIZE", 40)
    fill(pipeline, WORKSPACE, "s")
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    if whole:
        deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE)
    unit = [unit for unit in pipeline.ready() if unit.startswith("erase:")][-1]
    before = rows(pipeline, workspace_key=1)
    crashes = run_with_crashes(pipeline, unit, survives=2)
    assert crashes > 1
    pipeline.work()
    done = {task.unit: task for task in pipeline.tasks(kinds.ERASE)}[unit]
    assert done.state == "done"
    assert done.outcome["messages"] == before["messages"]
    assert done.outcome["conclusions"] == before["conclusions"]
    assert done.outcome["workspaces" if whole else "sessions"] == 1
    assert rows(pipeline, workspace_key=1).keys() >= {"usage"}
    assert not rows(pipeline, workspace_key=1).keys() & {
        "messages",
        "conclusions",
        "members",
        "summaries",
    }


@pytest.mark.slow
def test_erasing_twice_changes_nothing(pipeline: Pipeline) -> None:
    key = fill(pipeline, WORKSPACE, "s")
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    with pipeline.rt.storage.read() as tx:
        (first,) = tx.rows.page(r.Task, equals(kind=kinds.ERASE))
    again = r.Task(
        uid=new_uid(),
        unit=first.unit,
        kind=first.kind,
        payload={"session": key},
        not_before=pipeline.clock(),
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([again]))
    pipeline.work()
    assert [task.outcome for task in pipeline.tasks(kinds.ERASE)] == [first.outcome, {}]


def test_an_active_session_is_never_erased(pipeline: Pipeline) -> None:
    (message, *_) = pipeline.say("s", ("alice", "I like tea."))
    now, payload = pipeline.clock(), {"session": message.session_key}
    task = r.Task(
        uid=new_uid(),
        unit="erase:x",
        kind=kinds.ERASE,
        payload=payload,
        not_before=now,
        created_at=now,
    )
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([task]))
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]


def test_work_in_progress_stores_nothing_in_a_deleted_session(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))

    def delete_meanwhile(request: object) -> None:
        pipeline.reasoner.act = None
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")

    pipeline.reasoner.act = delete_meanwhile
    pipeline.run(pipeline.unit())
    assert pipeline.conclusions("alice") == []
    pipeline.work()
    assert rows(pipeline, session_key=1) == {}


def test_a_worker_whose_unit_was_erased_stores_nothing(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."))

    def erase_meanwhile(request: object) -> None:
        pipeline.reasoner.act = None
        deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
        pipeline.run("erase:session:1")

    pipeline.reasoner.act = erase_meanwhile
    report = pipeline.run(pipeline.unit())
    assert (report.done, report.failed) == (0, 0)
    assert rows(pipeline, session_key=1) == {}
    assert pipeline.conclusions("alice") == []
    assert [task.kind for task in pipeline.tasks(None)] == [kinds.ERASE]


def test_rows_stored_during_the_last_step_are_erased(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    (message, *_) = pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    (conclusion,) = pipeline.conclusions("alice")
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    original = erase._erase
    late: list[r.Conclusion] = []

    def arriving(rt: Any, tx: Transaction, doomed: Any, record: type[Any], remains: Any) -> None:
        original(rt, tx, doomed, record, remains)
        if record is r.Member and not late:
            late.extend(tx.conclusions.put([replace(conclusion, key=0, uid=new_uid())]))

    monkeypatch.setattr(erase, "_erase", arriving)
    pipeline.work()
    assert late
    assert rows(pipeline, session_key=message.session_key) == {}
    assert only_task(pipeline).outcome["conclusions"] == 2


def test_the_size_of_a_batch_follows_the_time_of_the_one_before() -> None:
    def after(size: int | None, seconds: float) -> int:
        payload = {} if size is None else {batches.ENTRY: size}
        task = r.Task(
            uid="t",
            unit="erase:peer:1",
            kind=kinds.ERASE,
            payload=payload,
            not_before=r.IMMEDIATELY,
            created_at=r.IMMEDIATELY,
        )
        step = batches.adapted(Unfinished(task), seconds, 100)
        assert isinstance(step, Unfinished)
        return batches.size(step.task, 100)

    limit = batches.SECONDS
    assert after(None, limit) == batches.FIRST_SIZE
    assert after(20, limit / 10) == 40, "it at most doubles"
    assert after(80, limit / 10) == 100
    assert after(100, limit * 2) == 50
    assert after(20, limit * 100) == batches.MIN_SIZE
    assert after(100, 0.0) == 100


@pytest.mark.slow
def test_other_units_run_between_steps(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "BATCH_SIZE", 5)
    monkeypatch.setattr(runner, "TIME_SLICE_SECONDS", 0.0)
    fill(pipeline, WORKSPACE, "s")
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.say("other", ("carol", "I sing."))
    report = pipeline.run("erase:session:1")
    assert (report.steps, report.done) == (1, 0)
    assert only_task(pipeline).state == "pending"
    assert sum(only_task(pipeline).outcome.values()) == 5
    units = [report.unit for report in pipeline.work()]
    assert (
        units.index(f"representation:1:2:{pipeline.conclusions('carol')[0].observer_key}")
        < len(units) - 1
    )
    assert only_task(pipeline).state == "done"


@pytest.mark.slow
def test_vectors_in_an_outside_index_are_removed(open_pipeline: OpenPipeline) -> None:
    outside = ExternalIndex()
    pipeline = open_pipeline(
        LengthEmbedder("lengths-1", Capability.SEMANTIC),
        outside,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )
    for session in ("s", "kept"):
        pipeline.say(session, ("alice", f"I like {session}."), ("bob", f"I own {session}."))
    pipeline.work()
    assert len(outside.rows) == 8
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    assert {row.session for row in outside.rows.values()} == {2}
    assert len(outside.rows) == 4
    pipeline.say("kept", ("alice", "I am not embedded yet."))
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "kept")
    deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE)
    pipeline.work()
    assert outside.rows == {}
    assert rows(pipeline, workspace_key=1).keys() == {"erasures"}


def test_rows_stay_while_an_outside_index_is_unreachable(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = ExternalIndex()
    pipeline = open_pipeline(
        LengthEmbedder("lengths-1", Capability.SEMANTIC),
        outside,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")

    def away(*_: object) -> NoReturn:
        raise ConnectionError("away")

    with monkeypatch.context() as patched:
        patched.setattr(outside, "delete", away)
        pipeline.work()
    assert rows(pipeline, session_key=1).keys() >= {"messages", "conclusions"}
    pipeline.clock.advance(minutes=10)
    pipeline.work()
    assert rows(pipeline, session_key=1) == {}
    assert outside.rows == {}
