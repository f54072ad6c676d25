"""The vector seam. Scores are cosine similarities in −1..1, higher is better, on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.transaction import Transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One vector of a row, with what `IndexFilter` may ask of it. `vector` is float32, of the
    space's dimension, of any length but zero."""

    key: int
    uid: str
    vector: Vector
    session: int | None = None
    author: int | None = None
    observer: int | None = None
    observed: int | None = None
    level: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class VectorHit:
    key: int
    score: float
    """Cosine similarity."""


class VectorIndex(Protocol):
    """Vectors, one per row and space. A space belongs to one workspace, so workspaces are apart by
    construction.

    `view` is the storage's open view or transaction when the index lives in that storage
    (capability `TRANSACTIONAL`), else None; an index without that capability is only ever written
    to after commit, by a task. Where it cannot be reached, or fails, it raises `IndexUnavailable`,
    within a bounded time; opening it does not need it to be there.
    """

    capabilities: frozenset[Capability]

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None: ...

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        """Forget rows; unknown keys are ignored."""
        ...

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        """The `k` nearest rows that fit `index_filter`, best first, ties by key. `ids` confines the
        search to those keys, scored exactly."""
        ...

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        """The vectors of these rows by key, of the direction in which they were stored; a row that
        has none is left out."""
        ...

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        """Keys of the rows that have a vector, those greater than `after`, rising, at most `limit`:
        to compare with the rows."""
        ...

    def count(self, tx: Transaction | None, space: Space) -> int: ...

    def drop(self, tx: Transaction | None, space: Space) -> None:
        """Forget the whole space."""
        ...
