"""Backups of a database, as archives of `pg_dump`.

A restore moves the tables that exist into another schema, restores in one transaction, and only
then drops them: whatever fails, the store is there as it was.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
from psycopg import sql

from memservice.domain.errors import (
    ConfigurationError,
    Conflict,
    Damaged,
    SchemaVersionError,
)
from memservice.spi.backups import BackupReport, Progress
from memservice_postgres import archives, errors, programs, vector_schema
from memservice_postgres.archives import FUNCTIONS, TABLES, VERSIONS
from memservice_postgres.connections import ConnectionConfig, Driver
from memservice_sql import new_files
from memservice_sql.schema_version import HISTORY, newer_schema_message
from memservice_sql.tables import metadata

REPORTED_ROWS = 1_000
"""Rows after which progress is reported."""
CLOSING_SECONDS = 2.0
ASIDE = "memservice_replaced"
"""The schema of the tables that a restore replaces, until it has succeeded."""


class PostgresBackups:
    """`memservice.spi.backups.Backups` of one schema of a database."""

    def __init__(self, config: ConnectionConfig) -> None:
        self._config = config

    def save(self, file: Path, progress: Progress) -> BackupReport:
        with self._translated(), self._config.connect(**_NO_LIMITS) as driver:
            server = driver.info.server_version // 10_000
            dump = programs.require("pg_dump", server)
            reading = programs.require("pg_restore", server)
            # pg_dump reads the state of this transaction, whatever is written meanwhile.
            driver.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            existing = self._tables(driver)
            if VERSIONS not in existing:
                raise SchemaVersionError(
                    f"The database {self._config.name} has no tables: there is nothing to back up"
                )
            version, counts = self._version(driver), self._counts(driver, existing & TABLES)
            (snapshot,) = driver.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
            with new_files.replacing(file) as part:
                self._dump(dump, str(snapshot), existing - TABLES, part, counts, progress)
                _require_same(_counted(reading, part, counts, progress), counts, file)
            driver.execute("ROLLBACK")
        return _report(version, counts)

    def restore(self, file: Path, progress: Progress, *, replace: bool) -> BackupReport:
        archives.require(file)
        program = programs.require("pg_restore")
        archive = archives.contents(program, file)
        if archive.schema != self._config.schema:
            raise ConfigurationError(
                f"{file} is a backup of the schema {archive.schema}, but DB_OPTIONS names "
                f"{self._config.schema}: set `schema` there"
            )
        version, counts = _examined(program, file)
        with self._translated(), self._config.connect(**_NO_LIMITS) as driver:
            exists = bool(self._tables(driver) & TABLES)
            if exists and not replace:
                raise Conflict(
                    f"there is a store already in {self._config.name}: name another database in "
                    "DB_CONNECTION_URI, or replace it with --force"
                )
            self._require_unused(driver)
            if archive.has_vectors:
                vector_schema.ensure_extension(driver, self._config.name)
            with self._aside(driver):
                self._fill(program, file, archive, counts, progress)
                restored = self._counts(driver, self._tables(driver) & TABLES)
                _require_same(restored, counts, file)
            for name in sorted(restored):
                driver.execute(sql.SQL("ANALYZE {}").format(self._table(name)))
        return _report(version, counts)

    def _dump(
        self,
        program: str,
        snapshot: str,
        others: set[str],
        part: Path,
        counts: Mapping[str, int],
        progress: Progress,
    ) -> None:
        with programs.connection(self._config.arguments) as (database, environment):
            command = [
                *(program, database, "--format=custom", f"--file={part}", "--no-owner"),
                *("--no-privileges", f"--snapshot={snapshot}", "--lock-wait-timeout=60s"),
                f'--schema="{self._config.schema}"',
                *(f"--exclude-table={self._pattern(name)}" for name in sorted(others)),
            ]
            programs.run_by_table(command, environment, counts, partial(progress, "saving"))

    def _fill(
        self,
        program: str,
        file: Path,
        archive: archives.Contents,
        counts: Mapping[str, int],
        progress: Progress,
    ) -> None:
        with (
            archives.list_file(archive) as entries,
            programs.connection(self._config.arguments) as (database, environment),
        ):
            command = [
                *(program, database, "--single-transaction", "--exit-on-error"),
                *("--no-owner", "--no-privileges", f"--use-list={entries}", str(file)),
            ]
            programs.run_by_table(command, environment, counts, partial(progress, "restoring"))

    @contextmanager
    def _aside(self, driver: Driver) -> Iterator[None]:
        """Without the tables that exist, which are dropped if the block succeeds and are back if it
        fails."""
        own = self._config.schema
        aside = sql.Identifier(ASIDE)
        if _one(driver, "SELECT 1 FROM pg_namespace WHERE nspname = %s", ASIDE):
            raise Conflict(
                f"the database {self._config.name} has a schema {ASIDE}: it has the tables that an "
                "interrupted restore replaced. Move what you need, and drop it"
            )
        with driver.transaction():
            driver.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(own)))
            driver.execute(sql.SQL("CREATE SCHEMA {}").format(aside))
            self._move(driver, own, ASIDE)
        try:
            yield
        except BaseException:
            with driver.transaction():
                for name in self._tables(driver) & TABLES:
                    driver.execute(sql.SQL("DROP TABLE {} CASCADE").format(self._table(name)))
                for name in FUNCTIONS:
                    driver.execute(sql.SQL("DROP FUNCTION IF EXISTS {}").format(self._table(name)))
                self._move(driver, ASIDE, own)
                driver.execute(sql.SQL("DROP SCHEMA {}").format(aside))
            raise
        driver.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(aside))

    def _move(self, driver: Driver, source: str, target: str) -> None:
        """Move our tables, with their indexes and sequences, and our functions."""
        to = sql.Identifier(target)
        for table in sorted(_tables(driver, source) & TABLES):
            name = sql.Identifier(source, table)
            driver.execute(sql.SQL("ALTER TABLE {} SET SCHEMA {}").format(name, to))
        for function in FUNCTIONS:
            if _one(driver, _HAS_FUNCTION, function, source):
                name = sql.Identifier(source, function)
                driver.execute(sql.SQL("ALTER FUNCTION {} SET SCHEMA {}").format(name, to))

    def _require_unused(self, driver: Driver) -> None:
        """Raises `Conflict` if connections of memservice stay open. The server needs a moment to
        end those that were closed."""
        deadline = time.monotonic() + CLOSING_SECONDS
        while number := _one(driver, _OTHERS):
            if time.monotonic() > deadline:
                raise Conflict(
                    f"the store in {self._config.name} is in use ({number} connections): stop its "
                    "servers and workers first"
                )
            time.sleep(0.05)

    def _tables(self, driver: Driver) -> set[str]:
        return _tables(driver, self._config.schema)

    def _pattern(self, name: str) -> str:
        """A pattern of `pg_dump` for one table."""
        escaped = name.replace('"', '""')
        return f'"{self._config.schema}"."{escaped}"'

    def _table(self, name: str) -> sql.Identifier:
        return sql.Identifier(self._config.schema, name)

    def _counts(self, driver: Driver, names: set[str]) -> dict[str, int]:
        counts = {}
        for name in sorted(names):
            query = sql.SQL("SELECT count(*) FROM {}").format(self._table(name))
            row = driver.execute(query).fetchone()
            counts[name] = 0 if row is None else int(row[0])
        return counts

    def _version(self, driver: Driver) -> str:
        query = sql.SQL("SELECT version_num FROM {}").format(self._table(VERSIONS))
        row = driver.execute(query).fetchone()
        return "" if row is None else str(row[0])

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            meaning = errors.meaning(error, self._config.name)
            if meaning is None:
                raise
            raise meaning from error


_NO_LIMITS = {
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "enable_seqscan": "on",
}
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND application_name LIKE 'memservice%%'"
)
_HAS_FUNCTION = (
    "SELECT count(*) FROM pg_proc WHERE proname = %s AND "
    "pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"
)


def _report(version: str, counts: Mapping[str, int]) -> BackupReport:
    return BackupReport(version, {name: counts[name] for name in counts if name in metadata.tables})


def _examined(program: str, file: Path) -> tuple[str, dict[str, int]]:
    """Schema version and rows of an archive. Raises `SchemaVersionError` for a newer release."""
    version, counts = "", Counter[str]()
    for table, row in archives.rows(program, file):
        counts[table] += row is not None
        if table == VERSIONS and row is not None:
            version = row.decode().strip()
    if version not in HISTORY:
        raise SchemaVersionError(newer_schema_message(version, str(file)))
    return version, dict(counts)


def _counted(
    program: str, part: Path, counts: Mapping[str, int], progress: Progress
) -> dict[str, int]:
    rows, row_count, total = Counter[str](dict.fromkeys(counts, 0)), 0, sum(counts.values())
    for table, row in archives.rows(program, part):
        if row is not None:
            rows[table] += 1
            row_count += 1
            if row_count % REPORTED_ROWS == 0:
                progress("verifying", min(row_count, total), total)
    progress("verifying", total, total)
    return dict(rows)


def _require_same(actual: Mapping[str, int], expected: Mapping[str, int], file: Path) -> None:
    different = sorted(
        name for name in {*actual, *expected} if actual.get(name, 0) != expected.get(name, 0)
    )
    if different:
        raise Damaged(
            f"{file} does not have the rows of its source in {', '.join(different)}; nothing was "
            "changed"
        )


def _tables(driver: Driver, schema: str) -> set[str]:
    query = (
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND "
        "relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"
    )
    return {str(name) for (name,) in driver.execute(query, (schema,))}


def _one(driver: Driver, query: str, *values: object) -> int:
    row = driver.execute(query.encode(), values).fetchone()
    return 0 if row is None else int(row[0])
