"""Text searches in workspaces of more texts than are counted and read one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextIndex, TextMatches, TextRow
from memservice_postgres import stored_texts, text
from memservice_postgres.connections import driver_of
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.text import PostgresTextIndex
from memservice_sql.storage import SqlStorage
from memservice_sql.text_cache import TextCache
from memservice_sqlite import text as sqlite_text
from memservice_sqlite.text import SqliteTextIndex
from support.stores.stores import DIALECTS, migrated_on

WORKSPACE = 1
EACH = 40
"""The rarest term has so many rows."""


class Texts:
    """A workspace that counts as large, whose texts are not in memory."""

    def __init__(self, storage: SqlStorage, budget: int) -> None:
        self.storage = storage
        cache = TextCache(max_bytes=0)
        self.index: TextIndex = (
            PostgresTextIndex(budget, exact_documents=0, cache=cache)
            if isinstance(storage, PostgresStorage)
            else SqliteTextIndex(budget, exact_documents=0, cache=cache)
        )

    def add(self, rows: Sequence[TextRow]) -> None:
        self.storage.write(lambda tx: self.index.add(tx, "message", WORKSPACE, rows))

    def search(self, *terms: str, k: int, index_filter: IndexFilter = EVERYTHING) -> TextMatches:
        with self.storage.read() as tx:
            return self.index.search(tx, "message", WORKSPACE, terms, k, index_filter)

    def keys(self, *terms: str, k: int, index_filter: IndexFilter = EVERYTHING) -> list[int]:
        matches = self.search(*terms, k=k, index_filter=index_filter)
        return [hit.key for hit in matches.hits]


@contextmanager
def texts_on(dialect: str, folder: Path) -> Iterator[Texts]:
    """The term "rare" is in every tenth text, "common" in every second, "both" in every seventh."""
    with migrated_on(dialect, folder) as storage:
        texts = Texts(storage, budget=100)
        texts.add(
            [
                TextRow(
                    key=n,
                    terms=[
                        f"n{n}",
                        *(["rare"] if n % 10 == 0 else []),
                        *(["common"] if n % 2 == 1 else []),
                        *(["both"] if n % 7 == 0 else []),
                    ],
                    session=n % 2,
                )
                for n in range(1, 10 * EACH + 1)
            ]
        )
        yield texts


@pytest.fixture(scope="module", params=DIALECTS)
def storage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlStorage]:
    with texts_on(request.param, tmp_path_factory.mktemp("texts")) as texts:
        yield texts.storage


@pytest.fixture
def texts(storage: SqlStorage) -> Texts:
    """For tests that only read. The index is new, since it remembers what it has counted."""
    return Texts(storage, budget=100)


def test_texts_with_several_terms_come_first_and_then_the_newest(texts: Texts) -> None:
    assert texts.keys("rare", "both", "common", k=8) == [
        350,
        280,
        210,
        140,
        70,
        *(key for key in (399, 385, 371)),
    ]


def test_the_newest_texts_of_the_rarest_term_are_found(texts: Texts) -> None:
    assert texts.keys("rare", k=5) == [400, 390, 380, 370, 360]
    assert texts.keys("rare", "n7", k=4) == [7, 400, 390, 380]


def test_a_text_without_the_rarest_term_is_found_by_several_others(texts: Texts) -> None:
    assert 399 in texts.keys("n400", "both", "common", k=10)


def test_all_matches_are_found_if_there_are_fewer_than_asked_for(texts: Texts) -> None:
    expected = {n for n in range(1, 401) if n % 10 == 0 or n % 7 == 0}
    assert set(texts.keys("rare", "both", k=1_000)) == expected


def test_a_filter_applies_to_every_step(texts: Texts) -> None:
    even = IndexFilter(sessions=(0,))
    keys = texts.keys("rare", "both", "common", k=1_000, index_filter=even)
    assert set(keys) == {n for n in range(2, 401, 2) if n % 10 == 0 or n % 7 == 0}


def test_more_terms_than_the_database_picks_one_by_one(texts: Texts) -> None:
    terms = ["rare", "both", *(f"n{n}" for n in range(1, 12))]
    assert set(texts.keys(*terms, k=30)) >= {*range(1, 12), 350, 280, 210, 140, 70}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_hits_count_each_term(dialect: str, tmp_path: Path) -> None:
    with texts_on(dialect, tmp_path) as texts:
        texts.add([TextRow(key=1_000, terms=["rare", "rare", "rare", "both"])])
        hit = texts.search("rare", "both", k=10).hits[0]
    assert (hit.key, dict(hit.terms), hit.length) == (1_000, {"rare": 3, "both": 1}, 4)


@contextmanager
def postgres_texts(folder: Path) -> Iterator[Texts]:
    with migrated_on("postgres", folder) as storage:
        texts = Texts(storage, budget=10_000)
        texts.add(
            [
                TextRow(key=n, terms=["tea", *(["mint"] if n % 4 == 0 else ["salt"])])
                for n in range(1, 4_001)
            ]
        )
        texts.add([TextRow(key=n, terms=["axolotl"]) for n in range(5_000, 5_005)])
        yield texts


@pytest.fixture(scope="module")
def postgres_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStorage]:
    with postgres_texts(tmp_path_factory.mktemp("texts")) as texts:
        yield texts.storage


@pytest.fixture
def postgres(postgres_storage: SqlStorage) -> Texts:
    """For tests that only read."""
    return Texts(postgres_storage, budget=10_000)


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[Texts]:
    """For tests that write."""
    with postgres_texts(tmp_path) as texts:
        yield texts


@pytest.fixture(scope="module")
def many_sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Texts]:
    """The same texts beside those of another workspace, each of which is in a session of its own.
    Only plans of statements are read here, and no index is searched."""
    with postgres_texts(tmp_path_factory.mktemp("sessions")) as texts:
        rows = [TextRow(key=n, terms=["tea"], session=n) for n in range(10_000, 12_000)]
        texts.storage.write(lambda tx: texts.index.add(tx, "message", WORKSPACE + 1, rows))
        with texts.storage.engine.connect() as connection:
            driver_of(connection).execute("ANALYZE text_rows")
        yield texts


@pytest.fixture
def ranges_of_texts(own_postgres: Texts, monkeypatch: pytest.MonkeyPatch) -> Texts:
    """Sixteen keys are a range, and every fourth text has the term."""
    monkeypatch.setattr(text, "RANGE_BITS", 6)
    own_postgres.add(
        [TextRow(key=n, terms=["oolong"] if n % 4 == 0 else ["other"]) for n in range(6_000, 7_000)]
    )
    return own_postgres


NEWEST = [6_996, 6_992, 6_988, 6_984, 6_980]


def test_the_newest_texts_of_a_term_are_read_from_the_newest_ranges(
    ranges_of_texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_NEWEST", "SELECT 1 / 0")
    monkeypatch.setattr(text, "_EACH", "SELECT 1 / 0")
    assert ranges_of_texts.keys("oolong", k=5) == NEWEST


def test_all_texts_of_a_term_are_read_if_the_newest_ranges_have_few_of_them(
    ranges_of_texts: Texts,
) -> None:
    ranges_of_texts.add([TextRow(key=n, terms=["other"]) for n in range(7_000, 7_300)])
    assert ranges_of_texts.keys("oolong", k=5) == NEWEST


def test_texts_that_an_older_release_stored_without_a_range_are_found(
    ranges_of_texts: Texts,
) -> None:
    with ranges_of_texts.storage.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE text_rows SET terms = trim_array(terms, 1), counts = trim_array(counts, 1)"
        )
    assert ranges_of_texts.keys("oolong", k=5) == NEWEST


def test_ranges_of_ids_are_no_words(ranges_of_texts: Texts) -> None:
    number = str(7_000 * 4 >> 6)
    assert ranges_of_texts.keys(number, f"#{number}", "#", k=5) == []


@pytest.mark.parametrize("ranges", [True, False])
def test_texts_that_were_found_by_several_terms_are_not_read_again_among_the_newest(
    ranges_of_texts: Texts, ranges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no more of the newest are read than the results have room for."""
    ranges_of_texts.add(
        [TextRow(key=n, terms=["oolong", "sencha", "genmai"]) for n in range(7_001, 7_011)]
    )
    ranges_of_texts.add([TextRow(key=n, terms=["sencha", "genmai"]) for n in range(8_000, 8_400)])
    limits: dict[str, int] = {}
    execute = text._Query.execute

    def note(query: text._Query, sql: str, values: Any, binary: bool = False) -> list[Any]:
        limits[sql] = values["limit"]
        return execute(query, sql, values, binary)

    monkeypatch.setattr(text._Query, "execute", note)
    if not ranges:
        monkeypatch.setattr(text, "MAX_RANGES", 0)
    keys = ranges_of_texts.keys("oolong", "sencha", k=15)
    assert keys == [*range(7_010, 7_000, -1), *NEWEST]
    assert limits[text._NEWEST_OF_RANGES if ranges else text._NEWEST] == 5


@pytest.mark.parametrize(("compared", "best"), [(1_000, [350, 280, 210]), (0, [400, 390, 380])])
def test_terms_of_too_many_texts_do_not_choose_among_those_of_the_rarest_term(
    storage: SqlStorage, compared: int, best: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "MAX_COMPARED", compared)
    monkeypatch.setattr(sqlite_text, "MAX_COMPARED", compared)
    assert Texts(storage, budget=40).keys("rare", "both", k=3) == best


@pytest.mark.parametrize("read", [10_000, 30])
def test_numbers_of_frequent_terms_are_estimated_and_rare_ones_counted(
    postgres: Texts, read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample that is not read whole is extrapolated."""
    monkeypatch.setattr(stored_texts, "MAX_SAMPLED", read)
    frequencies = postgres.search("tea", "mint", "axolotl", "none", k=1).frequencies
    assert (frequencies["axolotl"], frequencies["none"]) == (5, 0)
    assert frequencies["tea"] == pytest.approx(4_000, rel=0.5)
    assert frequencies["tea"] != 4_000
    assert frequencies["mint"] == pytest.approx(1_000, rel=0.6)


def test_numbers_in_a_small_workspace_are_exact(postgres: Texts) -> None:
    postgres.index = PostgresTextIndex(exact_documents=4_005, cache=TextCache(max_bytes=0))
    frequencies = postgres.search("tea", "mint", k=1).frequencies
    assert (frequencies["tea"], frequencies["mint"]) == (4_000, 1_000)


def add(texts: Texts, workspace: int, keys: Iterable[int], kind: str = "message") -> None:
    rows = [TextRow(key=key, terms=["tea"]) for key in keys]
    texts.storage.write(lambda tx: texts.index.add(tx, kind, workspace, rows))


@pytest.mark.parametrize(
    "statement", [stored_texts._EXTENT, stored_texts._NEWER.decode()], ids=["extent", "newer"]
)
def test_texts_of_other_workspaces_are_not_read(own_postgres: Texts, statement: str) -> None:
    """Neither for a workspace whose texts are all older, nor for one whose texts are all newer."""
    older, newer = WORKSPACE + 1, WORKSPACE + 2
    add(own_postgres, older, range(-20, -10))
    add(own_postgres, newer, range(9_000, 9_010))
    with own_postgres.storage.engine.connect() as connection:
        driver = driver_of(connection)
        driver.execute("ANALYZE text_rows")
        for workspace in (older, newer):
            values = {"workspace": workspace, "kind": 0, "after": -1_000}
            # pyrefly: ignore[bad-argument-type]  # made of constants
            rows = driver.execute(f"EXPLAIN (ANALYZE) {statement}", values).fetchall()
            plan = "\n".join(row[0] for row in rows)
            assert "text_rows_order" in plan
            assert "Rows Removed" not in plan


def test_the_extent_of_a_workspace_is_that_of_its_texts(own_postgres: Texts) -> None:
    add(own_postgres, WORKSPACE, [7_000], "conclusion")
    add(own_postgres, WORKSPACE + 1, [6_000])
    with own_postgres.storage.engine.connect() as connection:
        extents = [
            driver_of(connection)
            .execute(stored_texts._EXTENT, {"workspace": workspace, "kind": kind, "after": 0})
            .fetchall()
            for workspace, kind in ((WORKSPACE, 0), (WORKSPACE, 1), (WORKSPACE + 1, 0))
        ]
    ends = [(1, 5_004), (7_000, 7_000), (6_000, 6_000)]
    assert extents == [
        [(4 * first + kind, 4 * last + kind)]
        for kind, (first, last) in zip((0, 1, 0), ends, strict=True)
    ]


@pytest.mark.parametrize(
    "statement",
    [
        text._POSTINGS,
        text._RAREST,
        text._TWO_COMMON,
        text._EACH,
        text._SEVERAL,
        text._NEWEST,
        text._NEWEST_OF_RANGES,
    ],
)
def test_rows_of_large_sessions_are_read_by_their_terms(
    many_sessions: Texts, statement: str
) -> None:
    """Not by the index of sessions, which is that of all workspaces: the session is a term."""
    plan = _plan(many_sessions, statement)
    assert "text_rows_place" not in plan
    (condition,) = (
        line
        for line, above in pairwise(reversed(plan.splitlines()))
        if "Bitmap Index Scan on text_rows_terms" in above
    )
    assert "Index Cond:" in condition
    assert "{@10500}" in condition


@pytest.mark.parametrize("read", [0, 1_000])
def test_texts_of_a_session_are_found_by_terms_as_by_reading_them_all(
    postgres_storage: SqlStorage, read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = Texts(postgres_storage, budget=100)
    monkeypatch.setattr(text, "MAX_OF_SESSIONS", read)
    rows = [
        TextRow(key=n, terms=["tea", *(["lemon"] if n % 10 == 0 else [])], session=n % 7)
        for n in range(20_000, 20_400)
    ]
    in_session = IndexFilter(sessions=(3,))
    try:
        texts.add(rows)
        keys = texts.keys("tea", "lemon", k=12, index_filter=in_session)
    finally:
        postgres_storage.write(
            lambda tx: texts.index.remove(tx, "message", WORKSPACE, [row.key for row in rows])
        )
    both = [n for n in range(20_399, 19_999, -1) if n % 7 == 3 and n % 10 == 0]
    assert keys[: len(both)] == both
    assert len(keys) == 12
    assert all(key % 7 == 3 for key in keys)


def test_rows_of_small_sessions_are_read_by_their_place(many_sessions: Texts) -> None:
    condition = "Index Cond: ((workspace_key = '1'::bigint) AND (kind = '0'::bigint) AND (session"
    assert condition in _plan(many_sessions, text._IN_SESSIONS)


def _plan(texts: Texts, statement: str) -> str:
    """Of a search in one of many sessions, in a store of many texts."""
    lists = ("terms", "wanted", "rare", "others", "several", "compared", "newest", "ranges")
    values = {
        "workspace": WORKSPACE,
        "kind": 0,
        "limit": 10,
        "rare_weights": [1, 1],
        "weights": [1, 1],
        "first": "m1_tea",
        "found": [1, 2],
        **{name: ["m1_tea", "m1_mint"] for name in lists},
    }
    sql, filter_values = text.completed(statement, IndexFilter(sessions=(10_500,)), 2)
    with texts.storage.engine.connect() as connection:
        driver = driver_of(connection)
        rows = driver.execute(f"EXPLAIN {sql}".encode(), values | filter_values).fetchall()
        return "\n".join(row[0] for row in rows)


def test_the_sample_is_read_by_its_index(postgres: Texts) -> None:
    values = {
        "workspace": WORKSPACE,
        "kind": 0,
        "terms": ["m1_tea"],
        "exact_documents": 0,
        "min_sampled": 16,
        "max_sampled": 400,
    }
    with postgres.storage.engine.connect() as connection:
        rows = (
            # pyrefly: ignore[bad-argument-type]  # made of constants
            driver_of(connection).execute(f"EXPLAIN {stored_texts._STATISTICS}", values).fetchall()
        )
    plan = "\n".join(row[0] for row in rows)
    assert "text_rows_sample" in plan
    assert "Seq Scan on text_rows " not in plan
