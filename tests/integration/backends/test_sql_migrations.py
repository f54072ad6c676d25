"""Migrations: they create the tables of the code once, even with concurrent processes, and do not
change newer stores."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from memservice.domain.errors import SchemaVersionError
from memservice.domain.records import Conclusion, Session
from memservice_sql.migrating import scripts, upgrade
from memservice_sql.schema_version import HEAD, HISTORY
from memservice_sql.storage import VERSION_SECONDS, SqlStorage
from memservice_sql.tables import metadata
from memservice_sqlite import search_schema
from memservice_sqlite.storage import SqliteStorage
from support.processes import preloaded
from support.stores import postgres_store
from support.stores.postgres_server import new_database
from support.stores.sqlite_store import migrated, opened
from support.stores.stores import migrated_on

pytestmark = pytest.mark.usefixtures("own_migrations")


def ours(thing: Any, name: str | None, kind: str, reflected: bool, other: Any) -> bool:
    """Tables that only this database has are no part of the metadata, nor are its own indexes."""
    if kind == "index" and reflected:
        return str(name).startswith(("ix_", "uq_"))
    return kind != "table" or not reflected or name in metadata.tables


def upgraded(path: Path, to: str = HEAD) -> SqliteStorage:
    """A new store that was made by the migrations up to a revision."""
    path.touch()
    storage = opened(path)
    with storage.engine.begin() as connection:
        upgrade(connection, storage._dialect, to)
    return storage


def test_the_migrations_create_the_tables_of_the_code(tmp_path: Path) -> None:
    storage = upgraded(tmp_path / "memory.db")
    with storage.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": ours, "compare_type": True}
        )
        assert compare_metadata(context, metadata) == []
    storage.close()


def statements(engine: sa.Engine) -> dict[str, str]:
    """The statements with which SQLite created each table and index, with normalised layout."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ).all()
    return {
        name: re.sub(r"\s*([(),])\s*", r"\1", " ".join(sql.replace('"', "").split()))
        for name, sql in rows
    }


def test_a_new_store_has_what_the_migrations_create(tmp_path: Path) -> None:
    """Comparing metadata sees neither conditions of indexes nor what happens on delete."""
    storage, new = upgraded(tmp_path / "memory.db"), migrated(tmp_path / "new.db")
    assert statements(new.engine) == statements(storage.engine)
    assert contents(new.engine) == contents(storage.engine)
    storage.close()
    new.close()


POSTGRES_OBJECTS = """
    SELECT 'column', attrelid::regclass::text, attname,
        concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
            collname, pg_get_expr(adbin, adrelid))
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        LEFT JOIN pg_collation ON pg_collation.oid = attcollation
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind = 'r' AND attnum > 0 AND relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'index', tablename::text, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT 'options', relname, relkind::text, coalesce(reloptions::text, '')
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'function', proname, '', pg_get_functiondef(pg_proc.oid) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prolang IN
        (SELECT oid FROM pg_language WHERE lanname IN ('sql', 'plpgsql'))
    UNION ALL
    SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid)
    FROM pg_trigger WHERE NOT tgisinternal
    ORDER BY 1, 2, 3, 4
"""


def test_a_new_store_has_what_the_migrations_create_in_postgres() -> None:
    def objects(storage: SqlStorage) -> list[tuple[Any, ...]]:
        with storage.engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(POSTGRES_OBJECTS)]

    here, there = (postgres_store.opened(new_database()) for _ in range(2))
    with there.engine.connect() as connection, there._dialect.migration(connection):
        upgrade(connection, there._dialect)
    here.migrate()
    there.migrate()  # what else a start creates
    assert sorted(set(objects(here)) ^ set(objects(there))) == []
    assert contents(here.engine) == contents(there.engine)
    here.close()
    there.close()


def contents(engine: sa.Engine) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each table but that of full text, whose rows cannot be listed."""
    with engine.connect() as connection:
        names = set(sa.inspect(connection).get_table_names()) - {"text_index"}
        queries = {name: sa.select(sa.text("*")).select_from(sa.table(name)) for name in names}
        return {name: sorted(map(tuple, connection.execute(queries[name]))) for name in names}


def test_the_history_equals_the_recorded_one() -> None:
    revisions = [script.revision for script in scripts().walk_revisions()]
    assert tuple(reversed(revisions)) == HISTORY
    assert scripts().get_heads() == [HEAD]


def test_reading_the_version_does_not_import_alembic(tmp_path: Path) -> None:
    migrated(tmp_path / "memory.db").close()
    code = f"""
import sys
import time
from datetime import UTC, datetime
from memservice_sqlite.settings import SqliteSettings
from memservice_sqlite.storage import open_storage
storage = open_storage(SqliteSettings().load({{"uri": "sqlite:///{tmp_path}/memory.db"}}))
storage.check()
storage.migrate()
storage.close()
print(sorted({{"alembic", "numpy"}} & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr


def test_the_error_for_an_empty_store_says_how_to_create_the_tables(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    storage = opened(tmp_path / "memory.db")
    assert storage.schema_version() is None
    with pytest.raises(SchemaVersionError, match="memservice db upgrade"):
        storage.check()
    with pytest.raises(SchemaVersionError, match="memservice db upgrade"):
        storage.write(lambda tx: tx.facts.set("a", "b"))
    storage.close()


def test_a_database_whose_version_table_is_empty_becomes_a_new_store(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    connection.close()
    storage = opened(tmp_path / "memory.db")
    storage.migrate()
    storage.check()
    storage.close()


def test_the_error_for_an_older_store_says_how_to_upgrade_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = migrated(tmp_path / "memory.db")
    monkeypatch.setattr("memservice_sql.schema_version.HISTORY", (*HISTORY, "9999"))
    monkeypatch.setattr("memservice_sql.schema_version.HEAD", "9999")
    with pytest.raises(SchemaVersionError, match=r"older.*memservice db upgrade"):
        storage.check()
    storage.close()


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(old, marks=() if number % 15 == 0 else pytest.mark.heavy)
        for number, old in enumerate(HISTORY[:-1])
    ],
)
def test_a_store_of_each_older_schema_is_upgraded(tmp_path: Path, old: str) -> None:
    storage = upgraded(tmp_path / "memory.db", old)
    assert storage.schema_version() == old
    with storage.engine.begin() as connection:
        connection.execute(sa.insert(metadata.tables["facts"]).values(name="a", value="kept"))
    storage.migrate()
    storage.check()
    with storage.read() as tx:
        assert tx.facts.get("a") == "kept"
    new = migrated(tmp_path / "new.db")
    assert statements(storage.engine) == statements(new.engine)
    new.close()
    storage.close()


def test_keys_of_an_older_store_get_the_uids_of_their_names(tmp_path: Path) -> None:
    storage = upgraded(tmp_path / "memory.db", "0002")
    with storage.engine.begin() as connection:
        for statement in OLDER_KEYS.split(";"):
            connection.exec_driver_sql(statement)
    storage.migrate()
    with storage.read() as tx:
        owners = {
            key.uid: (key.workspace_uid, key.peer_uid, key.session_uid) for key in tx.keys.page()
        }
    assert owners == {
        "admin": (None, None, None),
        "whole": ("W2", None, None),
        "peer": ("W2", "P2", None),
        "session": ("W2", None, "S2"),
        "both": ("W2", "P2", "S2"),
        "of a session that goes": ("W2", None, None),
        "of a later peer": ("W2", None, None),
        "of a workspace that goes": (None, None, None),
        "of a later workspace": (None, None, None),
    }
    storage.close()


OLDER_KEYS = """
INSERT INTO workspaces (key, uid, slug, v1_name, state, metadata, configuration, created_at) VALUES
    (1, 'W1', 'w', 'w', 'deleting', '{}', '{}', '2026-01-01'), (2, 'W2', 'w', 'w', 'active', '{}',
        '{}', '2026-01-01'),
    (3, 'W3', 'gone', 'gone', 'deleting', '{}', '{}', '2026-01-01');
INSERT INTO peers (uid, workspace_key, slug, v1_name, kind, metadata, configuration, created_at)
    VALUES
    ('P1', 1, 'p', 'p', 'peer', '{}', '{}', '2026-01-01'), ('P2', 2, 'p', 'p', 'peer', '{}', '{}',
        '2026-01-01');
INSERT INTO sessions (uid, workspace_key, slug, state, metadata, configuration, message_count,
    token_total, created_at) VALUES
    ('S1', 1, 's', 'active', '{}', '{}', 0, 0, '2026-01-01'), ('S2', 2, 's', 'archived', '{}', '{}',
        0, 0, '2026-01-01'),
    ('S3', 2, 'going', 'deleting', '{}', '{}', 0, 0, '2026-01-01');
INSERT INTO api_keys (uid, admin, workspace, peer, session, created_at) VALUES
    ('admin', 1, NULL, NULL, NULL, '2026-01-01'), ('whole', 0, 'w', NULL, NULL, '2026-01-01'),
    ('peer', 0, 'w', 'p', NULL, '2026-01-01'), ('session', 0, 'w', NULL, 's', '2026-01-01'),
        ('both', 0, 'w', 'p', 's', '2026-01-01'),
    ('of a session that goes', 0, 'w', NULL, 'going', '2026-01-01'), ('of a later peer', 0, 'w',
        'q', NULL, '2026-01-01'),
    ('of a workspace that goes', 0, 'gone', NULL, NULL, '2026-01-01'), ('of a later workspace', 0,
        'x', 'p', 's', '2026-01-01')
"""


def test_superseded_conclusions_of_an_older_store_get_the_time_of_their_successors(
    tmp_path: Path,
) -> None:
    storage = upgraded(tmp_path / "memory.db", "0007")
    with storage.engine.begin() as connection:
        for statement in OLDER_CONCLUSIONS.split(";"):
            connection.exec_driver_sql(statement)
    storage.migrate()
    with storage.read() as tx:
        times = {row.uid: row.superseded_at for row in tx.rows.page(Conclusion)}
    assert times == {
        "replaced": datetime(2026, 1, 2, tzinfo=UTC),
        "live": None,
        "merged into an older one": None,
        "taken back": None,
        "of an erased one": None,
    }
    storage.close()


_ROW = "1, 1, 1, 1, 'p', 'p', '{}', '{}', '{}', 1, '[]', 'api', '2026-01-01', 't', 'f', 'explicit'"
OLDER_CONCLUSIONS = f"""
INSERT INTO workspaces (key, uid, slug, v1_name, state, metadata, configuration, created_at)
    VALUES (1, 'W', 'w', 'w', 'active', '{{}}', '{{}}', '2026-01-01');
INSERT INTO peers (key, uid, workspace_key, slug, v1_name, kind, metadata, configuration,
    created_at) VALUES (1, 'P', 1, 'p', 'p', 'peer', '{{}}', '{{}}', '2026-01-01');
INSERT INTO collections (key, workspace_key, observer_key, observed_key, observer, observed,
    explicit_count, explicit_at_last_dream, created_at)
    VALUES (1, 1, 1, 1, 'p', 'p', 0, 0, '2026-01-01');
INSERT INTO conclusions (workspace_key, collection_key, observer_key, observed_key, observer,
    observed, internal, metadata, source_ids, times_derived, message_keys, reasoner, said_at,
    content, fingerprint, level, key, uid, state, superseded_by, created_at) VALUES
    ({_ROW}, 1, 'replaced', 'superseded', 2, '2026-01-01T00:00:00.000000Z'),
    ({_ROW}, 2, 'live', 'live', NULL, '2026-01-02T00:00:00.000000Z'),
    ({_ROW}, 3, 'merged into an older one', 'superseded', 2, '2026-01-03T00:00:00.000000Z'),
    ({_ROW}, 4, 'taken back', 'superseded', NULL, '2026-01-03T00:00:00.000000Z'),
    ({_ROW}, 5, 'of an erased one', 'superseded', 99, '2026-01-03T00:00:00.000000Z')
"""


@pytest.mark.parametrize(
    ("state", "free"),
    [("pending", 3), pytest.param("failed", 3, marks=pytest.mark.heavy), ("done", 0)],
)
def test_gaps_of_an_older_store_are_counted(tmp_path: Path, state: str, free: int) -> None:
    """A store that is upgraded in the middle of an erasure. Without one, no message is read."""
    storage = upgraded(tmp_path / "memory.db", "0012")
    with storage.engine.begin() as connection:
        for statement in OLDER_GAPS.format(state=state).split(";"):
            connection.exec_driver_sql(statement)
    storage.migrate()
    with storage.read() as tx:
        assert {row.slug: row.free_positions for row in tx.rows.page(Session)} == {
            "with gaps": free,
            "without": 0,
        }
    storage.close()


_MESSAGE = "1, 1, 'p', 's', 'x', 1, 1, '{{}}', '{{}}', '2026-01-01'"
OLDER_GAPS = f"""
INSERT INTO workspaces (key, uid, slug, v1_name, state, metadata, configuration, created_at)
    VALUES (1, 'W', 'w', 'w', 'active', '{{{{}}}}', '{{{{}}}}', '2026-01-01');
INSERT INTO peers (key, uid, workspace_key, slug, v1_name, kind, metadata, configuration,
    created_at) VALUES (1, 'P', 1, 'p', 'p', 'peer', '{{{{}}}}', '{{{{}}}}', '2026-01-01');
INSERT INTO sessions (key, uid, workspace_key, slug, state, metadata, configuration,
    message_count, token_total, created_at) VALUES
    (1, 'S', 1, 'with gaps', 'active', '{{{{}}}}', '{{{{}}}}', 5, 5, '2026-01-01'),
    (2, 'T', 1, 'without', 'active', '{{{{}}}}', '{{{{}}}}', 1, 1, '2026-01-01');
INSERT INTO messages (workspace_key, author_key, author, session, content, tokens, tokens_through,
    metadata, internal, created_at, uid, session_key, seq) VALUES
    ({_MESSAGE}, 'M', 1, 1), ({_MESSAGE}, 'N', 1, 5), ({_MESSAGE}, 'O', 2, 1);
INSERT INTO tasks (workspace_key, session_key, observer_key, observed_key, message_key, kind, unit,
    uid, state, payload, outcome, not_before, attempts, created_at) VALUES
    (1, 1, 0, 0, 0, 'repack', 'u', 'Y', '{{state}}', '{{{{}}}}', '{{{{}}}}', '2026-01-01', 0,
    '2026-01-01')
"""


def test_a_newer_store_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    storage = migrated(path)
    storage.write(lambda tx: tx.facts.set("a", "b"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '4242'")
    connection.close()
    for attempt in (storage.check, storage.migrate):
        with pytest.raises(SchemaVersionError, match=r"4242.*newer.*Upgrade memservice"):
            attempt()
    assert storage.schema_version() == "4242"
    with storage.read() as tx:
        assert tx.facts.get("a") == "b"
    storage.close()


def test_a_migration_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(tmp_path / "memory.db")
    create = search_schema.create

    def fail(connection: sa.Connection) -> None:
        create(connection)
        raise RuntimeError("power cut")

    monkeypatch.setattr(search_schema, "create", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        storage.migrate()
    assert storage.schema_version() is None
    assert statements(storage.engine) == {}
    monkeypatch.undo()
    storage.migrate()
    storage.check()
    storage.close()


def test_several_processes_may_migrate_at_once(tmp_path: Path) -> None:
    code = f"""
import sys
from memservice_sqlite.settings import SqliteSettings
from memservice_sqlite.storage import open_storage
storage = open_storage(SqliteSettings().load({{"uri": "sqlite:///{tmp_path}/memory.db"}}))
sys.stdin.read()
storage.migrate()
storage.check()
storage.write(lambda view: view.rows.put([]))
storage.close()
"""
    wait, go = os.pipe()
    started = [preloaded.start_python(code, folder=tmp_path, stdin=wait) for _ in range(4)]
    os.close(wait)
    os.close(go)
    errors = [process.communicate(timeout=60)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 4, "\n".join(errors)
    storage = opened(tmp_path / "memory.db")
    storage.check()
    storage.close()


@pytest.mark.parametrize("dialect", ["sqlite", pytest.param("postgres", marks=pytest.mark.heavy)])
def test_a_process_stops_writing_when_a_newer_release_has_migrated(
    dialect: str, tmp_path: Path
) -> None:
    with migrated_on(dialect, tmp_path) as storage:
        storage.write(lambda tx: tx.facts.set("before", ""))
        with storage.engine.connect() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

        def write_on() -> None:
            ends = time.monotonic() + 5 * VERSION_SECONDS
            while time.monotonic() < ends:
                storage.write(lambda tx: tx.facts.set("after", ""))

        with pytest.raises(SchemaVersionError, match=r"schema 9999 of a newer release"):
            write_on()
        with storage.read() as tx:
            assert tx.facts.get("before") == "", "what is there can be read for as long as it can"


@pytest.mark.parametrize(
    ("database", "name", "before"),
    [
        ("postgres", "text_rows_sample", "0014"),
        ("postgres", "text_rows_sample", "0018"),
        ("postgres", "text_rows_order", "0015"),
        ("sqlite", "text_rows_order", "0016"),
    ],
)
def test_texts_of_an_older_store_get_their_indexes(
    database: str, name: str, before: str, tmp_path: Path
) -> None:
    query = {
        "postgres": f"SELECT indexdef FROM pg_indexes WHERE indexname = '{name}'",
        "sqlite": f"SELECT sql FROM sqlite_master WHERE name = '{name}'",
    }
    with migrated_on(database, tmp_path) as storage:

        def definitions() -> list[str]:
            with storage.engine.connect() as connection:
                return list(connection.exec_driver_sql(query[database]).scalars())

        new = definitions()
        with storage.engine.begin() as connection:
            connection.exec_driver_sql(f"DROP INDEX {name}")
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{before}'")
            upgrade(connection, storage._dialect, HISTORY[HISTORY.index(before) + 1])
        assert (len(new), definitions()) == (1, new)
