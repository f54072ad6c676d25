"""Reading the files of a store before it is measured."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from benchmarks.load import store_files
from support.stores.postgres_server import drop_database, new_database


def test_a_store_in_sqlite_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"x" * (store_files.CHUNK + 5))
    assert store_files.files_of(f"sqlite:///{path}") == [path]
    assert store_files.read_through([path, tmp_path / "dropped"]) == store_files.CHUNK + 5


@pytest.mark.slow
def test_the_files_of_a_postgres_database_hold_its_tables() -> None:
    uri = new_database()
    plain = uri.replace("postgresql+psycopg:", "postgresql:")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 2000)"
        )
        connection.execute("CHECKPOINT")
        size, name = connection.execute(
            "SELECT pg_relation_size('large'), pg_relation_filepath('large')"
        ).fetchall()[0]
    files = store_files.files_of(uri)
    assert [file for file in files if str(file).endswith(name)]
    assert store_files.read_through(files) > size > 2_000_000
    drop_database(uri)
