"""Chapter: several openings of one store (capability `SHARED`). Another opening stands for another
process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from memservice.domain import records as r
from memservice.domain.filters.ast import equals
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, PATIENCE, Chapter, Dataset, together
from memservice.testing.storage.rows import store_examples
from memservice.testing.storage.transactions import _drain, names, note


class SharingChapter(Chapter):
    @pytest.fixture
    def another(self, storage: Storage, open_storage: Callable[[], Storage]) -> Iterator[Storage]:
        """The store of this test, opened once more."""
        if Capability.SHARED not in storage.capabilities:
            pytest.skip(
                f"the storage {storage.name!r} lacks the capability SHARED: it cannot be "
                "opened twice"
            )
        opened = open_storage()
        yield opened
        opened.close()

    def test_stored_rows_are_there_after_reopening(
        self,
        storage: Storage,
        another: Storage,
        dataset: Dataset,
        open_storage: Callable[[], Storage],
    ) -> None:
        examples = storage.write(lambda tx: store_examples(tx, dataset))
        row_by_record = {
            record: storage.write(lambda tx, rows=rows[:1]: tx.rows.put(rows))[0]  # type: ignore[misc]
            for record, rows in examples.items()
        }
        storage.close()
        another.close()
        reopened = open_storage()
        try:
            assert reopened.schema_version() is not None
            with reopened.read() as tx:
                for record, row in row_by_record.items():
                    assert tx.rows.get(record, equals(key=row.key)) == row
        finally:
            reopened.close()

    def test_keys_are_not_reused_after_reopening(
        self, storage: Storage, another: Storage, open_storage: Callable[[], Storage]
    ) -> None:
        last = storage.write(
            lambda tx: tx.rows.put([r.Fact(name=name, value="") for name in "ab"])
        )[-1].key
        another.write(lambda tx: tx.rows.delete(r.Fact, equals(name="b")))
        storage.close()
        another.close()
        reopened = open_storage()
        try:
            assert (
                reopened.write(lambda tx: tx.rows.put([r.Fact(name="c", value="")]))[0].key > last
            )
        finally:
            reopened.close()

    def test_a_commit_is_visible_to_the_other_opening(
        self, storage: Storage, another: Storage
    ) -> None:
        for n in range(5):
            storage.write(note(f"a{n}"))
            assert names(another)[-1] == f"a{n}"
            another.write(note(f"b{n}"))
            assert names(storage)[-1] == f"b{n}"

    def test_a_read_is_consistent_while_the_other_opening_writes(
        self, storage: Storage, another: Storage
    ) -> None:
        storage.write(note("a", "1"))
        with storage.read() as tx:
            assert tx.facts.get("a") == "1"
            another.write(note("a", "2"))
            assert tx.facts.get("a") == "1"

    def test_writers_of_both_openings_take_turns(
        self, storage: Storage, another: Storage, dataset: Dataset
    ) -> None:
        def adding(opened: Storage) -> Callable[[], None]:
            def add() -> None:
                for _ in range(20):
                    opened.write(
                        lambda tx: tx.rows.increase(
                            r.Session, equals(key=dataset.session.key), message_count=1
                        )
                    )

            return add

        together(adding(storage), adding(another), adding(storage), adding(another))
        with storage.read() as tx:
            session = tx.sessions.by_key(dataset.session.key)
        assert session is not None
        assert session.message_count == 80

    def test_one_of_both_openings_gets_the_lease(self, storage: Storage, another: Storage) -> None:
        def claiming(opened: Storage, unit: str, owner: str) -> Callable[[], bool]:
            return lambda: opened.write(lambda tx: tx.tasks.claim(unit, owner, NOW, 60)) is not None

        for n in range(5):
            unit = f"unit {n}"
            assert sorted(together(claiming(storage, unit, "a"), claiming(another, unit, "b"))) == [
                False,
                True,
            ]

    def test_waiting_ends_when_the_other_opening_commits(
        self, storage: Storage, another: Storage
    ) -> None:
        _drain(storage)

        def commit() -> float:
            time.sleep(0.1)
            another.write(note("work"))
            return time.monotonic()

        with ThreadPoolExecutor(1) as pool:
            committing = pool.submit(commit)
            while "work" not in names(storage):
                assert storage.wait_for_work(PATIENCE)
            woken = time.monotonic()
            assert woken - committing.result(PATIENCE) < PATIENCE / 2

    def test_both_openings_may_migrate(self, storage: Storage, another: Storage) -> None:
        storage.write(note("a"))
        together(storage.migrate, another.migrate)
        assert names(another) == ["a"]
