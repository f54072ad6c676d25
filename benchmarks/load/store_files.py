"""The files of a store, which a measurement reads through before it begins.

A search among a million messages reads hundreds of pages that were not read lately. Systems drop
such pages from memory, some even if there is room, and then reading one from the disk takes ten
times the CPU of the work that is measured. What a store costs whose files are not in memory is
another question.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy.engine import make_url

CHUNK = 1 << 20
_FILES = """
    SELECT current_setting('data_directory'), pg_relation_filepath(oid)
    FROM pg_class WHERE pg_relation_filepath(oid) IS NOT NULL
"""


def files_of(db: str) -> list[Path]:
    """The files of the store at a URI, wherever they are."""
    url = make_url(db)
    if url.get_backend_name() == "sqlite":
        return [Path(url.database)] if url.database else []
    import psycopg

    uri = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(uri) as connection:
        rows = connection.execute(_FILES).fetchall()
    # A relation of more than a gigabyte has further files: `12345.1` and so on.
    parts = [Path(folder, name) for folder, name in rows]
    return sorted({file for part in parts for file in (part, *part.parent.glob(f"{part.name}.*"))})


def read_through(files: Iterable[Path]) -> int:
    """Read those files that are on this machine and readable, so that the system has them in
    memory. Returns the number of bytes."""
    total = 0
    for path in files:
        try:
            with path.open("rb", buffering=0) as file:
                while chunk := file.read(CHUNK):
                    total += len(chunk)
        except OSError:
            continue  # on another machine, dropped meanwhile, or not readable by this user
    return total
