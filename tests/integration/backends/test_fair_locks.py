"""The order in which threads get a lock, and the transactions of a process the lock of a row of
PostgreSQL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

import pytest

from memservice.domain.filters.ast import equals
from memservice.domain.records import Workspace
from memservice.spi.fair_locks import FairLocks
from memservice.spi.storage import Transaction
from memservice.spi.waiting import on_wait
from memservice.testing.storage.base import populate
from memservice_sql import row_turns
from memservice_sql.row_turns import Turn
from support.processes.processes import eventually
from support.stores import postgres_store

SECONDS = 30.0


def started(target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def queued(locks: FairLocks) -> int:
    return sum(len(queue.waiting) for queue in locks._queues.values())


def wait_for_queue(locks: FairLocks, length: int) -> None:
    eventually(lambda: queued(locks) == length)


def test_turns_are_given_in_the_order_of_arrival() -> None:
    locks = FairLocks()
    order: list[int] = []

    def write(number: int) -> None:
        with Turn(locks) as turn:
            turn.wait("row")
            order.append(number)

    threads = []
    with Turn(locks) as turn:
        turn.wait("row")
        for number in range(8):
            threads.append(started(partial(write, number)))
            wait_for_queue(locks, number + 1)
        assert order == []
    for thread in threads:
        thread.join(SECONDS)
    assert order == list(range(8))
    assert locks._queues == {}, "nothing is left of rows that nobody locks"


def test_a_lock_with_several_holders_is_given_in_the_order_of_arrival() -> None:
    locks = FairLocks(holders=2)
    assert locks.acquire("name", 0)
    assert locks.acquire("name", 0)
    order: list[int] = []

    def hold(number: int) -> None:
        with locks.hold("name", SECONDS):
            order.append(number)

    threads = []
    for number in range(4):
        threads.append(started(partial(hold, number)))
        wait_for_queue(locks, number + 1)
    assert locks.acquire("another name", 0)
    locks.release("another name")
    assert order == []
    locks.release("name")
    for thread in threads:
        thread.join(SECONDS)
    assert order == [0, 1, 2, 3], "one after the other: the second holder still has it"
    assert locks._queues["name"].holders == 1
    locks.release("name")
    assert locks._queues == {}


def test_after_some_time_a_thread_goes_on_without_the_lock() -> None:
    locks = FairLocks()
    with locks.hold("name", SECONDS), pytest.raises(RuntimeError), locks.hold("name", 0.05):
        assert locks._queues["name"].holders == 1
        raise RuntimeError
    assert locks._queues == {}


def test_other_rows_and_further_rows_do_not_wait() -> None:
    locks = FairLocks()
    with Turn(locks) as first, Turn(locks) as second:
        first.wait("row")
        second.wait("another row")
        second.wait("row")  # a second one is left to the database
        assert locks._queues.keys() == {"row", "another row"}
    assert locks._queues == {}


def test_after_some_time_the_database_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_turns, "ROW_SECONDS", 0.05)
    locks = FairLocks()
    with Turn(locks) as first:
        first.wait("row")
        with Turn(locks) as second:
            second.wait("row")
        assert locks._queues.keys() == {"row"}, "it is still the turn of the first one"
        assert queued(locks) == 0
    assert locks._queues == {}


def test_a_turn_ends_with_a_transaction_that_fails() -> None:
    locks = FairLocks()
    with pytest.raises(RuntimeError), Turn(locks) as turn:
        turn.wait("row")
        raise RuntimeError
    assert locks._queues == {}


def test_a_thread_says_that_it_waits_for_its_turn_and_only_then() -> None:
    locks = FairLocks()
    reported = threading.Event()

    def write() -> None:
        on_wait(reported.set)
        with Turn(locks) as turn:
            turn.wait("row")

    started(write).join(SECONDS)
    assert not reported.is_set()
    with Turn(locks) as turn:
        turn.wait("row")
        waiting = started(write)
        assert reported.wait(SECONDS)
    waiting.join(SECONDS)


def test_a_child_has_turns_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    locks = FairLocks()
    Turn(locks).wait("row")  # by a thread that the child does not have
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with Turn(locks) as of_child:
        of_child.wait("row")
        assert of_child._row == "row"


def test_writers_of_a_row_commit_in_the_order_of_arrival() -> None:
    storage = postgres_store.opened(postgres_store.new_store())
    workspace = storage.write(lambda tx: populate(tx, "w")).workspace
    locks: FairLocks = storage._dialect._row_locks  # type: ignore[attr-defined]
    order: list[int] = []
    has_lock, may_end = threading.Event(), threading.Event()

    def lock(tx: Transaction) -> None:
        assert tx.rows.get(Workspace, equals(uid=workspace.uid), lock=True) is not None

    def first(tx: Transaction) -> None:
        lock(tx)
        has_lock.set()
        assert may_end.wait(SECONDS)

    def write(number: int) -> None:
        def lock_and_note(tx: Transaction) -> None:
            lock(tx)
            order.append(number)

        storage.write(lock_and_note)

    threads = [started(lambda: storage.write(first))]
    assert has_lock.wait(SECONDS)
    for number in range(5):
        threads.append(started(partial(write, number)))
        wait_for_queue(locks, number + 1)
    may_end.set()
    for thread in threads:
        thread.join(SECONDS)
    storage.close()
    assert order == list(range(5))
    assert locks._queues == {}
