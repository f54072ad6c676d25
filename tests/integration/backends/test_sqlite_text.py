"""Full text in SQLite keeps the contract, its budget and its postings."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextIndex, TextMatches, TextRow
from memservice.testing.indexes import Engine
from memservice.testing.text import TextIndexContract
from memservice_sqlite import stored_texts
from memservice_sqlite.text import MAX_TERM_LENGTH, SqliteTextIndex, token
from support.stores.sqlite_file import SqliteFile, open_whole


@pytest.mark.heavy
class TestSqliteTextInTheStorage(TextIndexContract):
    @pytest.fixture
    def open_index(
        self, tmp_path: Path, template: Path
    ) -> Iterator[Callable[[], Engine[TextIndex]]]:
        storage = open_whole(Path(shutil.copy(template, tmp_path / "memory.db")))
        yield lambda: Engine(SqliteTextIndex(), storage)
        storage.close()


class TestSqliteText(TextIndexContract):
    @pytest.fixture
    def open_index(self, file: SqliteFile) -> Callable[[], Engine[TextIndex]]:
        return lambda: Engine(SqliteTextIndex(), file)


# By default, the tests of common terms below have a small budget.
@pytest.mark.heavy
class TestSqliteTextOnASmallBudget(TextIndexContract):
    """Every term is common here, so that postings are read in part; nothing else may change."""

    @pytest.fixture
    def open_index(self, file: SqliteFile) -> Callable[[], Engine[TextIndex]]:
        return lambda: Engine(SqliteTextIndex(budget=1), file)


# By default, test_large_workspaces.py looks at them.
@pytest.mark.heavy
class TestSqliteTextInALargeWorkspace(TextIndexContract):
    @pytest.fixture
    def open_index(self, file: SqliteFile) -> Callable[[], Engine[TextIndex]]:
        return lambda: Engine(SqliteTextIndex(exact_documents=0), file)


def add(file: SqliteFile, rows: list[TextRow], workspace: int = 1, kind: str = "message") -> None:
    file.write(lambda tx: SqliteTextIndex().add(tx, kind, workspace, rows))


def search(
    file: SqliteFile,
    terms: list[str],
    k: int = 100,
    index_filter: IndexFilter = EVERYTHING,
    budget: int = 10_000,
) -> TextMatches:
    with file.read() as tx:
        return SqliteTextIndex(budget).search(tx, "message", 1, terms, k, index_filter)


def plan(file: SqliteFile, sql: str, parameters: Any) -> str:
    with file.engine.connect() as connection:
        return "; ".join(
            row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters)
        )


def test_a_transaction_of_another_storage_is_refused() -> None:
    with pytest.raises(TypeError, match="SQLite storage"):
        SqliteTextIndex().search(None, "message", 1, ["fox"], 1, EVERYTHING)


def test_an_unknown_kind_is_refused(file: SqliteFile) -> None:
    with (
        file.read() as tx,
        pytest.raises(ValueError, match=r"'poem'.*message, conclusion, document"),
    ):
        SqliteTextIndex().search(tx, "poem", 1, ["fox"], 1, EVERYTHING)


def test_rows_with_several_common_terms_come_first(file: SqliteFile) -> None:
    add(
        file,
        [
            TextRow(
                key=n,
                terms=["salt", "pepper"] if n in (3, 40, 77) else ["salt" if n % 2 else "pepper"],
            )
            for n in range(1, 101)
        ],
    )
    matches = search(file, ["salt", "pepper"], k=3, budget=10)
    assert {hit.key for hit in matches.hits} == {3, 40, 77}
    assert dict(matches.frequencies) == {"salt": 51, "pepper": 52}


def test_terms_beyond_the_budget_count_in_hits(file: SqliteFile) -> None:
    add(
        file,
        [
            TextRow(key=n, terms=["common"] * 2 + (["rare"] if n <= 5 else []))
            for n in range(1, 101)
        ],
    )
    matches = search(file, ["common", "rare"], k=5, budget=20)
    assert {hit.key: dict(hit.terms) for hit in matches.hits} == {
        n: {"rare": 1, "common": 2} for n in range(1, 6)
    }


def test_the_newest_rows_of_one_common_term_are_returned(file: SqliteFile) -> None:
    add(file, [TextRow(key=n, terms=["common"]) for n in range(1, 101)])
    assert {hit.key for hit in search(file, ["common"], k=10, budget=20).hits} == set(
        range(91, 101)
    )


def test_few_rows_of_a_session_are_read_instead_of_many_postings(file: SqliteFile) -> None:
    add(
        file,
        [
            TextRow(key=n, terms=["fox", f"n{n}"], session=n // 4, author=n % 2)
            for n in range(1, 401)
        ],
    )
    file.statements.clear()
    matches = search(file, ["fox", "n22"], index_filter=IndexFilter(sessions=(5,), authors=(0,)))
    assert {hit.key: dict(hit.terms) for hit in matches.hits} == {
        20: {"fox": 1},
        22: {"fox": 1, "n22": 1},
    }
    assert not any("MATCH" in statement for statement in file.statements)


def test_the_number_of_statements_does_not_depend_on_terms_and_rows(file: SqliteFile) -> None:
    counts = []
    for rows in (10, 1_000):
        add(file, [TextRow(key=n, terms=["fox", f"n{n}"]) for n in range(1, rows + 1)])
        for terms in (["fox", "n1"], ["fox", *(f"n{n}" for n in range(1, 200))]):
            file.statements.clear()
            search(file, terms)
            counts.append(
                len(
                    [
                        statement
                        for statement in file.statements
                        if statement.lstrip().upper().startswith("SELECT")
                    ]
                )
            )
    assert set(counts) == {4}


def test_no_search_scans_rows(file: SqliteFile) -> None:
    add(file, [TextRow(key=n, terms=["fox"], session=1) for n in range(1, 10)])
    file.statements.clear()
    search(file, ["fox"])
    search(file, ["fox"], index_filter=IndexFilter(authors=(1,)))
    search(file, ["fox"], index_filter=IndexFilter(sessions=(1,)))
    selects = [
        statement
        for statement in file.statements
        if statement.lstrip().upper().startswith("SELECT")
    ]
    named = dict.fromkeys(
        (
            "limit",
            "matches",
            "sessions",
            "authors",
            "observers",
            "observed",
            "levels",
            "since",
            "until",
        )
    )
    plans = [plan(file, sql, named if ":" in sql else (None,) * sql.count("?")) for sql in selects]
    assert len(plans) >= 9
    for text in plans:
        assert "SCAN text_rows" not in text
        assert "SCAN r" not in text
        assert "SCAN t" not in text.replace("SCAN text_index VIRTUAL", "").replace(
            "SCAN text_vocabulary VIRTUAL", ""
        )


def test_texts_of_other_workspaces_are_not_read(file: SqliteFile) -> None:
    """To find the texts that were added, however many of others came after them."""

    def steps() -> int:
        """How many instructions SQLite runs. Reading a text takes several."""
        number = 0

        def count() -> None:
            nonlocal number
            number += 1

        with file.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.set_progress_handler(count, 1)
            try:
                values = {"workspace": 1, "kind": 0, "newest": 4 * 2}
                assert len(driver.execute(stored_texts._NEWER, values).fetchall()) == 1
            finally:
                driver.set_progress_handler(None, 0)
        return number

    add(file, [TextRow(key=n, terms=["fox"]) for n in (1, 2, 3)])
    add(file, [TextRow(key=4, terms=["owl"])], workspace=2)
    after_one = steps()
    add(file, [TextRow(key=n, terms=["owl"]) for n in range(5, 1_005)], workspace=2)
    assert steps() == after_one


def test_postings_are_those_of_the_stored_rows(file: SqliteFile) -> None:
    add(file, [TextRow(key=n, terms=["fox", f"n{n}", "ü", "a b"]) for n in range(1, 50)])
    add(file, [TextRow(key=n, terms=["owl"]) for n in range(10, 20)])
    add(file, [TextRow(key=5, terms=["owl"])], kind="conclusion")
    file.write(lambda tx: SqliteTextIndex().remove(tx, "message", 1, range(20, 30)))
    with file.engine.connect() as connection:
        connection.exec_driver_sql(
            "CREATE VIRTUAL TABLE temp.postings USING fts5vocab(main, text_index, instance)"
        )
        postings = {
            (term, id)
            for term, id in connection.exec_driver_sql("SELECT term, doc FROM temp.postings")
        }
        stored = connection.exec_driver_sql(
            "SELECT substr('mcd', kind + 1, 1) || workspace_key || '_', id, terms FROM "
            "text_rows JOIN text_terms USING (id)"
        ).all()
    expected = {
        (prefix + pair.split("=")[0], id) for prefix, id, terms in stored for pair in terms.split()
    }
    assert postings == expected
    assert len(stored) == 40


def test_counts_include_the_changes_of_other_connections(file: SqliteFile, tmp_path: Path) -> None:
    other = SqliteFile(tmp_path / "index.db")
    for n in range(10):
        add(file if n % 2 else other, [TextRow(key=n + 1, terms=["fox", f"n{n}"])])
    matches = search(other, ["fox"])
    assert (matches.documents, len(matches.hits)) == (10, 10)
    other.close()


@given(
    st.text(st.characters(codec="utf-8"), max_size=MAX_TERM_LENGTH),
    st.text(st.characters(max_codepoint=0x7F), max_size=9),
)
def test_tokens_are_one_to_one(one: str, other: str) -> None:
    assert (token(one) == token(other)) == (one == other)
    assert all(
        letter in "abcdefghijklmnopqrstuvwxyz0123456789_" or ord(letter) > 0x7F
        for letter in token(one)
    )


def test_more_terms_than_a_mask_has_bits(file: SqliteFile) -> None:
    terms = [f"n{n}" for n in range(100)]
    add(file, [TextRow(key=n + 1, terms=[term, "all"]) for n, term in enumerate(terms)])
    add(file, [TextRow(key=200, terms=terms)])
    matches = search(file, [*terms, "all"], k=150)
    assert {hit.key: len(hit.terms) for hit in matches.hits} == {
        200: 100,
        **dict.fromkeys(range(1, 101), 2),
    }
