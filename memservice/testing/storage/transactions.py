"""Chapter: transactions between the threads of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import TRUE, equals
from memservice.spi.rows import ReadOnly
from memservice.spi.storage import Storage, Transaction
from memservice.testing.storage.base import PATIENCE, Chapter, Dataset, elsewhere, together


def note(name: str, value: str = "") -> Callable[[Transaction], None]:
    """A write of one fact."""
    return lambda tx: tx.facts.set(name, value)


def names(storage: Storage) -> list[str]:
    with storage.read() as tx:
        return [fact.name for fact in tx.rows.page(r.Fact)]


class TransactionsChapter(Chapter):
    def test_a_new_store_is_ready_and_empty(self, storage: Storage) -> None:
        storage.check()
        assert storage.schema_version() is not None
        assert storage.name == storage.name.strip().lower() != ""
        assert names(storage) == []

    def test_migrating_again_changes_nothing(self, storage: Storage) -> None:
        storage.write(note("a"))
        version = storage.schema_version()
        storage.migrate()
        assert storage.schema_version() == version
        assert names(storage) == ["a"]

    def test_a_healthy_store_has_no_findings(self, storage: Storage) -> None:
        assert list(storage.examine()) == []
        storage.write(note("a"))
        with pytest.raises(ValueError, match="stop"):
            storage.write(lambda tx: _fail(tx))
        assert list(storage.examine()) == [], (
            "an error of the function inside a write is not a problem of the store"
        )
        assert list(storage.examine(thorough=True)) == []

    def test_reclaiming_ends_and_changes_nothing(self, storage: Storage, dataset: Dataset) -> None:
        storage.write(note("a"))
        storage.write(lambda tx: tx.rows.delete(r.Member, TRUE))
        steps = 0
        while storage.reclaim():
            steps += 1
            assert steps < 1_000
        while storage.reclaim(erasure=True):
            steps += 1
            assert steps < 2_000
        storage.reclaim(thorough=True)
        assert not storage.reclaim()
        assert "a" in names(storage)
        with storage.read() as tx:
            assert tx.sessions.by_key(dataset.session.key) == dataset.session

    def test_closing_twice(self, open_storage: Callable[[], Storage]) -> None:
        opened = open_storage()
        opened.close()
        opened.close()

    def test_a_write_returns_what_its_function_returned(self, storage: Storage) -> None:
        thing = object()
        assert storage.write(lambda tx: thing) is thing

    def test_every_commit_is_stored(self, storage: Storage) -> None:
        """The next read returns an acknowledged write, in this thread and in every other."""
        for n in range(25):
            storage.write(note(f"{n}"))
            assert names(storage) == [f"{number}" for number in range(n + 1)]
        assert elsewhere(lambda: names(storage)) == [f"{n}" for n in range(25)]

    def test_a_write_sees_its_own_changes(self, storage: Storage) -> None:
        def work(tx: Transaction) -> list[str]:
            tx.rows.put([r.Fact(name="a", value="1"), r.Fact(name="b", value="1")])
            tx.rows.change(r.Fact, equals(name="a"), value="2")
            tx.rows.delete(r.Fact, equals(name="b"))
            return [f"{fact.name}={fact.value}" for fact in tx.rows.page(r.Fact)]

        assert storage.write(work) == ["a=2"]

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_a_write_that_raises_stores_nothing(
        self, storage: Storage, dataset: Dataset, error: type[BaseException]
    ) -> None:
        storage.write(note("kept", "1"))

        def fail(tx: Transaction) -> None:
            tx.facts.set("kept", "2")
            tx.facts.set("new", "")
            tx.rows.increase(r.Session, TRUE, message_count=1)
            tx.rows.delete(r.Member, TRUE)
            tx.messages.append([dataset.message(1)])
            raise error("stop")

        with pytest.raises(error, match="stop"):
            storage.write(fail)
        with storage.read() as tx:
            assert [(fact.name, fact.value) for fact in tx.rows.page(r.Fact)] == [("kept", "1")]
            assert tx.sessions.by_key(dataset.session.key) == dataset.session
            assert len(tx.members.of_session(dataset.session.key)) == 2
            assert tx.messages.count(dataset.session.key) == 0
        storage.write(note("after"))
        assert names(storage) == ["kept", "after"]

    def test_nothing_is_visible_before_the_commit(self, storage: Storage) -> None:
        def work(tx: Transaction) -> list[str]:
            tx.facts.set("a", "")
            return elsewhere(lambda: names(storage))

        assert storage.write(work) == []
        assert names(storage) == ["a"]

    def test_a_read_is_consistent(self, storage: Storage, dataset: Dataset) -> None:
        """Even while another thread writes, and for tables that the transaction has not read
        before."""
        storage.write(note("a", "1"))

        def change(tx: Transaction) -> None:
            tx.facts.set("a", "2")
            tx.facts.set("b", "")
            tx.rows.delete(r.Member, TRUE)

        with storage.read() as tx:
            assert tx.facts.get("a") == "1"
            elsewhere(lambda: storage.write(change))
            assert tx.facts.get("a") == "1"
            assert tx.rows.count(r.Fact) == 1
            assert len(tx.members.of_session(dataset.session.key)) == 2
        with storage.read() as tx:
            assert tx.facts.get("a") == "2"
            assert tx.rows.count(r.Fact) == 2
            assert tx.members.of_session(dataset.session.key) == []

    def test_readers_never_see_a_partial_write(self, storage: Storage) -> None:
        storage.write(lambda tx: tx.rows.put([r.Fact(name=name, value="0") for name in "abc"]))
        stop = threading.Event()

        def read() -> list[set[str]]:
            reads = []
            while not stop.is_set():
                with storage.read() as tx:
                    reads.append(
                        {
                            fact.value
                            for name in "abc"
                            if (fact := tx.rows.get(r.Fact, equals(name=name))) is not None
                        }
                    )
            return reads

        with ThreadPoolExecutor(2) as pool:
            reading = [pool.submit(read) for _ in range(2)]
            try:
                for n in range(1, 40):
                    value = str(n)
                    storage.write(
                        lambda tx, value=value: [tx.facts.set(name, value) for name in "abc"]  # type: ignore[misc]
                    )
            finally:
                stop.set()
            reads = [values for future in reading for values in future.result(PATIENCE)]
        assert reads
        assert all(len(values) == 1 for values in reads)

    def test_a_write_inside_a_write_is_an_error(self, storage: Storage) -> None:
        def outer(tx: Transaction) -> None:
            tx.facts.set("outer", "")
            storage.write(note("inner"))

        with pytest.raises(RuntimeError):
            storage.write(outer)
        storage.write(note("after"))
        assert names(storage) == ["after"]

    def test_a_read_refuses_to_write(self, storage: Storage, dataset: Dataset) -> None:
        attempts: tuple[Callable[[Transaction], Any], ...] = (
            lambda tx: tx.rows.put([r.Fact(name="a", value="")]),
            lambda tx: tx.rows.change(r.Peer, TRUE, v1_role="assistant"),
            lambda tx: tx.rows.increase(r.Session, TRUE, message_count=1),
            lambda tx: tx.rows.delete(r.Member, TRUE),
            lambda tx: tx.facts.set("a", ""),
            lambda tx: tx.tasks.claim("unit", "me", dataset.session.created_at, 1),
        )
        for attempt in attempts:
            with storage.read() as tx:
                with pytest.raises(ReadOnly):
                    attempt(tx)
        with storage.read() as tx:
            assert tx.rows.count(r.Fact) == tx.rows.count(r.Lease) == 0
            assert tx.sessions.by_key(dataset.session.key) == dataset.session
            assert tx.rows.count(r.Member) == 2

    def test_a_read_of_what_is_committed(self, storage: Storage, dataset: Dataset) -> None:
        """It may see commits made meanwhile, and nothing that is not committed; it refuses to
        write."""
        storage.write(note("a"))

        def write(tx: Transaction) -> None:
            tx.facts.set("b", "")
            elsewhere(read_elsewhere)

        def read_elsewhere() -> None:
            with storage.read_committed() as tx:
                assert [fact.name for fact in tx.rows.page(r.Fact)] == ["a"]

        storage.write(write)
        with storage.read_committed() as tx:
            assert [fact.name for fact in tx.rows.page(r.Fact)] == ["a", "b"]
            with pytest.raises(ReadOnly):
                tx.facts.set("c", "")
        assert names(storage) == ["a", "b"]

    def test_reading_inside_a_read(self, storage: Storage) -> None:
        storage.write(note("a"))
        with storage.read() as outer, storage.read() as inner:
            assert outer.rows.page(r.Fact) == inner.rows.page(r.Fact)

    def test_a_released_read_lets_others_write_and_continues(self, storage: Storage) -> None:
        storage.write(note("a", "1"))
        with storage.read() as tx:
            assert tx.facts.get("a") == "1"
            with tx.released():
                elsewhere(lambda: storage.write(note("a", "2")))
            assert tx.facts.get("a") in ("1", "2"), "of the first moment or of a later one"
            with tx.released():
                pass
            assert tx.facts.get("b") is None
            with pytest.raises(ReadOnly):
                tx.facts.set("b", "")
        with storage.read() as tx:
            assert tx.facts.get("a") == "2"

    def test_increase_loses_nothing_among_threads(self, storage: Storage, dataset: Dataset) -> None:
        def add() -> None:
            for _ in range(25):
                storage.write(
                    lambda tx: tx.rows.increase(
                        r.Session, equals(key=dataset.session.key), message_count=1, token_total=10
                    )
                )

        together(*[add] * 4)
        with storage.read() as tx:
            assert tx.sessions.by_key(dataset.session.key) == replace(
                dataset.session, message_count=100, token_total=1000
            )

    def test_a_locked_row_can_be_read_and_replaced_safely(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        def next_message(tx: Transaction) -> int:
            session = tx.sessions.by_key(dataset.session.key, lock=True)
            assert session is not None
            seq = session.message_count + 1
            tx.messages.append([dataset.message(seq)])
            tx.sessions.save(replace(session, message_count=seq))
            return seq

        def say() -> list[int]:
            return [storage.write(next_message) for _ in range(10)]

        assert sorted(seq for positions in together(*[say] * 4) for seq in positions) == list(
            range(1, 41)
        )
        with storage.read() as tx:
            assert [m.seq for m in tx.messages.run(dataset.session.key, 1, 100)] == list(
                range(1, 41)
            )

    def test_of_many_threads_one_wins_compare_and_set(self, storage: Storage) -> None:
        for n in range(5):
            name = f"prize {n}"
            storage.write(note(name, "free"))
            takers = [
                lambda name=name, taker=taker: storage.write(
                    lambda tx: tx.rows.change(
                        r.Fact, equals(name=name, value="free"), value=str(taker)
                    )
                )
                for taker in range(6)
            ]
            won = together(*takers)
            assert sorted(won) == [0] * 5 + [1]
            with storage.read() as tx:
                assert tx.facts.get(name) == str(won.index(1))

    def test_waiting_ends_when_another_thread_commits(self, storage: Storage) -> None:
        storage.write(note("before"))
        _drain(storage)

        def commit() -> float:
            time.sleep(0.1)
            storage.write(note("work"))
            return time.monotonic()

        with ThreadPoolExecutor(1) as pool:
            committing = pool.submit(commit)
            while "work" not in names(storage):
                assert storage.wait_for_work(PATIENCE)
            woken = time.monotonic()
            assert woken - committing.result(PATIENCE) < PATIENCE / 2

    def test_no_commit_is_missed_between_two_waits(self, storage: Storage) -> None:
        _drain(storage)
        elsewhere(lambda: storage.write(note("work")))
        began = time.monotonic()
        assert storage.wait_for_work(PATIENCE)
        assert time.monotonic() - began < PATIENCE / 2

    def test_waiting_without_commits_ends_in_time(self, storage: Storage) -> None:
        began = time.monotonic()
        _drain(storage)
        assert time.monotonic() - began < PATIENCE

    def test_several_threads_may_wait_at_once(self, storage: Storage) -> None:
        def wait() -> bool:
            while not names(storage):
                if not storage.wait_for_work(PATIENCE):
                    return False
            return True

        def commit() -> bool:
            time.sleep(0.1)
            storage.write(note("work"))
            return True

        assert together(wait, wait, wait, commit) == [True] * 4


def _fail(tx: Transaction) -> None:
    tx.facts.set("b", "")
    raise ValueError("stop")


def _drain(storage: Storage) -> None:
    """Wait until no commit is reported. A storage may report commits that did not happen, but not
    endlessly."""
    for _ in range(20):
        if not storage.wait_for_work(0.1):
            return
    raise AssertionError("wait_for_work keeps returning True on an idle store")
