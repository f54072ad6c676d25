"""Erasing what was deleted: everything, nothing else, in small steps, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, NoReturn

import pytest

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.pipeline.deletion import erase
from memservice.services import deletion
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.schema import BY_RECORD, TABLES
from memservice.spi.storage import Transaction
from memservice.worker import runner
from support.pipeline.everything import fill, indexed, rows
from support.pipeline.fakes import Lengths, Outside
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

Start = Callable[..., Place]

KEPT = {r.Usage, r.Erasure}
"""Tables that outlive their workspace."""


def only_task(place: Place) -> r.Task:
    (task,) = place.tasks(kinds.ERASE)
    return task


def test_a_session_is_erased_completely_and_nothing_else(place: Place) -> None:
    kept, doomed = fill(place, WORKSPACE, "kept"), fill(place, WORKSPACE, "s")
    before, texts = rows(place, session_key=kept), indexed(place, 1)
    assert before.keys() == {BY_RECORD[record].name for record in erase.OF_SESSION}
    assert rows(place, session_key=doomed) == before
    pairs = (("alice", "alice"), ("scope.team", "bob"), ("alice", "bob"))
    assert [place.counted(*pair) for pair in pairs] == [50, 50, 2]
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    place.work()
    assert rows(place, session_key=doomed) == {}
    assert rows(place, session_key=kept) == before
    with place.rt.storage.read() as tx:
        assert tx.sessions.by_key(doomed) is None
    assert [place.counted(*pair) for pair in pairs] == [25, 25, 1]
    gone = before["messages"] + before["conclusions"]
    assert indexed(place, 1)[0] == texts[0] - gone
    with place.rt.storage.read() as tx:
        notes = tx.rows.page(r.Metamessage)
        leases = tx.rows.page(r.Lease)
    assert len(notes) == 4 + 1, "a note of the user stays"
    assert [lease.unit.rpartition(":")[2] for lease in leases] == [str(kept)]
    task = only_task(place)
    assert task.state == "done"
    assert task.outcome["messages"] == before["messages"]
    assert task.outcome["conclusions"] == before["conclusions"]
    assert task.outcome["sessions"] == 1


def test_a_workspace_is_erased_completely_and_nothing_else(place: Place) -> None:
    fill(place, "kept", "s")
    for session in ("a", "b", "c"):
        fill(place, WORKSPACE, session)
    (kept, doomed) = (1, 2)
    before, texts = rows(place, workspace_key=kept), indexed(place, kept)
    every = {
        spec.name
        for spec in TABLES
        if any(field.name == "workspace_key" for field in fields(spec.record))
    } - {"erasures"}
    assert rows(place, workspace_key=doomed).keys() == before.keys() == every, (
        "the example has something in every table"
    )
    for session in ("a", "b", "c"):
        deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, session)
    deletion.delete_workspace(place.rt, PRINCIPAL, WORKSPACE)
    place.work()
    assert rows(place, workspace_key=doomed).keys() == {"usage", "erasures"}
    assert rows(place, workspace_key=kept) == before
    assert indexed(place, doomed) == (0, 0)
    assert indexed(place, kept) == texts
    with place.rt.storage.read() as tx:
        assert tx.workspaces.by_key(doomed) is None
        assert tx.workspaces.by_key(kept) is not None
    assert {task.state for task in place.tasks(kinds.ERASE)} == {"done"}


def test_erasure_covers_every_table_of_a_workspace() -> None:
    for name, known, others in (
        ("workspace_key", erase.OF_WORKSPACE, KEPT),
        ("session_key", erase.OF_SESSION, set()),
    ):
        having = {
            spec.record
            for spec in TABLES
            if any(field.name == name for field in fields(spec.record))
        }
        assert having - others == set(known)


@contextmanager
def counting(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows each step erases."""
    steps: list[int] = []
    original = erase._erase
    take = erase._step

    def counted(rt: Any, tx: Any, doomed: Any, record: Any, found: Any) -> None:
        steps[-1] += len(found)
        original(rt, tx, doomed, record, found)

    def step(*given: Any) -> Any:
        steps.append(0)
        return take(*given)

    with monkeypatch.context() as patched:
        patched.setattr(erase, "_erase", counted)
        patched.setattr(erase, "_step", step)
        yield steps


@pytest.mark.parametrize("whole", [False, True])
def test_no_step_erases_more_than_a_thousand_rows(
    place: Place, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr(erase, "BATCH_SIZE", 7)
    fill(place, WORKSPACE, "s")
    with counting(place, monkeypatch) as steps:
        deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
        if whole:
            deletion.delete_workspace(place.rt, PRINCIPAL, WORKSPACE)
        place.work()
    assert max(steps) == 7
    assert len(steps) > 20
    assert all(task.state == "done" for task in place.tasks(kinds.ERASE))
    assert rows(place, workspace_key=1).keys() == (
        {"usage", "erasures"} if whole else rows(place, workspace_key=1).keys()
    )
    assert "messages" not in rows(place, workspace_key=1)


class Crash(BaseException):
    """The process dies."""


@pytest.mark.parametrize("whole", [False, True])
def test_an_interrupted_erasure_continues(
    place: Place, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr(erase, "BATCH_SIZE", 40)
    fill(place, WORKSPACE, "s")
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    if whole:
        deletion.delete_workspace(place.rt, PRINCIPAL, WORKSPACE)
    unit = [unit for unit in place.ready() if unit.startswith("erase:")][-1]
    before = rows(place, workspace_key=1)
    commit = runner._commit
    crashes = 0
    for _ in range(100):
        calls = iter(range(10))

        def dying(*given: Any, calls: Iterator[int] = calls) -> Any:
            if next(calls) == 2:
                raise Crash
            return commit(*given)

        with monkeypatch.context() as patched:
            patched.setattr(runner, "_commit", dying)
            try:
                place.run(unit)
                if unit not in place.ready():
                    break  # otherwise its time slice was over
            except Crash:
                crashes += 1
        place.clock.advance(hours=1)
    assert crashes > 1
    place.work()
    done = {task.unit: task for task in place.tasks(kinds.ERASE)}[unit]
    assert done.state == "done"
    assert done.outcome["messages"] == before["messages"]
    assert done.outcome["conclusions"] == before["conclusions"]
    assert done.outcome["workspaces" if whole else "sessions"] == 1
    assert rows(place, workspace_key=1).keys() >= {"usage"}
    assert not rows(place, workspace_key=1).keys() & {
        "messages",
        "conclusions",
        "members",
        "summaries",
    }


def test_erasing_twice_changes_nothing(place: Place) -> None:
    key = fill(place, WORKSPACE, "s")
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    place.work()
    with place.rt.storage.read() as tx:
        (first,) = tx.rows.page(r.Task, equals(kind=kinds.ERASE))
    again = r.Task(
        uid=new_uid(),
        unit=first.unit,
        kind=first.kind,
        payload={"session": key},
        not_before=place.clock(),
        created_at=place.clock(),
    )
    place.rt.storage.write(lambda tx: tx.tasks.add([again]))
    place.work()
    assert [task.outcome for task in place.tasks(kinds.ERASE)] == [first.outcome, {}]


def test_an_active_session_is_never_erased(place: Place) -> None:
    (message, *_) = place.say("s", ("alice", "I like tea."))
    now, payload = place.clock(), {"session": message.session_key}
    task = r.Task(
        uid=new_uid(),
        unit="erase:x",
        kind=kinds.ERASE,
        payload=payload,
        not_before=now,
        created_at=now,
    )
    place.rt.storage.write(lambda tx: tx.tasks.add([task]))
    place.work()
    assert place.texts("alice") == ["I like tea."]


def test_work_in_progress_stores_nothing_in_a_deleted_session(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))

    def delete_meanwhile(request: object) -> None:
        place.reasoner.act = None
        deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")

    place.reasoner.act = delete_meanwhile
    place.run(place.unit())
    assert place.conclusions("alice") == []
    place.work()
    assert rows(place, session_key=1) == {}


def test_a_worker_whose_unit_was_erased_stores_nothing(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))

    def erase_meanwhile(request: object) -> None:
        place.reasoner.act = None
        deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
        place.run("erase:session:1")

    place.reasoner.act = erase_meanwhile
    report = place.run(place.unit())
    assert (report.done, report.failed) == (0, 0)
    assert rows(place, session_key=1) == {}
    assert place.conclusions("alice") == []
    assert [task.kind for task in place.tasks(None)] == [kinds.ERASE]


def test_rows_stored_during_the_last_step_are_erased(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (message, *_) = place.say("s", ("alice", "I like tea."))
    place.work()
    (known,) = place.conclusions("alice")
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    original = erase._erase
    late: list[r.Conclusion] = []

    def arriving(rt: Any, tx: Transaction, doomed: Any, record: type[Any], found: Any) -> None:
        original(rt, tx, doomed, record, found)
        if record is r.Member and not late:
            late.extend(tx.conclusions.put([replace(known, key=0, uid=new_uid())]))

    monkeypatch.setattr(erase, "_erase", arriving)
    place.work()
    assert late
    assert rows(place, session_key=message.session_key) == {}
    assert only_task(place).outcome["conclusions"] == 2


def test_other_units_run_between_steps(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "BATCH_SIZE", 5)
    monkeypatch.setattr(runner, "TIME_SLICE_SECONDS", 0.0)
    fill(place, WORKSPACE, "s")
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    place.say("other", ("carol", "I sing."))
    report = place.run("erase:session:1")
    assert (report.steps, report.done) == (1, 0)
    assert only_task(place).state == "pending"
    assert sum(only_task(place).outcome.values()) == 5
    units = [report.unit for report in place.work()]
    assert (
        units.index(f"representation:1:2:{place.conclusions('carol')[0].observer_key}")
        < len(units) - 1
    )
    assert only_task(place).state == "done"


def test_vectors_in_an_outside_index_are_removed(start: Start) -> None:
    outside = Outside()
    place = start(
        Lengths("lengths-1", Capability.SEMANTIC),
        outside,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )
    for session in ("s", "kept"):
        place.say(session, ("alice", f"I like {session}."), ("bob", f"I own {session}."))
    place.work()
    assert len(outside.rows) == 8
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    place.work()
    assert {row.session for row in outside.rows.values()} == {2}
    assert len(outside.rows) == 4
    place.say("kept", ("alice", "I am not embedded yet."))
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "kept")
    deletion.delete_workspace(place.rt, PRINCIPAL, WORKSPACE)
    place.work()
    assert outside.rows == {}
    assert rows(place, workspace_key=1).keys() == {"erasures"}


def test_rows_stay_while_an_outside_index_is_unreachable(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = Outside()
    place = start(
        Lengths("lengths-1", Capability.SEMANTIC),
        outside,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )
    place.say("s", ("alice", "I like tea."))
    place.work()
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")

    def away(*_: object) -> NoReturn:
        raise ConnectionError("away")

    with monkeypatch.context() as patched:
        patched.setattr(outside, "delete", away)
        place.work()
    assert rows(place, session_key=1).keys() >= {"messages", "conclusions"}
    place.clock.advance(minutes=10)
    place.work()
    assert rows(place, session_key=1) == {}
    assert outside.rows == {}
