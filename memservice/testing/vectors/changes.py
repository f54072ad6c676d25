"""Changes of rows, and whether they last."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import NOON, Engine, RolledBack
from memservice.testing.storage.base import together
from memservice.testing.vectors.base import (
    OURS,
    ROUNDS,
    WRITERS,
    OpenVectorIndex,
    VectorChapter,
    at_angle,
    keys,
    row,
)


class ChangesChapter(VectorChapter):
    def test_upsert_replaces(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(1, 10, session=1, observer=1, observed=1), row(2, 20)])
        assert keys(self.query(engine)) == [1, 2]
        self.upsert(engine, [row(1, 60, session=2, observer=2, observed=2)])
        hits = self.query(engine)
        assert keys(hits) == [2, 1]
        assert hits[1].score == pytest.approx(0.5, abs=self.tolerance)
        assert self.query(engine, index_filter=IndexFilter(sessions=(1,))) == []
        assert self.query(engine, index_filter=IndexFilter(observers=(1,), observed=(1,))) == []
        assert keys(
            self.query(engine, index_filter=IndexFilter(observers=(2,), observed=(2,)))
        ) == [1]
        assert self.count(engine) == 2

    def test_the_last_of_two_versions_of_a_row_counts(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(1, 0), row(1, 60)])
        hits = self.query(engine)
        assert keys(hits) == [1]
        assert hits[0].score == pytest.approx(0.5, abs=self.tolerance)

    def test_delete_one_many_and_unknown(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(n, n) for n in range(1, 8)])
        assert len(self.query(engine)) == 7
        self.delete(engine, [3])
        assert keys(self.query(engine)) == [1, 2, 4, 5, 6, 7]
        self.delete(engine, [1, 5, 99, 7])
        assert keys(self.query(engine)) == [2, 4, 6]
        self.delete(engine, [99, 3])
        self.delete(engine, [])
        self.upsert(engine, [])
        assert keys(self.query(engine)) == [2, 4, 6]
        assert keys(self.query(engine, ids=[1, 2, 3])) == [2]
        assert self.count(engine) == 3

    def test_a_deleted_row_may_return(self, engine: Engine[VectorIndex]) -> None:
        for degrees in (0, 60):
            self.upsert(engine, [row(1, degrees)])
            assert self.query(engine)[0].score == pytest.approx(
                math.cos(math.radians(degrees)), abs=self.tolerance
            )
            self.delete(engine, [1])
            assert self.query(engine) == []

    def test_simultaneous_upserts_lose_nothing(self, engine: Engine[VectorIndex]) -> None:
        """Writers that begin together in an empty space, each with its own rows and one common
        row."""

        def writing(writer: int) -> Callable[[], None]:
            def write() -> None:
                for n in range(ROUNDS):
                    key = 1 + n * WRITERS + writer
                    self.upsert(
                        engine, [row(key, key, session=writer), row(1_000, 60, session=writer)]
                    )

            return write

        together(*(writing(writer) for writer in range(WRITERS)))
        total = WRITERS * ROUNDS
        index_keys = engine.read(lambda tx: engine.index.keys(tx, OURS))
        assert index_keys == [*range(1, total + 1), 1_000]
        assert self.count(engine) == total + 1
        assert sorted(keys(self.query(engine))) == index_keys
        for writer in range(WRITERS):
            found_keys = set(keys(self.query(engine, index_filter=IndexFilter(sessions=(writer,)))))
            assert found_keys - {1_000} == set(range(1 + writer, total + 1, WRITERS))

    def test_stored_vectors_are_there_after_reopening(
        self, engine: Engine[VectorIndex], open_index: OpenVectorIndex
    ) -> None:
        self.upsert(engine, [row(1, 10), row(2, 20, session=5, level="explicit", at=NOON)])
        self.delete(engine, [1])
        again = self.again(engine, open_index)
        assert keys(
            self.query(
                again,
                index_filter=IndexFilter(
                    sessions=(5,), levels=("explicit",), since=NOON, until=NOON
                ),
            )
        ) == [2]
        assert self.count(again) == 1

    def test_another_opening_sees_changes(
        self, engine: Engine[VectorIndex], open_index: OpenVectorIndex
    ) -> None:
        other = self.again(engine, open_index)
        for n in range(1, 6):
            self.upsert(engine if n % 2 else other, [row(n, n)])
            assert keys(self.query(engine)) == keys(self.query(other)) == list(range(1, n + 1))
        self.delete(other, [2, 3])
        assert keys(self.query(engine)) == [1, 4, 5]

    def test_a_write_that_fails_leaves_nothing(self, engine: Engine[VectorIndex]) -> None:
        if engine.storage is None:
            pytest.skip("this index has no transactions")
        self.upsert(engine, [row(1, 10), row(2, 20)])
        before = self.query(engine)

        def fail(tx: Any) -> None:
            engine.index.upsert(tx, OURS, [row(3, 5), row(2, 50)])
            engine.index.delete(tx, OURS, [1])
            assert keys(engine.index.query(tx, OURS, at_angle(0), 9, EVERYTHING)) == [3, 2], (
                "a transaction sees its own writes"
            )
            assert engine.index.count(tx, OURS) == 2
            raise RolledBack

        with pytest.raises(RolledBack):
            engine.write(fail)
        assert self.query(engine) == before
        self.upsert(engine, [row(4, 30)])
        assert keys(self.query(engine)) == [1, 2, 4]
