"""Scores, their order, and which vectors have one."""

from __future__ import annotations

import math

import pytest

from memservice.spi.index_filter import IndexFilter
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import Engine
from memservice.testing.vectors.base import (
    WIDE,
    VectorChapter,
    at_angle,
    keys,
    row,
    vector,
)


class ScoresChapter(VectorChapter):
    def test_an_empty_space_answers(self, engine: Engine[VectorIndex]) -> None:
        assert self.query(engine) == []
        assert self.query(engine, ids=[1, 2]) == []
        assert self.count(engine) == 0

    def test_scores_are_cosine_similarities(self, engine: Engine[VectorIndex]) -> None:
        angles = {1: 0, 2: 30, 3: 60, 4: 90, 5: 135, 6: 180}
        self.upsert(engine, [row(key, degrees) for key, degrees in angles.items()])
        hits = self.query(engine)
        assert keys(hits) == [1, 2, 3, 4, 5, 6]
        for hit in hits:
            assert hit.score == pytest.approx(
                math.cos(math.radians(angles[hit.key])), abs=self.tolerance
            )
            assert -1.0 <= hit.score <= 1.0

    def test_lengths_do_not_count(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(
            engine,
            [
                row(1, vector=at_angle(10, 1e-12)),
                row(2, vector=at_angle(20, 1e15)),
                row(3, vector=at_angle(5, 3)),
            ],
        )
        for length in (1e-12, 1.0, 1e15):
            hits = self.query(engine, at_angle(0, length))
            assert keys(hits) == [3, 1, 2]
            assert [hit.score for hit in hits] == pytest.approx(
                [math.cos(math.radians(n)) for n in (5, 10, 20)], abs=self.tolerance
            )

    def test_scores_of_many_dimensions(self, engine: Engine[VectorIndex]) -> None:
        import numpy as np

        chance = np.random.default_rng(11)
        vectors = chance.standard_normal((200, WIDE.dimension)).astype(np.float32)
        query_vector = chance.standard_normal(WIDE.dimension).astype(np.float32)
        self.upsert(engine, [row(n + 1, vector=each) for n, each in enumerate(vectors)], WIDE)
        scores = (
            vectors.astype(np.float64)
            @ query_vector
            / (np.linalg.norm(vectors.astype(np.float64), axis=1) * np.linalg.norm(query_vector))
        )
        best = np.argsort(-scores)[:15]
        hits = self.query(engine, query_vector, 15, of=WIDE)
        assert [hit.score for hit in hits] == pytest.approx(
            [float(scores[n]) for n in best], abs=self.tolerance
        )
        assert set(keys(hits[:10])) <= {int(n) + 1 for n in best}

    def test_ties_are_ordered_by_key(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(key, 25) for key in (9, 4, 30, 1, 17, 12, 3)] + [row(2, 24)])
        assert keys(self.query(engine)) == [2, 1, 3, 4, 9, 12, 17, 30]
        assert keys(self.query(engine, k=4)) == [2, 1, 3, 4]

    @pytest.mark.parametrize("k", [0, 1, 3, 9])
    def test_k_limits_the_hits(self, engine: Engine[VectorIndex], k: int) -> None:
        self.upsert(engine, [row(key, 10 * key) for key in range(1, 6)])
        assert keys(self.query(engine, k=k)) == [1, 2, 3, 4, 5][:k]

    def test_k_counts_matching_rows(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(key, key / 4, session=1 + (key > 280)) for key in range(1, 301)])
        assert keys(self.query(engine, k=10, index_filter=IndexFilter(sessions=(2,)))) == list(
            range(281, 291)
        )

    def test_a_zero_vector_matches_nothing(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(1, vector=vector(0, 0, 0, 0)), row(2, 90)])
        assert keys(self.query(engine)) == [2]
        assert keys(self.query(engine, ids=[1, 2])) == [2]
        assert self.query(engine, vector(0, 0, 0, 0)) == []
        self.upsert(engine, [row(2, vector=vector(0, 0, 0, 0))])
        assert self.query(engine) == []

    @pytest.mark.parametrize("wrong", [3, 5])
    def test_a_wrong_dimension_is_named(self, engine: Engine[VectorIndex], wrong: int) -> None:
        self.upsert(engine, [row(1)])
        with pytest.raises(ValueError, match=rf"(?s)\b{wrong}\b.*\b4\b|\b4\b.*\b{wrong}\b"):
            self.upsert(engine, [row(2), row(3, vector=vector(*range(wrong)))])
        with pytest.raises(ValueError, match=rf"(?s)\b{wrong}\b.*\b4\b|\b4\b.*\b{wrong}\b"):
            self.query(engine, vector(*range(wrong)))
        assert keys(self.query(engine)) == [1]

    @pytest.mark.parametrize("number", [math.nan, math.inf])
    def test_numbers_that_are_not_finite_are_refused(
        self, engine: Engine[VectorIndex], number: float
    ) -> None:
        with pytest.raises(ValueError):
            self.upsert(engine, [row(1, vector=vector(1, number, 0, 0))])
        with pytest.raises(ValueError):
            self.query(engine, vector(1, number, 0, 0))
        assert self.count(engine) == 0
