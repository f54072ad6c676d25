"""The index of a test, and the spaces and vectors that the chapters share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from memservice.domain.records import ACTIVE, Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.vectors import VectorHit, VectorIndex, VectorRow
from memservice.testing.indexes import MANY_TONGUES, NOON, Engine

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

OpenVectorIndex = Callable[[], Engine[VectorIndex]]


def space(
    key: int = 1, dimension: int = 4, kind: str = "conclusion", workspace_key: int = 1
) -> Space:
    return Space(
        key=key,
        workspace_key=workspace_key,
        kind=kind,
        embedder="contract-1",
        dimension=dimension,
        state=ACTIVE,
        created_at=NOON,
    )


OURS, THEIRS, WIDE = space(1), space(12, workspace_key=2), space(3, dimension=64, kind="message")
LONG = 512
"""Characters of the longest names that are tried."""
NAMES = (
    *MANY_TONGUES,
    *(f"{letter * (LONG - 1)}{last}" for letter in ("x", "é", "字", "𝒳") for last in "ab"),
    "x",
    "",
)
"""Names that become equal if an index cuts or folds them."""
NAMED = tuple(replace(OURS, key=100 + n, embedder=name) for n, name in enumerate(NAMES))
SPACES = (OURS, THEIRS, WIDE, *NAMED)
"""All spaces that the tests fill."""
WRITERS, ROUNDS = 8, 5


def vector(*numbers: float) -> Vector:
    import numpy as np

    return np.array(numbers, np.float32)


def at_angle(degrees: float, length: float = 1.0) -> Vector:
    """A vector whose cosine similarity to `at_angle(0)` is that of the angle."""
    return vector(
        length * math.cos(math.radians(degrees)), length * math.sin(math.radians(degrees)), 0, 0
    )


def row(key: int, degrees: float = 0.0, **about: Any) -> VectorRow:
    return VectorRow(
        key=key, uid=f"uid-of-{key:014}", vector=about.pop("vector", at_angle(degrees)), **about
    )


def keys(hits: Iterable[VectorHit]) -> list[int]:
    return [hit.key for hit in hits]


class VectorChapter:
    """A part of the contract: the index of a test, and calls of it."""

    tolerance = 1e-5

    @pytest.fixture
    def open_index(self) -> OpenVectorIndex:
        raise NotImplementedError(
            "give your subclass of VectorIndexContract a fixture `open_index`: a callable "
            "that opens the index"
        )

    @pytest.fixture
    def engine(self, open_index: OpenVectorIndex) -> Engine[VectorIndex]:
        return open_index()

    def again(
        self, engine: Engine[VectorIndex], open_index: OpenVectorIndex
    ) -> Engine[VectorIndex]:
        """The index of this test, opened once more, as another process would."""
        if engine.storage is None and Capability.SHARED not in engine.index.capabilities:
            pytest.skip("the index lacks the capability SHARED: it cannot be opened twice")
        return open_index()

    def upsert(
        self, engine: Engine[VectorIndex], rows: Sequence[VectorRow], into: Space = OURS
    ) -> None:
        engine.write(lambda tx: engine.index.upsert(tx, into, rows))

    def delete(self, engine: Engine[VectorIndex], deleted: Sequence[int], of: Space = OURS) -> None:
        engine.write(lambda tx: engine.index.delete(tx, of, deleted))

    def query(
        self,
        engine: Engine[VectorIndex],
        query_vector: Vector | None = None,
        k: int = 100,
        index_filter: IndexFilter = EVERYTHING,
        ids: Sequence[int] | None = None,
        of: Space = OURS,
    ) -> list[VectorHit]:
        nearest_to = at_angle(0) if query_vector is None else query_vector
        return engine.read(lambda tx: engine.index.query(tx, of, nearest_to, k, index_filter, ids))

    def count(self, engine: Engine[VectorIndex], of: Space = OURS) -> int:
        return engine.read(lambda tx: engine.index.count(tx, of))
