"""Signatures of large vectors name the candidates, whatever the vectors look like."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from memservice_sql import signatures, vector_blocks
from memservice_sql.signatures import (
    GrowingSignatures,
    Signatures,
    compared_for,
    estimates_for,
    words_of,
)
from memservice_sql.vector_blocks import Block, GrowingBlock, Nearest

DIMENSION = 1_000  # not a multiple of 64
ROWS = 6_000
HEAVY = pytest.mark.heavy


@cache
def vectors(rows: int, seed: int, shared: float = 0.0) -> Any:
    """Unit vectors in fifty heaps; `shared`: the length of what all have in common."""
    heaps = np.random.default_rng(1).standard_normal((50, DIMENSION))
    chance = np.random.default_rng(seed)
    drawn = heaps[np.arange(rows) % 50] + chance.standard_normal((rows, DIMENSION))
    drawn += shared * np.random.default_rng(2).standard_normal(DIMENSION)
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def filled(stored: Any, step: int = ROWS) -> GrowingBlock:
    block = GrowingBlock(DIMENSION, 2)
    for start in range(0, len(stored), step):
        part = stored[start : start + step]
        facts = np.stack([np.arange(start, start + len(part))] * 2, axis=1)
        block.append(Block(facts, part.T))
    return block


@pytest.mark.parametrize(
    ("step", "shared", "share"),
    [
        pytest.param(
            step,
            shared,
            share,
            # By default, each of the three in two tests.
            marks=() if (step, shared, share) in ((ROWS, 0.0, 1), (700, 3.0, 2)) else HEAVY,
            id=f"{step}-{shared}-{share}",
        )
        for step in (ROWS, 700)
        for shared in (0.0, 3.0)
        for share in (1, 2)
    ],
)
def test_the_nearest_are_among_the_candidates(step: int, shared: float, share: int) -> None:
    stored = vectors(ROWS, 3, shared)
    block = filled(stored, step).block()
    mask = np.arange(ROWS) // 50 % share == 0
    hits_found = 0
    for query in vectors(20, 4, shared):
        nearest = Nearest(query, 10)
        nearest.add(block, mask)
        scores = np.where(mask, (stored.astype(np.float64) * query).sum(axis=1), -2.0)
        best = np.argsort(-scores, kind="stable")[:10]
        hits_found += len({hit.key for hit in nearest.hits()} & set(best.tolist()))
        assert [hit.score for hit in nearest.hits()] == pytest.approx(
            [scores[hit.key] for hit in nearest.hits()], abs=1e-6
        )
    assert hits_found >= 198, "of 200"


def test_few_vectors_and_many_hits_are_compared_without_signatures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = vectors(ROWS, 3)
    assert filled(stored[:1_999]).block().signatures is None
    assert filled(stored[:2_000]).block().signatures is not None
    block = filled(stored).block()
    monkeypatch.setattr(
        Signatures, "candidates", lambda *arguments: pytest.fail("signatures were compared")
    )
    nearest = Nearest(stored[7], 400)
    nearest.add(block, np.ones(ROWS, np.bool_))
    scores = (stored.astype(np.float64) * stored[7]).sum(axis=1)
    assert [hit.key for hit in nearest.hits()] == np.argsort(-scores, kind="stable")[:400].tolist()


def test_small_and_sparse_vectors_have_no_signatures() -> None:
    sparse = vectors(2_000, 3) * (np.arange(DIMENSION) % 4 == 0)
    assert filled(sparse).block().signatures is None
    facts = np.zeros((2_000, 2), np.int64)
    small = GrowingBlock(DIMENSION - 1, 2)
    small.append(Block(facts, vectors(2_000, 3)[:, 1:].T))
    assert small.block().signatures is None


def test_a_signature_has_a_bit_for_each_dimension() -> None:
    stored = vectors(3, 5)
    centre = stored.mean(axis=0)
    bits = np.unpackbits(words_of(stored.T, centre).T.copy().view(np.uint8), axis=1)
    assert (bits[:, :DIMENSION] == (stored > centre)).all()
    assert not bits[:, DIMENSION:].any()


def test_candidates_differ_least_and_ties_are_all_there() -> None:
    stored = vectors(300, 6)
    growing = GrowingSignatures(np.zeros(DIMENSION, np.float32))
    growing.append(stored.T)
    growing.append(stored.T)
    query = stored[11]
    differing = ((stored > 0) != (query > 0)).sum(axis=1)
    nearest = np.argsort(differing, kind="stable")[:5]
    index = np.arange(600)
    candidates = growing.signatures().candidates(query, 9, index)
    assert candidates.tolist() == sorted([*nearest.tolist(), *(nearest + 300).tolist()])
    odd = growing.signatures().candidates(query, 300, index[1::2])
    assert odd.tolist() == index[1::2].tolist()


@pytest.mark.parametrize("shared", [0.0, 3.0])
def test_estimates_choose_the_nearest_of_the_candidates(shared: float) -> None:
    stored = vectors(ROWS, 3, shared)
    centre = stored[:2_000].mean(axis=0)
    growing = GrowingSignatures(centre)
    growing.append(stored.T)
    signed, products = growing.signatures(), stored @ centre
    chosen_best = 0
    for query in vectors(10, 4, shared):
        index = signed.candidates(query, estimates_for(100), np.arange(ROWS))
        estimates = signed.estimates(query, products, index)
        exact = stored[index] @ query
        assert np.std(estimates - exact) < 0.03
        chosen = np.argsort(-estimates)[: compared_for(100)]
        chosen_best += len(set(chosen.tolist()) & set(np.argsort(-exact)[:100].tolist()))
    assert chosen_best >= 980, "of 1,000"


def test_estimates_of_vectors_without_a_difference_to_the_centre_are_numbers() -> None:
    centre = vectors(1, 5)[0]
    growing = GrowingSignatures(centre)
    growing.append(np.stack([centre, -centre]).T)
    estimates = growing.signatures().estimates(centre, np.array([1.0, -1.0]), np.arange(2))
    assert np.isfinite(estimates).all()
    assert estimates[0] > estimates[1]


def test_many_signatures_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = vectors(500, 6)
    growing = GrowingSignatures(np.zeros(DIMENSION, np.float32))
    growing.append(stored.T)
    expected = growing.signatures().candidates(stored[3], 20, np.arange(500))
    monkeypatch.setattr(signatures, "_CHUNK", 64)
    parts = GrowingSignatures(np.zeros(DIMENSION, np.float32))
    parts.append(stored.T)
    assert (parts.signatures().words == growing.signatures().words).all()
    candidates = parts.signatures().candidates(stored[3], 20, np.arange(500))
    assert candidates.tolist() == expected.tolist()


def test_signatures_returned_before_stay_valid() -> None:
    stored = vectors(ROWS, 7)
    block = filled(stored[:2_500])
    before = block.block()
    expected = before.signatures.words.copy() if before.signatures else None
    facts = np.stack([np.arange(2_500, ROWS)] * 2, axis=1)
    block.append(Block(facts, stored[2_500:].T))
    assert before.signatures is not None
    assert (before.signatures.words == expected).all()
    after = block.block().signatures
    assert after is not None
    assert after.words.shape[1] == ROWS
    assert not np.array_equal(after.centre, before.signatures.centre), "they are twice as many"


def test_the_size_counts_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = vectors(2_000, 3)
    with_signatures = filled(stored).nbytes
    monkeypatch.setattr(vector_blocks, "MIN_ROWS", 10**9)
    assert with_signatures - filled(stored).nbytes == 2_000 * 16 * 8 + DIMENSION * 4
