"""What is the in-memory storage's own, and what `BaseStorage` does for every storage that is built
on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

import memservice_memory
from memservice.domain.errors import Damaged, Unavailable
from memservice.domain.filters.ast import equals
from memservice.domain.records import Fact
from memservice.spi.base import TransientConflict
from memservice.spi.providers import Context
from memservice.spi.storage import Transaction
from memservice.testing.storage.base import elsewhere
from memservice_memory.rows import MemoryRows
from memservice_memory.storage import MemoryStorage


def note(tx: Transaction) -> None:
    tx.facts.set("a", "1")


def count(storage: MemoryStorage) -> int:
    with storage.read() as tx:
        return tx.rows.count(Fact)


def rows_of(tx: Transaction) -> MemoryRows:
    assert isinstance(tx.rows, MemoryRows)
    return tx.rows


def test_memory_can_be_configured_as_storage() -> None:
    (provider,) = memservice_memory.memservice_storages()
    assert (provider.name, provider.schemes, provider.capabilities) == (
        "memory",
        ("memory",),
        frozenset(),
    )
    context = Context(clock=lambda: datetime.now(UTC), logger=logging.getLogger("test"))
    first, second = (provider.open({"uri": "memory://"}, context) for _ in range(2))
    first.write(note)
    with second.read() as tx:
        assert tx.rows.count(Fact) == 0, "each opening is a store of its own"


def test_using_a_closed_storage_is_an_error() -> None:
    storage = MemoryStorage()
    storage.close()
    with pytest.raises(Unavailable):
        storage.check()
    with pytest.raises(Unavailable):
        storage.write(note)
    with pytest.raises(Unavailable), storage.read():
        pass


def test_a_write_that_waits_too_long_for_the_lock_is_refused() -> None:
    storage = MemoryStorage(lock_seconds=0.05)

    def hold(tx: Transaction) -> None:
        with pytest.raises(Unavailable):
            elsewhere(lambda: storage.write(note))
        tx.facts.set("b", "")

    storage.write(hold)
    assert count(storage) == 1


def test_side_stores_commit_and_roll_back_with_the_rows() -> None:
    storage = MemoryStorage()
    storage.write(lambda tx: rows_of(tx).extra("index").update(a=1, b=2))

    def fail(tx: Transaction) -> None:
        rows_of(tx).extra("index").clear()
        rows_of(tx).extra("other")["x"] = 1
        raise ValueError("stop")

    with storage.read() as before:
        with pytest.raises(ValueError, match="stop"):
            storage.write(fail)
        storage.write(lambda tx: rows_of(tx).extra("index").pop("a"))
        assert rows_of(before).extra("index") == {"a": 1, "b": 2}
    with storage.read() as tx:
        assert rows_of(tx).extra("index") == {"b": 2}
        assert rows_of(tx).extra("other") == {}


@pytest.mark.parametrize("rows", [1, 2000])
def test_a_row_is_found_by_its_key_without_a_scan(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage()
    stored = storage.write(
        lambda tx: tx.rows.put([Fact(name=f"{n}", value="") for n in range(rows)])
    )
    looked_at = []

    def matches(row: Fact, condition: object) -> bool:
        looked_at.append(row)
        return True

    monkeypatch.setattr("memservice_memory.rows.matches", matches)
    with storage.read() as tx:
        tx.rows.get(Fact, equals(key=stored[-1].key, value=""))
        tx.rows.get(Fact, equals(value="", name="0"))
        tx.rows.page(Fact, equals(key=(stored[0].key, 10**9)))
    assert looked_at == [stored[-1], stored[0], stored[0]]


class Conflicting(MemoryStorage):
    """Its first `conflicts` transactions lose at the commit."""

    conflicts = 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        before = self._snapshot
        with super().transaction() as tx:
            yield tx
        if self.conflicts:
            self.conflicts -= 1
            self._snapshot = before
            raise TransientConflict("lost")


def test_a_conflicting_write_runs_again() -> None:
    storage, runs = Conflicting(), []
    storage.conflicts = 2

    def work(tx: Transaction) -> int:
        runs.append(tx.rows.count(Fact))
        note(tx)
        return len(runs)

    assert storage.write(work) == 3
    assert runs == [0, 0, 0]
    assert count(storage) == 1


def test_a_write_with_endless_conflicts_fails() -> None:
    storage = Conflicting()
    storage.conflicts, storage.attempts = 100, 3
    with pytest.raises(Unavailable) as caught:
        storage.write(note)
    assert isinstance(caught.value.__cause__, TransientConflict)
    assert storage.conflicts == 97
    storage.conflicts = 0
    storage.write(note)
    assert count(storage) == 1


class Refusing(MemoryStorage):
    """Takes no writes while `error` is set."""

    error: Exception | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        if self.error is not None:
            raise self.error
        with super().transaction() as tx:
            yield tx


def test_a_store_is_probed_after_a_failed_write_until_one_succeeds() -> None:
    storage = Refusing()
    storage.write(note)
    storage.error = Unavailable("it is full")
    assert storage.examine() == [], "a write succeeded a moment ago"
    with pytest.raises(Unavailable):
        storage.write(note)
    for _ in range(2):
        (finding,) = storage.examine()
        assert (finding.state, finding.found) == ("failed", "writes fail: it is full")
    storage.error = None
    assert storage.examine() == [], "it is tried, though nobody writes"


def test_a_store_without_recent_writes_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Refusing()
    storage.error = Unavailable("it is full")
    assert [finding.state for finding in storage.examine()] == ["failed"]
    storage.error = None
    storage.write(note)
    storage.error = Unavailable("it is full")
    monkeypatch.setattr("memservice.spi.base.PROBE_INTERVAL_SECONDS", 0)
    assert [finding.state for finding in storage.examine()] == ["failed"]


def test_damage_is_reported_after_later_successful_writes() -> None:
    storage = Refusing()
    storage.error = Damaged("a page is no page")
    assert [finding.found for finding in storage.examine()] == ["a page is no page"]
    storage.error = None
    storage.write(note)
    assert [finding.found for finding in storage.examine()] == ["a page is no page"]


def test_a_storage_is_polled_for_changes_of_other_processes() -> None:
    class Polled(MemoryStorage):
        poll_seconds = 0.01
        polls = 0

        def changed_elsewhere(self) -> bool:
            self.polls += 1
            return self.polls == 3

    storage = Polled()
    began = time.monotonic()
    assert storage.wait_for_work(30)
    assert storage.polls == 3
    assert not storage.wait_for_work(0.03)
    assert time.monotonic() - began < 20
