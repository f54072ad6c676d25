"""Copies of a workspace beside it, in a PostgreSQL store: the quickest way to many workspaces.

Each copy has its own keys, ids, name and terms of the text index, and all else as the source. So
the rows are those that the product writes: `tests/unit/benchmarks/test_tenants.py`
compares them. Messages of all copies alternate, as if the workspaces had been written to in turn.

It needs a store of one's own and a superuser: foreign keys are not checked, and the indexes of the
large tables are dropped and built again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from memservice_postgres.text import KINDS, PREFIXES, RANGE_BITS
from memservice_sql.tables import metadata

CHUNK = 1_000
"""Rows of the source whose copies are stored in one transaction."""
ALTERNATING = 10
"""Rows of one copy before those of the next one."""
SMALL = ("peers", "peer_names", "sessions", "members", "collections", "spaces")
LARGE = {"messages": "message", "conclusions": "conclusion"}
"""Table → kind of its texts."""
INDEXED = (*LARGE, "text_rows", "vectors")
REFERENCES = {
    "session_key": "sessions",
    "author_key": "peers",
    "observer_key": "peers",
    "observed_key": "peers",
    "owner_key": "peers",
    "peer_key": "peers",
    "collection_key": "collections",
    "space_key": "spaces",
}
"""Column → the table of the row that it names."""
UID = """
    chr(65 + floor(random() * 26)::integer) || left(translate(encode(
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 'base64'), '+/', '_-'), 20)
"""
"""Random, as `memservice.domain.ids.new_uid`."""
VERSION = "hashtextextended(gen_random_uuid()::text, 0)"
MARK = chr(1)
"""In the place of a term's prefix. No term has it."""

_TEMPORARY = """
    CREATE TEMP TABLE targets (copy INTEGER PRIMARY KEY, name TEXT, key BIGINT);
    CREATE TEMP TABLE mapped (
        "table" TEXT, old BIGINT, copy INTEGER, new BIGINT, PRIMARY KEY ("table", copy, old)
    )
"""
_INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
    WHERE indrelid::regclass::text = ANY(%s) AND NOT indisprimary ORDER BY 1
"""
_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    ORDER BY attnum
"""
_MAP = """
    INSERT INTO mapped SELECT '{table}', old, copy, nextval('{table}_key_seq') FROM (
        SELECT s.key AS old, t.copy FROM (
            SELECT key, (row_number() OVER (ORDER BY key) - 1) / {alternating} AS part
            FROM {table} WHERE key = ANY(%s)
        ) s CROSS JOIN targets t ORDER BY s.part, t.copy, s.key
    ) AS ordered
"""
_UNMAP = 'DELETE FROM mapped WHERE "table" = %s'
_ROWS = """
    INSERT INTO {into} ({columns}) SELECT {values}
    FROM mapped m JOIN targets t USING (copy) JOIN {source} s ON s.{key} = {old} {joins}
    WHERE m."table" = '{table}' ORDER BY m.new
"""
_TEXTS = """(
    SELECT r.*, ARRAY(
        SELECT '{mark}' || substr(term, {start})
        FROM unnest(trim_array(r.terms, 1)) WITH ORDINALITY AS u (term, number) ORDER BY number
    )::text AS marked FROM text_rows r
)"""
_STATISTICS = """
    INSERT INTO text_statistics (workspace_key, kind, part, documents, length, revision, removal)
    SELECT t.key, s.kind, 0, s.documents, s.length, (random() * 2 ^ 62)::bigint, 0
    FROM targets t CROSS JOIN (
        SELECT kind, sum(documents) AS documents, sum(length) AS length FROM text_statistics
        WHERE workspace_key = %s GROUP BY kind
    ) s
"""
_STATES = """
    INSERT INTO vector_states (space_key, part, revision)
    SELECT new, 0, (random() * 2 ^ 62)::bigint FROM mapped WHERE "table" = 'spaces'
"""


@dataclass(frozen=True, slots=True)
class Store:
    """The database of a store, by its URI."""

    db: str
    progress: Callable[[str], None] = lambda line: None

    def messages(self) -> int:
        """The number of messages in all workspaces."""
        with self._connected() as connection:
            row = connection.execute("SELECT count(*) FROM messages").fetchone()
        return int(row[0]) if row else 0

    def copy(self, source: str, names: Sequence[str]) -> None:
        """Copy a workspace under each of these names. Raises ValueError if it has rows that are
        not copied, such as tasks."""
        with self._connected() as connection:
            _Copies(connection, source).add(names, self.progress)
            connection.execute("VACUUM (ANALYZE)")

    def _connected(self) -> psycopg.Connection[Any]:
        uri = make_url(self.db).set(drivername="postgresql")
        return psycopg.connect(uri.render_as_string(hide_password=False), autocommit=True)


class _Copies:
    def __init__(self, connection: psycopg.Connection[Any], source: str) -> None:
        self._connection = connection
        row = self._run("SELECT key FROM workspaces WHERE slug = %s", source).fetchone()
        if row is None:
            raise ValueError(f"no workspace {source}")
        self._source: int = row[0]

    def add(self, names: Sequence[str], progress: Callable[[str], None]) -> None:
        self._refuse_others()
        self._run("SET session_replication_role = replica; SET jit = off")
        self._run("SET maintenance_work_mem = '1GB'")
        self._run(_TEMPORARY)
        indexes = self._run(_INDEXES, list(INDEXED)).fetchall()
        for name, _ in indexes:
            self._run(f"DROP INDEX {name}")
        self._workspaces(names)
        for table in SMALL:
            self._map(table, self._keys(table))
            self._copy(table)
        for table in LARGE:
            keys = self._keys(table)
            for start in range(0, len(keys), CHUNK):
                with self._connection.transaction():
                    self._map(table, keys[start : start + CHUNK])
                    self._copy(table)
                    self._copy_texts(table)
                    if table == "conclusions":
                        self._copy_vectors()
                    self._run(_UNMAP, table)
                progress(f"{table}: {min(start + CHUNK, len(keys)):,} for each copy")
        self._run(_STATISTICS, self._source)
        self._run(_STATES)
        for name, definition in indexes:
            self._run(definition)
            progress(f"index {name}")

    def _refuse_others(self) -> None:
        for table in metadata.sorted_tables:
            is_copied = table.name in (*SMALL, *LARGE)
            if "workspace_key" in table.c and not is_copied and self._keys(table.name):
                raise ValueError(f"rows of {table.name} are not copied")

    def _workspaces(self, names: Sequence[str]) -> None:
        columns = [column.name for column in metadata.tables["workspaces"].c]
        for number, name in enumerate(names):
            own = {"key": "nextval('workspaces_key_seq')", "uid": UID, "slug": "%(name)s"}
            own["v1_name"] = own["slug"]
            key = self._connection.execute(
                (
                    f"INSERT INTO workspaces ({', '.join(columns)}) SELECT "
                    f"{', '.join(own.get(column, column) for column in columns)} "
                    "FROM workspaces WHERE key = %(source)s RETURNING key"
                ).encode(),
                {"name": name, "source": self._source},
            ).fetchall()[0][0]
            self._run("INSERT INTO targets VALUES (%s, %s, %s)", number, name, key)

    def _keys(self, table: str) -> list[int]:
        rows = self._run(
            f"SELECT key FROM {table} WHERE workspace_key = %s ORDER BY key", self._source
        )
        return [key for (key,) in rows]

    def _map(self, table: str, keys: Sequence[int]) -> None:
        """Give the copies of these rows their keys, in the order in which they will be stored."""
        self._run(_MAP.format(table=table, alternating=ALTERNATING), list(keys))

    def _copy(self, table: str) -> None:
        """Store the copies of the mapped rows."""
        own = {"key": "m.new", "workspace_key": "t.key"}
        if "uid" in metadata.tables[table].c:
            own["uid"] = UID
        self._insert(table, table, own)

    def _copy_texts(self, table: str) -> None:
        code = KINDS[LARGE[table]]
        letter = PREFIXES[code]
        texts = _TEXTS.format(mark=MARK, start=len(f"{letter}{self._source}_") + 1)
        words = f"replace(s.marked, '{MARK}', '{letter}' || t.key || '_')::text[]"
        id = f"m.new * 4 + {code}"
        # The last term is the range of the id.
        terms = f"{words} || ('{letter}' || t.key || '#' || (({id}) >> {RANGE_BITS}))"
        own = {"id": id, "workspace_key": "t.key", "terms": terms}
        self._insert("text_rows", table, own, texts, "id", f"m.old * 4 + {code}")

    def _copy_vectors(self) -> None:
        own = {"row_key": "m.new", "version": VERSION}
        self._insert("vectors", "conclusions", own, "vectors", "row_key")

    def _insert(
        self,
        into: str,
        mapped: str,
        own: Mapping[str, str],
        source: str | None = None,
        key: str = "key",
        old: str = "m.old",
    ) -> None:
        """Store a row of `into` for each mapped row of the table `mapped`. `own`: column → its
        value, where it is not that of the source or the key of a copy."""
        columns = self._columns(into)
        values = {column: f"s.{column}" for column in columns}
        joins = []
        for column, table in REFERENCES.items():
            if column in values:
                joins.append(
                    f"""LEFT JOIN mapped {column}_ ON {column}_."table" = '{table}' """
                    f"AND {column}_.copy = m.copy AND {column}_.old = s.{column}"
                )
                values[column] = f"{column}_.new"
        self._run(
            _ROWS.format(
                into=into,
                columns=", ".join(columns),
                values=", ".join((values | dict(own)).values()),
                source=source or into,
                key=key,
                old=old,
                joins=" ".join(joins),
                table=mapped,
            )
        )

    def _columns(self, table: str) -> list[str]:
        """Of a table, without those that the database computes."""
        rows = self._run(_COLUMNS, table).fetchall()
        return [name for (name,) in rows]

    def _run(self, sql: str, *values: object) -> psycopg.Cursor[Any]:
        return self._connection.execute(sql.encode(), values or None)
