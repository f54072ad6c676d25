"""The contents of an archive of `pg_dump`, in its custom format."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from memservice.domain.errors import ConfigurationError, Damaged
from memservice_postgres import programs, vector_schema
from memservice_sql.tables import metadata

MAGIC = b"PGDMP"
VERSIONS = "alembic_version"
TABLES = frozenset(
    {
        *(*metadata.tables, VERSIONS),
        *("text_rows", "text_statistics", "vectors", "vector_states"),
    }
)
"""The tables of a store. Other software may have tables in the same schema."""
FUNCTIONS = ("memservice_fold", vector_schema.TRIGGER)

_ENTRY = re.compile(r"\d+; \d+ \d+ (?P<kind>[A-Z ]+) (?P<schema>\S+) (?P<name>\S+)")
_COPY = re.compile(rb"COPY (?P<schema>\S+?)\.(?P<name>\S+) \(.*\) FROM stdin;\n")
_KINDS = frozenset(
    {
        *("TABLE", "TABLE DATA", "DEFAULT", "CONSTRAINT", "FK CONSTRAINT", "INDEX"),
        *("SEQUENCE", "SEQUENCE OWNED BY", "SEQUENCE SET", "FUNCTION", "TRIGGER"),
    }
)
"""Entries of a store. The schema itself and extensions are not restored."""


class Contents(Struct, frozen=True):
    """What an archive has."""

    schema: str
    has_vectors: bool
    entries: str
    """The entries to restore, one a line: a list for `pg_restore --use-list`."""


def require(file: Path) -> None:
    """Raises `ConfigurationError` for a file that is no archive."""
    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise ConfigurationError(
                f"{file} is not a backup of this storage, which is an archive of pg_dump. Name the "
                "storage that it was made of in DB_CONNECTION_URI; to move to another kind of "
                "storage, use `memservice copy`"
            )


def contents(program: str, file: Path) -> Contents:
    """Raises `ConfigurationError` for an archive of something else, and `Damaged`."""
    try:
        table_of_contents = programs.run([program, "--list", str(file)])
    except programs.ProgramFailed as error:
        raise Damaged(f"{file} is damaged, or of a newer PostgreSQL: {error}") from error
    entries, schemas = list[str](), set[str]()
    tables = set[str]()
    for line in table_of_contents.splitlines():
        entry = _ENTRY.match(line)
        if entry is None or entry["kind"] not in _KINDS or not _is_ours(entry):
            continue
        if entry["kind"] == "TABLE":
            tables.add(entry["name"])
            schemas.add(entry["schema"])
        entries.append(line)
    if VERSIONS not in tables or len(schemas) != 1:
        raise ConfigurationError(f"{file} is not a backup of memservice: it has no schema version")
    return Contents(schemas.pop(), "vectors" in tables, "\n".join(entries) + "\n")


def _is_ours(entry: re.Match[str]) -> bool:
    name, kind = entry["name"], entry["kind"]
    if kind == "FUNCTION":
        return name.startswith(FUNCTIONS)
    if kind.startswith("SEQUENCE"):
        return any(name.startswith(f"{table}_") for table in TABLES)
    return True  # tables of other software are not in a backup


def rows(program: str, file: Path) -> Iterator[tuple[str, bytes | None]]:
    """The rows of each table in order: the table's name, and a row as text; None at its beginning.
    Reads the whole archive. Raises `Damaged`."""
    table = None
    try:
        with programs.running([program, "--data-only", "--file=-", str(file)]) as output:
            for line in output:
                if table is None:
                    begin = _COPY.fullmatch(line)
                    if begin is not None:
                        table = begin["name"].decode().strip('"')
                        yield table, None
                elif line == b"\\.\n":
                    table = None
                else:
                    yield table, line
    except programs.ProgramFailed as error:
        raise Damaged(f"{file} is damaged, or of a newer PostgreSQL: {error}") from error


@contextmanager
def list_file(archive: Contents) -> Iterator[str]:
    """The entries as a file."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(archive.entries)
        file.flush()
        yield file.name
