"""Blocks of vectors in memory: whatever their layout, they answer exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memservice_sql.vector_blocks import Block, GrowingBlock, Nearest

DIMENSION, ROWS = 24, 300


def vectors(density: float, rows: int, seed: int) -> Any:
    chance = np.random.default_rng(seed)
    drawn = chance.standard_normal((rows, DIMENSION)).astype(np.float32)
    drawn[chance.random(drawn.shape) >= density] = 0
    drawn[:, 0] += 0.01  # none is zero
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.mark.parametrize("query_density", [0.1, 1.0])
@pytest.mark.parametrize(("density", "layout"), [(0.1, "C"), (1.0, "F")])
@pytest.mark.parametrize("share", [1, 2, 50])
def test_the_nearest_are_exact_in_both_layouts(
    density: float, layout: str, query_density: float, share: int
) -> None:
    stored = vectors(density, ROWS, 1)
    block = GrowingBlock(DIMENSION, 2)
    for start in (0, 7, 107):
        end = {0: 7, 7: 107, 107: ROWS}[start]
        facts = np.stack([np.arange(start, end)] * 2, axis=1)
        block.append(Block(facts, stored[start:end].T))
    is_whole = block.block().matrix.strides[0] == 4
    assert is_whole == (layout == "F")
    mask = np.arange(ROWS) % share == 0
    for query in vectors(query_density, 10, 2):
        nearest = Nearest(query, 5)
        nearest.add(block.block(), mask)
        scores = np.where(mask, (stored.astype(np.float64) * query).sum(axis=1), -2.0)
        assert [hit.key for hit in nearest.hits()] == np.argsort(-scores, kind="stable")[
            :5
        ].tolist()
        assert [hit.score for hit in nearest.hits()] == pytest.approx(np.sort(scores)[::-1][:5])


def test_equal_vectors_have_equal_scores_in_one_piece() -> None:
    """Wherever they are, so that ties go to the lower key."""
    one = vectors(1.0, 1, 3)
    block = GrowingBlock(DIMENSION, 2)
    block.append(Block(np.stack([np.arange(101)] * 2, axis=1), np.repeat(one, 101, axis=0).T))
    nearest = Nearest(vectors(1.0, 1, 4)[0], 3)
    nearest.add(block.block(), np.ones(101, np.bool_))
    assert [hit.key for hit in nearest.hits()] == [0, 1, 2]
    assert len({hit.score for hit in nearest.hits()}) == 1
