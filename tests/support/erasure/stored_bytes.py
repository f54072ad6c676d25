"""Everything that a text can have been stored in, as bytes, to search for a marker."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from psycopg import sql
from redis import Redis

from memservice.domain.filters import TRUE
from memservice.services.transfer import export
from memservice.spi.schema import TABLES
from support.pipeline.pipeline import WORKSPACE, Pipeline
from support.stores.postgres_server import connect

Contents = dict[str, bytes]
"""By the name of the place."""


def of_rows(pipeline: Pipeline) -> Contents:
    """Every row, as the storage returns it."""
    with pipeline.rt.storage.read() as tx:
        return {
            f"rows of {spec.name}": "\n".join(map(repr, tx.rows.page(spec.record, TRUE))).encode()
            for spec in TABLES
        }


def of_files(folder: Path) -> Contents:
    """Every file below a folder: of SQLite, and of Qdrant's local mode."""
    return {
        f"file {path.relative_to(folder)}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def of_postgres(uri: str) -> Contents:
    """Every table of a database, as `pg_dump` reads it."""
    contents: Contents = {}
    with connect(uri) as connection:
        tables = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert tables
        for schema, name in tables:
            command = sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(str(schema), str(name)))
            with connection.cursor() as cursor, cursor.copy(command) as copied:
                contents[f"table {schema}.{name}"] = b"".join(map(bytes, copied))
    return contents


def of_redis(client: Redis, pattern: str = "*") -> Contents:
    """The name and the serialized value of every key."""
    return {
        f"Redis key {key!r}": bytes(key) + (client.dump(key) or b"")
        for key in client.scan_iter(pattern, count=1_000)
    }


def of_export(pipeline: Pipeline) -> Contents:
    return {"export": b"".join(export.lines(pipeline.rt, WORKSPACE))}


def occurrences(markers: Sequence[str], contents: Contents) -> list[str]:
    """The places in which a marker is."""
    searched = [marker.encode() for marker in markers]
    return sorted(
        f"{marker.decode()} in {name}"
        for name, content in contents.items()
        for marker in searched
        if marker in content.lower()
    )


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record) + repr(record.__dict__))


@contextmanager
def captured_logs() -> Iterator[_Lines]:
    """What the service logs, on all levels, with all fields of the records."""
    logger, handler = logging.getLogger("memservice"), _Lines()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
