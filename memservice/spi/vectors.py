"""The vector seam. Scores are cosine similarities in −1..1, higher is better, on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.transaction import Transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


class VectorRow(Struct, frozen=True):
    """One vector of a row, with the values for `IndexFilter`. `vector` is float32, of the space's
    dimension and of any length except zero."""

    key: int
    uid: str
    vector: Vector
    session: int | None = None
    author: int | None = None
    observer: int | None = None
    observed: int | None = None
    level: str | None = None
    at: datetime | None = None


class VectorHit(Struct, frozen=True):
    key: int
    score: float
    """Cosine similarity."""


class VectorIndex(Protocol):
    """Vectors, one for each row and space. A space belongs to one workspace, so workspaces are
    separate by construction.

    `tx` is the open transaction of the storage if the index is part of that storage (capability
    `TRANSACTIONAL`), else None. Without that capability, only tasks write to the index, after
    commit. If it cannot be reached or fails, it raises `IndexUnavailable` within a bounded time;
    it can be opened while it is not reachable.

    `space.key` identifies a space within one storage; an index that several storages share also
    needs its `namespace` setting. Names and keys are data, never syntax. A vector of another
    dimension than `space.dimension`, or with numbers that are not finite, is a `ValueError`, and
    nothing of that call is stored (`memservice.spi.unit_vectors.checked`). Safe to call from
    several threads: simultaneous writes lose nothing. With the capability `SHARED`, each process
    finds what the others stored.
    """

    capabilities: frozenset[Capability]

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        """Store vectors; rows that have one are replaced, and of two versions of a row the last
        counts. A vector of zeros means that the row has none: it is not found, not counted and not
        in `keys`."""
        ...

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        """Remove rows. Unknown keys are ignored."""
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
        """The `k` nearest rows that fit `index_filter`, best first, ties by key
        (`memservice.spi.top_k.stable_top_k`). `ids` limits the search to those keys, with exact
        scores. The length of `vector` does not matter; one of zeros finds nothing."""
        ...

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        """The vectors of these rows by key, in the direction in which they were stored, without
        rows that have none."""
        ...

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        """Keys of the rows with a vector that are greater than `after`, ascending, at most `limit`:
        for comparison with the rows."""
        ...

    def count(self, tx: Transaction | None, space: Space) -> int:
        """The number of rows with a vector; 0 for a space that was never written."""
        ...

    def drop(self, tx: Transaction | None, space: Space) -> None:
        """Remove the whole space."""
        ...
