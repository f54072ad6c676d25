"""The rows of a space, apart from those of others."""

from __future__ import annotations

import math

import pytest

from memservice.domain.records import Space
from memservice.spi.index_filter import IndexFilter
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import Engine
from memservice.testing.vectors.base import (
    NAMED,
    OURS,
    THEIRS,
    WIDE,
    VectorChapter,
    at_angle,
    keys,
    row,
    vector,
)


class SpacesChapter(VectorChapter):
    def test_vectors_are_fetched_by_key(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(
            engine,
            [row(1, 30, session=1), row(2, 120, session=2), row(3, vector=vector(0, 0, 2, 0))],
        )
        self.upsert(engine, [row(2, 60)], THEIRS)
        vectors = engine.read(lambda tx: engine.index.fetch(tx, OURS, [3, 2, 99, 2]))
        assert sorted(vectors) == [2, 3]
        for key, expected in ((2, at_angle(120)), (3, vector(0, 0, 1, 0))):
            length = math.sqrt(float((vectors[key] * vectors[key]).sum()))
            assert vectors[key].dtype == expected.dtype
            assert list(vectors[key] / length) == pytest.approx(list(expected), abs=self.tolerance)
        assert engine.read(lambda tx: engine.index.fetch(tx, OURS, [])) == {}
        self.delete(engine, [2])
        assert sorted(engine.read(lambda tx: engine.index.fetch(tx, OURS, [1, 2]))) == [1]

    def test_keys_are_listed_in_batches(self, engine: Engine[VectorIndex]) -> None:
        def index_keys(after: int = 0, limit: int = 100, of: Space = OURS) -> list[int]:
            return engine.read(lambda tx: engine.index.keys(tx, of, after, limit))

        assert index_keys() == []
        self.upsert(engine, [row(key, key, session=1) for key in (9, 100, 1, 20, 3)])
        self.upsert(engine, [row(2, 60)], THEIRS)
        assert index_keys() == [1, 3, 9, 20, 100], "as numbers, not as text"
        assert (index_keys(limit=2), index_keys(3, 2), index_keys(20), index_keys(100)) == (
            [1, 3],
            [9, 20],
            [100],
            [],
        )
        assert (index_keys(4, 1), index_keys(limit=0)) == ([9], [])
        self.upsert(engine, [row(3, 50), row(9, vector=vector(0, 0, 0, 0))])
        self.delete(engine, [1])
        assert index_keys() == [3, 20, 100]
        assert index_keys(of=THEIRS) == [2]
        engine.write(lambda tx: engine.index.drop(tx, OURS))
        assert index_keys() == []

    def test_spaces_are_separate(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(1, 30, session=1), row(2, 40)])
        before = self.query(engine)
        self.upsert(engine, [row(n, 0, session=1) for n in range(1, 50)], THEIRS)
        self.upsert(engine, [row(1, vector=vector(*[1.0] * WIDE.dimension))], WIDE)
        assert self.query(engine) == before
        assert keys(self.query(engine, index_filter=IndexFilter(sessions=(1,)))) == [1]
        assert keys(self.query(engine, ids=[1, 30])) == [1]
        self.delete(engine, [1], THEIRS)
        assert self.query(engine) == before
        assert (self.count(engine), self.count(engine, THEIRS), self.count(engine, WIDE)) == (
            2,
            48,
            1,
        )

    def test_spaces_of_embedders_with_similar_names_are_separate(
        self, engine: Engine[VectorIndex]
    ) -> None:
        for n, named in enumerate(NAMED):
            self.upsert(engine, [row(1, n)], named)
        for n, named in enumerate(NAMED):
            assert [hit.score for hit in self.query(engine, of=named)] == pytest.approx(
                [math.cos(math.radians(n))], abs=self.tolerance
            )
        engine.write(lambda tx: engine.index.drop(tx, NAMED[0]))
        assert [self.count(engine, named) for named in NAMED] == [0, *[1] * (len(NAMED) - 1)]

    def test_drop_removes_one_space(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(n, n, observer=n, observed=1) for n in range(1, 6)])
        self.upsert(engine, [row(1)], THEIRS)
        assert len(self.query(engine)) == 5
        engine.write(lambda tx: engine.index.drop(tx, OURS))
        assert self.query(engine) == []
        assert self.query(engine, ids=[1, 2]) == []
        assert (self.count(engine), self.count(engine, THEIRS)) == (0, 1)
        self.upsert(engine, [row(3, 60)])
        assert keys(self.query(engine)) == [3]
        engine.write(lambda tx: engine.index.drop(tx, WIDE))
