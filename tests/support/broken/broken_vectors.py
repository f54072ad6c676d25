"""Vector indexes that are wrong in one way each, as real ones have been, and the test of the kit
that has to say so."""

from __future__ import annotations

import time
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest
from msgspec.structs import replace

from memservice.domain.records import Space
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorHit, VectorIndex, VectorRow
from memservice.testing.indexes import Engine
from memservice.testing.vectors import VectorIndexContract
from memservice_memory.indexes import MemoryVectorIndex
from memservice_memory.storage import MemoryStorage
from support.broken.filters import empty_means_all

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


class BrokenVectors(VectorIndexContract):
    """The kit on a broken index. `caught_by` names tests that have to fail."""

    broken: ClassVar[Callable[[], VectorIndex]]
    caught_by: ClassVar[tuple[str, ...]]

    @pytest.fixture
    def open_index(self) -> Callable[[], Engine[VectorIndex]]:
        storage, broken = MemoryStorage(), type(self).broken
        return lambda: Engine(broken(), storage)


class Query(NamedTuple):
    """The arguments of a query, and the correct one."""

    query: Callable[..., list[VectorHit]]
    tx: Transaction | None
    space: Space
    vector: Vector
    k: int
    index_filter: IndexFilter
    ids: Sequence[int] | None

    def run(self, **changes: Any) -> list[VectorHit]:
        """The correct answer to this query, or to one with other arguments."""
        query = self._replace(**changes)
        return self.query(
            query.tx, query.space, query.vector, query.k, query.index_filter, query.ids
        )


class Altered(MemoryVectorIndex):
    """An index that answers something else."""

    def query(
        self,
        tx: Transaction | None,
        space: Space,
        vector: Vector,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> list[VectorHit]:
        return self.answer(Query(super().query, tx, space, vector, k, index_filter, ids))

    def answer(self, query: Query) -> list[VectorHit]:
        raise NotImplementedError


class TestVectorsDropAFilter(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            return query.run(index_filter=replace(query.index_filter, sessions=None))

    caught_by = ("test_any_of[session]", "test_conditions_are_anded")


class TestVectorsTakeAnEmptyAnyOfForNone(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            return query.run(index_filter=empty_means_all(query.index_filter))

    caught_by = ("test_any_of_nothing_matches_nothing[observers]",)


class TestVectorsCutOffAnyOf(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            sessions = query.index_filter.sessions
            first = None if sessions is None else sessions[:100]
            return query.run(index_filter=replace(query.index_filter, sessions=first))

    caught_by = ("test_any_of_a_thousand_values",)


class TestVectorsExcludeABound(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            until = query.index_filter.until
            earlier = None if until is None else until - timedelta(microseconds=1)
            return query.run(index_filter=replace(query.index_filter, until=earlier))

    caught_by = ("test_time_bounds_are_inclusive_and_exact",)


class TestVectorsReturnDistance(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            return [VectorHit(hit.key, 1.0 - hit.score) for hit in query.run()]

    caught_by = ("test_scores_are_cosine_similarities",)


class TestVectorsReturnTheFarthestFirst(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            return query.run()[::-1]

    caught_by = ("test_scores_are_cosine_similarities", "test_ties_are_ordered_by_key")


class TestVectorsScoreFromZeroToOne(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            return [VectorHit(hit.key, (1.0 + hit.score) / 2) for hit in query.run()]

    caught_by = ("test_scores_are_cosine_similarities",)


class TestVectorsScoreByInnerProduct(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            rows = self._vectors(query.tx, query.space)
            hits = (
                VectorHit(hit.key, float(rows[hit.key][0].vector @ query.vector))
                for hit in query.run(k=10**9)
            )
            return sorted(hits, key=lambda hit: -hit.score)[: query.k]

    caught_by = ("test_lengths_do_not_count",)


class TestVectorsIgnoreK(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            return query.run(k=10**9)

    caught_by = ("test_k_limits_the_hits[1]", "test_k_limits_the_hits[0]")


class TestVectorsFilterAfterK(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            first = {hit.key for hit in query.run(index_filter=EVERYTHING)}
            return [hit for hit in query.run() if hit.key in first]

    caught_by = ("test_k_counts_matching_rows",)


class TestVectorsIgnoreIds(BrokenVectors):
    class broken(Altered):  # noqa: N801
        def answer(self, query: Query) -> list[VectorHit]:
            return query.run(ids=query.ids or None)

    caught_by = ("test_ids_confine_the_search",)


class TestVectorsLeakASpace(BrokenVectors):
    class broken(MemoryVectorIndex):  # noqa: N801
        def _vectors(
            self, tx: Transaction | None, space: Space
        ) -> dict[int, tuple[VectorRow, Any]]:
            return super()._vectors(tx, replace(space, key=space.dimension))

    caught_by = ("test_spaces_are_separate", "test_drop_removes_one_space")


class TestVectorsDeleteOnlyTheFirst(BrokenVectors):
    class broken(MemoryVectorIndex):  # noqa: N801
        def delete(self, tx: Transaction | None, space: Space, keys: Sequence[int]) -> None:
            super().delete(tx, space, keys[:1])

    caught_by = ("test_delete_one_many_and_unknown",)


class TestVectorsKeepTheOld(BrokenVectors):
    class broken(MemoryVectorIndex):  # noqa: N801
        def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
            vectors = self._vectors(tx, space)
            super().upsert(tx, space, [row for row in rows if row.key not in vectors])

    caught_by = ("test_upsert_replaces",)


class TestVectorsListKeysAsText(BrokenVectors):
    class broken(MemoryVectorIndex):  # noqa: N801
        def keys(
            self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
        ) -> list[int]:
            return sorted((key for key in self._vectors(tx, space) if key > after), key=str)[:limit]

    caught_by = ("test_keys_are_listed_in_batches",)


class TestVectorsListTheLastKeyAgain(BrokenVectors):
    """Reading them in batches never ends."""

    class broken(MemoryVectorIndex):  # noqa: N801
        def keys(
            self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
        ) -> list[int]:
            return super().keys(tx, space, after - 1, limit)

    caught_by = ("test_keys_are_listed_in_batches",)


class TestVectorsListDeletedKeys(BrokenVectors):
    class broken(MemoryVectorIndex):  # noqa: N801
        def __init__(self) -> None:
            self._ever: dict[int, set[int]] = {}

        def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
            self._ever.setdefault(space.key, set()).update(row.key for row in rows)
            super().upsert(tx, space, rows)

        def keys(
            self, tx: Transaction | None, space: Space, after: int = 0, limit: int = 1_000
        ) -> list[int]:
            return sorted(key for key in self._ever.get(space.key, ()) if key > after)[:limit]

    caught_by = ("test_keys_are_listed_in_batches",)


class TestVectorsCacheForEver(BrokenVectors):
    """Answers from what it saw first, until it is opened again."""

    class broken(Altered):  # noqa: N801
        def __init__(self) -> None:
            self._first_vectors: dict[int, dict[int, Any]] = {}

        def answer(self, query: Query) -> list[VectorHit]:
            vectors = dict(self._vectors(query.tx, query.space))
            first_vectors = self._first_vectors.setdefault(query.space.key, vectors)
            return [hit for hit in query.run() if hit.key in first_vectors]

    caught_by = ("test_another_opening_sees_changes",)


class TestVectorsPoisonTheirCache(BrokenVectors):
    """What a transaction saw stays, though it was rolled back."""

    class broken(MemoryVectorIndex):  # noqa: N801
        def __init__(self) -> None:
            self._first_vectors: dict[int, dict[int, Any]] = {}

        def _vectors(
            self, tx: Transaction | None, space: Space
        ) -> dict[int, tuple[VectorRow, Any]]:
            vectors = super()._vectors(tx, space)
            return self._first_vectors.setdefault(space.key, vectors)

    caught_by = (
        "test_a_write_that_fails_leaves_nothing",
        "test_stored_vectors_are_there_after_reopening",
    )


class TestVectorsLoseOneOfTwoUpserts(BrokenVectors):
    """What is there is read, and written back a moment later with what is new."""

    class broken(MemoryVectorIndex):  # noqa: N801
        capabilities = frozenset()

        def __init__(self) -> None:
            self._spaces: dict[int, dict[int, tuple[VectorRow, Any]]] = {}

        def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
            apart = type(self)()
            apart._spaces = {space.key: dict(self._vectors(tx, space))}
            super(type(self), apart).upsert(tx, space, rows)
            time.sleep(0.001)
            self._spaces[space.key] = apart._spaces[space.key]

        def _vectors(
            self, tx: Transaction | None, space: Space
        ) -> dict[int, tuple[VectorRow, Any]]:
            return self._spaces.setdefault(space.key, {})

    @pytest.fixture
    def open_index(self) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(type(self).broken())

    caught_by = ("test_simultaneous_upserts_lose_nothing",)


class Named(Altered):
    """Keeps levels, and asks for them, in another form than they were given."""

    def named(self, text: str) -> str:
        return text

    def upsert(self, tx: Transaction | None, space: Space, rows: Sequence[VectorRow]) -> None:
        super().upsert(
            tx,
            space,
            [
                row if row.level is None else replace(row, level=self.named(row.level))
                for row in rows
            ],
        )

    def answer(self, query: Query) -> list[VectorHit]:
        levels = query.index_filter.levels
        changed = None if levels is None else tuple(map(self.named, levels))
        return query.run(index_filter=replace(query.index_filter, levels=changed))


class TestVectorsCutLongNames(BrokenVectors):
    """As a column of 255 characters does."""

    class broken(Named):  # noqa: N801
        def named(self, text: str) -> str:
            return text[:255]

    caught_by = ("test_long_names_of_any_script_are_distinguished",)


class TestVectorsFoldNames(BrokenVectors):
    """As a collation does."""

    class broken(Named):  # noqa: N801
        def named(self, text: str) -> str:
            return unicodedata.normalize("NFC", text)

    caught_by = ("test_long_names_of_any_script_are_distinguished",)


class TestVectorsCutTheNameOfTheEmbedder(BrokenVectors):
    """Spaces are distinguished by the rest of the name only."""

    class broken(MemoryVectorIndex):  # noqa: N801
        def _vectors(
            self, tx: Transaction | None, space: Space
        ) -> dict[int, tuple[VectorRow, Any]]:
            name = space.embedder.encode("ascii", "ignore")[:60]
            return super()._vectors(
                tx, replace(space, key=zlib.crc32(b"%d %b" % (space.workspace_key, name)))
            )

    caught_by = ("test_spaces_of_embedders_with_similar_names_are_separate",)
