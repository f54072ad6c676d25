"""What is over is erased in time, and leases of processes that have ended are freed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memservice.domain.records import SUPERSEDED, Conclusion
from memservice.pipeline import maintenance, owner
from memservice.services import conclusions, erasure
from pipeline.place import WHO, WORKSPACE, Place

Start = Callable[..., Place]


def fail(request: object) -> None:
    raise RuntimeError("no")


def test_done_tasks_are_erased_after_their_time_and_failed_ones_after_theirs(start: Start) -> None:
    place = start(WORKER_MAX_ATTEMPTS="1")
    place.say("s", ("alice", "I like tea."))
    place.work()
    place.reasoner.act = fail
    place.say("s", ("alice", "I own a boat."))
    place.work()
    place.clock.advance(hours=11.9)
    assert maintenance.sweep(place.rt).total() == 0
    place.clock.advance(hours=0.2)
    assert maintenance.sweep(place.rt)["done tasks"] == 1
    assert [task.state for task in place.tasks()] == ["failed"]
    place.clock.advance(days=29.4)
    assert maintenance.sweep(place.rt).total() == 0
    place.clock.advance(days=0.2)
    assert maintenance.sweep(place.rt)["failed tasks"] == 1
    assert place.tasks(None) == []


def test_each_sweep_lets_the_store_go_of_what_was_erased_for_a_while(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[bool] = [True, True, False]
    monkeypatch.setattr(place.rt.storage, "reclaim", lambda: steps.pop(0))
    maintenance.sweep(place.rt)
    assert steps == [], "until there is no more"
    place.clock.advance(minutes=2)
    monkeypatch.setattr(maintenance, "RECLAIM_SECONDS", 0.1)
    monkeypatch.setattr(place.rt.storage, "reclaim", lambda: True)
    began = time.monotonic()
    maintenance.sweep(place.rt)
    assert time.monotonic() - began < 5, "the next sweep goes on"


def test_what_users_wrote_is_not_left_in_the_file_after_its_workspace(place: Place) -> None:
    if place.rt.storage.name != "sqlite":
        pytest.skip("a matter of SQLite's file")
    folder = Path(place.rt.settings.db.connection_uri.removeprefix("sqlite:///")).parent

    def written() -> int:
        return sum(file.read_bytes().count(b"zorbmarker") for file in folder.glob("*.db*"))

    place.say("s", *[("alice", f"I keep zorbmarker{number} bees.") for number in range(50)])
    place.work()
    assert written() > 50
    erasure.delete_session(place.rt, WHO, WORKSPACE, "s")
    place.work()
    erasure.delete_workspace(place.rt, WHO, WORKSPACE)
    place.work()
    maintenance.sweep(place.rt)
    assert written() == 0


def test_pending_tasks_are_never_erased(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    place.clock.advance(days=1_000)
    assert maintenance.sweep(place.rt).total() == 0
    place.work()
    assert place.texts("alice") == ["I like tea."]


def test_conclusions_that_users_deleted_are_erased_and_superseded_ones_kept(place: Place) -> None:
    place.say("s", ("alice", "I like tea.\nI own a boat.\nI sing."))
    place.work()
    tea, boat, song = place.conclusions("alice")
    conclusions.delete(place.rt, WHO, WORKSPACE, tea.uid)
    place.rt.storage.write(lambda view: view.conclusions.put([replace(boat, state=SUPERSEDED, superseded_by=song.key)]))
    place.clock.advance(minutes=4.9)
    assert maintenance.sweep(place.rt).total() == 0
    place.clock.advance(minutes=0.2)
    assert maintenance.sweep(place.rt)["deleted conclusions"] == 1
    with place.rt.storage.read() as view:
        assert {row.uid for row in view.rows.page(Conclusion)} == {boat.uid, song.uid}


def test_one_process_sweeps_at_a_time(place: Place) -> None:
    place.say("s", ("alice", "I like tea."))
    place.work()
    place.clock.advance(hours=13)
    lease = place.rt.storage.write(lambda view: view.tasks.claim(maintenance.UNIT, "another", place.clock(), 60))
    assert lease is not None
    assert maintenance.sweep(place.rt).total() == 0
    assert len(place.tasks()) == 1
    place.rt.storage.write(lambda view: view.tasks.release(lease))
    assert maintenance.sweep(place.rt).total() == 1


@pytest.fixture
def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def test_leases_of_ended_processes_of_this_machine_are_freed_and_no_others(place: Place, ended_pid: int) -> None:
    here = socket.gethostname()
    mine = owner.this_process()
    started = mine.split("|")[2]
    parent = f"{here}|{os.getppid()}||x"
    gone = {f"{here}|{ended_pid}|1|x", f"{here}|{os.getpid()}|1|x", f"{here}|{os.getpid()}|{started}|a claim that is over"}
    there = {mine, parent, f"elsewhere|{ended_pid}|1|x", "somebody", f"{here}|none|1|x", f"{here}|{ended_pid}"}
    for number, name in enumerate(sorted(gone | there)):
        place.rt.storage.write(lambda view, n=number, o=name: view.tasks.claim(f"unit:{n}", o, place.clock(), 60))  # type: ignore[misc]
    assert maintenance.free_abandoned(place.rt) == len(gone)
    with place.rt.storage.read() as view:
        assert {lease.owner for lease in view.tasks.leases()} == there
    assert maintenance.free_abandoned(place.rt) == 0
    owner.ended(mine)
    assert maintenance.free_abandoned(place.rt) == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of a process is read from /proc, as Linux has it")
def test_who_has_ended_and_whose_parent_does_not_care_is_gone(place: Place) -> None:
    """As it may be for ever where a container has no init process."""
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    name = f"{socket.gethostname()}|{process.pid}|{owner._started(process.pid)}|x"
    assert not owner.is_gone(name)
    process.kill()  # and nobody waits for it
    deadline = time.monotonic() + 30
    while not owner.is_gone(name):
        assert time.monotonic() < deadline, "it is taken to be alive"
        time.sleep(0.01)
    assert process.poll() is not None
    assert process.stdin is not None
    process.stdin.close()


def test_a_unit_of_an_ended_process_is_taken_over_at_once(place: Place, ended_pid: int) -> None:
    place.say("s", ("alice", "I like tea."))
    unit = place.unit()
    dead = f"{socket.gethostname()}|{ended_pid}|1|x"
    place.rt.storage.write(lambda view: view.tasks.claim(unit, dead, place.clock(), 300))
    assert place.work() == []
    maintenance.free_abandoned(place.rt)
    place.work()
    assert [c.times_derived for c in place.conclusions("alice")] == [1]
