"""The contract of a vector index.

Subclass `VectorIndexContract`, give it the fixture `open_index`, and run pytest: a callable without
arguments that opens the index of this test and returns it as an `Engine`. A second call within a
test opens the same index again (an index outside the storage without the capability `SHARED` is
opened once). Every test begins empty. An engine that stores less than float32 overrides
`tolerance`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from memservice.domain.records import ACTIVE, Space
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.vectors import VectorHit, VectorIndex, VectorRow
from memservice.testing.indexes import HOSTILE, MANY_TONGUES, NOON, SECOND, Engine, RolledBack, only
from memservice.testing.storage.base import together

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
    """A vector whose cosine similarity to `AHEAD` is that of the angle."""
    return vector(
        length * math.cos(math.radians(degrees)), length * math.sin(math.radians(degrees)), 0, 0
    )


def row(key: int, degrees: float = 0.0, **about: Any) -> VectorRow:
    return VectorRow(
        key=key, uid=f"uid-of-{key:014}", vector=about.pop("vector", at_angle(degrees)), **about
    )


def keys(hits: Iterable[VectorHit]) -> list[int]:
    return [hit.key for hit in hits]


class VectorIndexContract:
    """The requirements of a vector index."""

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

    # Scores and order

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

    # Filters

    ABOUT: tuple[tuple[str, str, Any, Any], ...] = (
        ("session", "sessions", 1, 2),
        ("author", "authors", 1, 2),
        ("observer", "observers", 1, 2),
        ("observed", "observed", 1, 2),
        ("level", "levels", "explicit", 'it\'s "deductive" -- ü'),
    )

    @pytest.mark.parametrize(
        ("field", "condition", "one", "other"), ABOUT, ids=[each[0] for each in ABOUT]
    )
    def test_any_of(
        self, engine: Engine[VectorIndex], field: str, condition: str, one: Any, other: Any
    ) -> None:
        self.upsert(engine, [row(1, 10, **{field: one}), row(2, 20, **{field: other}), row(3, 30)])
        for ids in (None, [1, 2, 3]):
            assert keys(self.query(engine, index_filter=only(condition, one), ids=ids)) == [1]
            assert keys(self.query(engine, index_filter=only(condition, other), ids=ids)) == [2]
            assert keys(self.query(engine, index_filter=only(condition, one, other), ids=ids)) == [
                1,
                2,
            ]
            assert keys(self.query(engine, ids=ids)) == [1, 2, 3]

    @pytest.mark.parametrize("condition", [each[1] for each in ABOUT])
    def test_any_of_nothing_matches_nothing(
        self, engine: Engine[VectorIndex], condition: str
    ) -> None:
        self.upsert(
            engine,
            [
                row(1, session=1, author=1, observer=1, observed=1, level="explicit", at=NOON),
                row(2),
            ],
        )
        assert self.query(engine, index_filter=only(condition)) == []
        assert self.query(engine, index_filter=only(condition), ids=[1, 2]) == []

    def test_pairs_of_observer_and_observed(self, engine: Engine[VectorIndex]) -> None:
        pairs = [(1, 1), (1, 2), (2, 1), (2, 2)]
        self.upsert(
            engine, [row(n, n, observer=a, observed=b) for n, (a, b) in enumerate(pairs, start=1)]
        )
        for n, (a, b) in enumerate(pairs, start=1):
            assert keys(
                self.query(engine, index_filter=IndexFilter(observers=(a,), observed=(b,)))
            ) == [n]
        assert keys(
            self.query(engine, index_filter=IndexFilter(observers=(1, 2), observed=(2,)))
        ) == [2, 4]
        assert keys(self.query(engine, index_filter=IndexFilter(observers=(2,)))) == [3, 4]
        assert (
            keys(self.query(engine, index_filter=IndexFilter(observers=(3,), observed=(1,)))) == []
        )
        assert keys(self.query(engine)) == [1, 2, 3, 4]

    def test_any_of_a_thousand_values(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(
            engine,
            [row(n, n / 100, session=n, observer=n, observed=1) for n in (1, 500, 1_000, 1_001)],
        )
        thousand = tuple(range(1, 1_001))
        assert keys(self.query(engine, index_filter=IndexFilter(sessions=thousand))) == [
            1,
            500,
            1_000,
        ]
        assert keys(self.query(engine, index_filter=IndexFilter(observers=thousand))) == [
            1,
            500,
            1_000,
        ]
        assert keys(
            self.query(engine, index_filter=IndexFilter(observers=thousand, observed=thousand))
        ) == [1, 500, 1_000]

    def test_values_are_not_syntax(self, engine: Engine[VectorIndex]) -> None:
        rows = [row(n, level=level) for n, level in enumerate(HOSTILE, start=1)]
        self.upsert(engine, [*rows, row(1_000, level="explicit"), row(1_001)])
        for n, level in enumerate(HOSTILE, start=1):
            hits = keys(self.query(engine, index_filter=IndexFilter(levels=(level,))))
            assert hits == [n], level

    def test_long_names_of_any_script_are_distinguished(self, engine: Engine[VectorIndex]) -> None:
        """Names that differ in their last character, their case or the spelling of an accent are
        different."""
        rows = [
            VectorRow(key=n, uid=name * 2, vector=at_angle(n), level=name)
            for n, name in enumerate(NAMES, start=1)
        ]
        self.upsert(engine, rows)
        assert self.count(engine) == len(NAMES)
        for n, name in enumerate(NAMES, start=1):
            for ids in (None, range(1, len(NAMES) + 1)):
                assert keys(
                    self.query(engine, index_filter=IndexFilter(levels=(name,)), ids=ids)
                ) == [n], name

    def test_time_bounds_are_inclusive_and_exact(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(n, n, at=NOON + n * SECOND) for n in range(1, 5)] + [row(5, 5)])
        for ids in (None, [1, 2, 3, 4, 5]):
            assert keys(
                self.query(engine, index_filter=IndexFilter(since=NOON + 3 * SECOND), ids=ids)
            ) == [3, 4]
            assert keys(
                self.query(engine, index_filter=IndexFilter(until=NOON + 2 * SECOND), ids=ids)
            ) == [1, 2]
            assert keys(
                self.query(
                    engine,
                    index_filter=IndexFilter(since=NOON + 2 * SECOND, until=NOON + 3 * SECOND),
                    ids=ids,
                )
            ) == [2, 3]
            between = IndexFilter(since=NOON + SECOND * 1.000001, until=NOON + SECOND * 1.999999)
            assert keys(self.query(engine, index_filter=between, ids=ids)) == []

    def test_conditions_are_anded(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(
            engine,
            [row(1, session=1, author=1), row(2, session=1, author=2), row(3, session=2, author=1)],
        )
        assert keys(self.query(engine, index_filter=IndexFilter(sessions=(1,), authors=(1,)))) == [
            1
        ]
        assert keys(self.query(engine, index_filter=IndexFilter(sessions=(2,), authors=(2,)))) == []

    # Some rows only

    def test_ids_confine_the_search(self, engine: Engine[VectorIndex]) -> None:
        self.upsert(engine, [row(n, 5 * n, session=n % 2) for n in range(1, 11)])
        hits = self.query(engine, ids=[9, 2, 5, 777, 2])
        assert keys(hits) == [2, 5, 9]
        assert [hit.score for hit in hits] == pytest.approx(
            [math.cos(math.radians(5 * n)) for n in (2, 5, 9)], abs=self.tolerance
        )
        assert keys(self.query(engine, ids=[9, 2, 5], k=2)) == [2, 5]
        assert keys(self.query(engine, ids=[9, 2, 5], index_filter=IndexFilter(sessions=(1,)))) == [
            5,
            9,
        ]
        assert self.query(engine, ids=[]) == []

    # Changing

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

    # Isolation

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

    # Durability

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
