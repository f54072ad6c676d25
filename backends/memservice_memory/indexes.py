"""Full text and vectors of the memory storage: the simplest implementation of the two protocols,
which reads every row.

Rows are in dicts that the storage keeps with its tables (`rows.extra(name)`), so that they are
committed and rolled back together. Values in them are replaced, never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct

from memservice.domain.records import Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter, fits
from memservice.spi.text import TextHit, TextMatches, TextRow
from memservice.spi.vectors import VectorHit, VectorRow

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector

KINDS = ("message", "conclusion", "document")


class _Extras(Protocol):
    def extra(self, name: str) -> dict[Any, Any]:
        """A dict that is part of the transaction: changes are committed and rolled back with the
        rows."""
        ...


def _extra(tx: Transaction | None, name: str) -> dict[Any, Any]:
    if tx is None or not hasattr(tx.rows, "extra"):
        raise TypeError("this index needs a transaction of the memory storage")
    return cast(_Extras, tx.rows).extra(name)  # noqa: S610 - not the Django method


class _Text(Struct, frozen=True):
    row: TextRow
    counts: Mapping[str, int]


class MemoryTextIndex:
    """The `TextIndex` of the memory storage. The object has no state."""

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def add(
        self, tx: Transaction | None, kind: str, workspace_key: int, rows: Sequence[TextRow]
    ) -> None:
        texts = self._texts(tx, kind, workspace_key)
        for row in rows:
            texts[row.key] = _Text(row, Counter([*row.terms, *row.related]))

    def remove(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> None:
        texts = self._texts(tx, kind, workspace_key)
        for key in keys:
            texts.pop(key, None)

    def indexed(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> list[int]:
        texts = self._texts(tx, kind, workspace_key)
        return [key for key in keys if key in texts]

    def sizes(
        self, tx: Transaction | None, kind: str, workspace_keys: Sequence[int]
    ) -> Mapping[int, int]:
        return {key: len(self._texts(tx, kind, key)) for key in workspace_keys}

    def search(
        self,
        tx: Transaction | None,
        kind: str,
        workspace_key: int,
        terms: Sequence[str],
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> TextMatches:
        texts = self._texts(tx, kind, workspace_key)
        unique_terms, allowed_keys = set(terms), None if ids is None else set(ids)
        frequencies = dict.fromkeys(terms, 0)
        hits: list[TextHit] = []
        for text in texts.values():
            counts = {term: text.counts[term] for term in unique_terms if term in text.counts}
            for term in counts:
                frequencies[term] += 1
            if (
                counts
                and fits(text.row, index_filter)
                and (allowed_keys is None or text.row.key in allowed_keys)
            ):
                hits.append(TextHit(text.row.key, counts, len(text.row.terms)))
        # Rows with the rarest terms first: compare the ascending frequencies of each row's terms.
        # Ties: newest first.
        hits.sort(key=lambda hit: -hit.key)
        hits.sort(key=lambda hit: sorted(frequencies[term] for term in hit.terms))
        total_length = sum(len(text.row.terms) for text in texts.values())
        return TextMatches(
            len(texts), total_length / len(texts) if texts else 0.0, frequencies, hits[: max(k, 0)]
        )

    def drop(self, tx: Transaction | None, workspace_key: int, limit: int) -> int:
        dropped = 0
        for kind in KINDS:
            texts = self._texts(tx, kind, workspace_key)
            for key in list(texts)[: limit - dropped]:
                del texts[key]
                dropped += 1
        return dropped

    def _texts(self, tx: Transaction | None, kind: str, workspace_key: int) -> dict[int, _Text]:
        if kind not in KINDS:
            raise ValueError(f"unknown kind of text {kind!r}; known: {', '.join(KINDS)}")
        return _extra(tx, f"text of {kind} in {workspace_key}")


class MemoryVectorIndex:
    """The `VectorIndex` of the memory storage. The object has no state."""

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        vectors = self._vectors(tx, space)
        checked = [(row, _unit(space, row.vector)) for row in rows]
        for row, unit in checked:
            if unit is None:
                vectors.pop(row.key, None)
            else:
                vectors[row.key] = (row, unit)

    def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
        vectors = self._vectors(tx, space)
        for key in keys:
            vectors.pop(key, None)

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        query_vector = _unit(space, vector)
        vectors = self._vectors(tx, space)
        if query_vector is None:
            return []
        keys = vectors if ids is None else set(ids) & vectors.keys()
        hits = [
            VectorHit(key, min(1.0, max(-1.0, float((vectors[key][1] * query_vector).sum()))))
            for key in keys
            if fits(vectors[key][0], index_filter)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[: max(k, 0)]

    def fetch(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> dict[int, Vector]:
        vectors = self._vectors(tx, space)
        return {key: vectors[key][0].vector for key in keys if key in vectors}

    def keys(
        self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
    ) -> list[int]:
        return sorted(key for key in self._vectors(tx, space) if key > after)[:limit]

    def count(self, tx: Transaction | None, space: Space) -> int:
        return len(self._vectors(tx, space))

    def drop(self, tx: Transaction | None, space: Space) -> None:
        self._vectors(tx, space).clear()

    def _vectors(self, tx: Transaction | None, space: Space) -> dict[int, tuple[VectorRow, Any]]:
        """Rows by key, each with its vector scaled to length one (float64)."""
        return _extra(tx, f"vectors of {space.key}")


def _unit(space: Space, vector: Vector) -> Any:
    """The vector scaled to length one in float64; None for a zero vector. Raises ValueError for a
    wrong dimension and for numbers that are not finite."""
    import numpy as np

    array = np.asarray(vector, np.float32).astype(np.float64)
    if array.shape != (space.dimension,):
        shape = "×".join(map(str, array.shape))
        raise ValueError(
            f"a vector of dimension {shape} does not fit space {space.key}, whose "
            f"dimension is {space.dimension}"
        )
    if not np.isfinite(array).all():
        raise ValueError("a vector has numbers that are not finite")
    length = float(np.sqrt((array * array).sum()))
    return array / length if length else None
