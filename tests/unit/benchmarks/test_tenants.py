"""Copies of a workspace are what the product has written, and the benchmark measures among them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.load import __main__ as load
from benchmarks.load import growth, servers
from benchmarks.load.client import post
from benchmarks.load.copies import Store
from memservice.app import create_app
from memservice_postgres import text
from support.stores.postgres_server import connect, drop_database
from support.stores.postgres_store import new_store

pytestmark = pytest.mark.slow

KEYED = ("peers", "sessions", "collections", "spaces", "messages", "conclusions")
"""Tables whose rows are named by others."""
NAMED = {
    "session_key": "sessions",
    "author_key": "peers",
    "peer_key": "peers",
    "observer_key": "peers",
    "observed_key": "peers",
    "collection_key": "collections",
}
UID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{20}")


@pytest.fixture
def db(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(growth, "CONCLUSIONS", 200)
    uri = new_store()
    yield uri
    drop_database(uri)


def filled(db: str, messages: int, *names: str) -> None:
    with servers.opened(db, growth.OPTIONS) as runtime:
        application = create_app(runtime.settings, runtime)
        for name in names:
            growth.fill(application, 0, messages, growth.path(name), lambda line: None)


class Rows:
    """The rows of a workspace, with positions in it instead of keys."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        self._connection = connection
        self.name = name
        rows = connection.execute("SELECT key FROM workspaces WHERE slug = %s", (name,))
        self.key = rows.fetchall()[0][0]
        self.uids: set[str] = set()
        self._positions = {
            table: {row["key"]: position for position, row in enumerate(self._read(table))}
            for table in KEYED
        }

    def _read(self, table: str, order: str = "key") -> list[dict[str, Any]]:
        condition = "s.workspace_key = %s"
        if table == "vectors":
            condition = "s.space_key IN (SELECT key FROM spaces WHERE workspace_key = %s)"
        rows = self._connection.execute(
            f"SELECT to_jsonb(s) FROM {table} s WHERE {condition} ORDER BY {order}".encode(),
            (self.key,),
        )
        return [row for (row,) in rows]

    def of(self, table: str) -> list[dict[str, Any]]:
        order = {"text_rows": "kind, id", "vectors": "row_key"}.get(table, "key")
        return [self._comparable(row) for row in self._read(table, order)]

    def _comparable(self, row: dict[str, Any]) -> dict[str, Any]:
        comparable = dict(row)
        for column, table in NAMED.items():
            if comparable.get(column) is not None:
                comparable[column] = self._positions[table][comparable[column]]
        if "uid" in comparable:
            assert UID.fullmatch(comparable["uid"])
            self.uids.add(comparable.pop("uid"))
        if "terms" in comparable:
            id = comparable.pop("id")
            key, code = divmod(id, 4)
            comparable["row"] = self._positions["messages" if code == 0 else "conclusions"][key]
            prefix = f"{'mcd'[code]}{self.key}_"
            assert comparable["terms"].pop() == text._range(prefix, id >> text.RANGE_BITS)
            assert all(term.startswith(prefix) for term in comparable["terms"])
            comparable["terms"] = [term.removeprefix(prefix) for term in comparable["terms"]]
        if "space_key" in comparable:
            comparable["space_key"] = self._positions["spaces"][comparable["space_key"]]
            comparable["row_key"] = self._positions["conclusions"][comparable["row_key"]]
            assert comparable.pop("version")
        comparable.pop("key", None)
        comparable.pop("workspace_key", None)
        return comparable

    def statistics(self) -> list[Any]:
        return self._connection.execute(
            "SELECT kind, sum(documents), sum(length), bool_and(revision <> 0), max(removal) "
            "FROM text_statistics WHERE workspace_key = %s GROUP BY kind ORDER BY kind",
            (self.key,),
        ).fetchall()


@pytest.mark.parametrize("number", [1_100, pytest.param(2_500, marks=pytest.mark.heavy)])
def test_a_copy_has_the_rows_that_the_product_wrote(db: str, number: int) -> None:
    """And messages of copies alternate, and one is read, searched and written like its source."""
    filled(db, number, "source")
    with connect(db) as connection:
        tables = {
            str(table)
            for (table,) in connection.execute(
                "SELECT table_name::text FROM information_schema.columns WHERE table_schema = "
                "'public' AND column_name IN ('workspace_key', 'space_key')"
            )
        } - {"text_statistics", "vector_states"}
        before = indexes(connection)
        Store(db).copy("source", ["first", "second"])
        assert indexes(connection) == before
        source, *copied = (Rows(connection, name) for name in ("source", "first", "second"))
        for table in sorted(tables):
            expected = source.of(table)
            for each in copied:
                assert each.of(table) == expected, table
        for each in copied:
            assert each.statistics() == source.statistics()
            assert len(each.uids) == len(source.uids) > number + 200
            assert not each.uids & source.uids
        assert len(source.of("messages")) == len(source.of("text_rows")) - 200 == number
        assert len(source.of("vectors")) == 200
        check_that_messages_alternate(connection, number)
    check_that_it_is_used_like_its_source(db)


def indexes(connection: psycopg.Connection[Any]) -> set[Any]:
    return set(
        connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
        ).fetchall()
    )


def check_that_messages_alternate(connection: psycopg.Connection[Any], number: int) -> None:
    rows = connection.execute(
        "SELECT workspace_key FROM messages WHERE key > %s ORDER BY key LIMIT 40", (number,)
    )
    spaces = [key for (key,) in rows]
    assert [len(set(spaces[start : start + 10])) for start in (0, 10, 20, 30)] == [1, 1, 1, 1]
    assert spaces[0] == spaces[20] != spaces[10] == spaces[30]


def check_that_it_is_used_like_its_source(db: str) -> None:
    with servers.opened(db, growth.OPTIONS) as runtime:
        application = create_app(runtime.settings, runtime)

        def answers(name: str) -> list[Any]:
            workspace = growth.path(name)
            pair = {"query": "word1 word70", "filters": growth.PAIR}
            message = {"messages": [{"peer_id": "ann", "content": "a quokka"}]}
            listed = f"{workspace}/sessions/{growth.FIXED}/messages/list?page=3"
            searched = post(f"{workspace}/search", {"query": "word1 word70"})
            items = growth.answered(application, searched)
            return [
                [item["content"] for item in items],
                [
                    item["content"]
                    for item in growth.answered(application, post(listed, {}))["items"]
                ],
                [
                    item["content"]
                    for item in growth.answered(
                        application, post(f"{workspace}/conclusions/query", pair)
                    )
                ],
                len(
                    growth.answered(
                        application, post(f"{workspace}/sessions/fixed/messages", message)
                    )
                ),
                [
                    item["content"]
                    for item in growth.answered(
                        application, post(f"{workspace}/search", {"query": "quokka"})
                    )
                ],
            ]

        assert answers("first") == answers("source")


def test_a_workspace_with_tasks_is_not_copied(db: str) -> None:
    with servers.opened(db, {}) as runtime:
        application = create_app(runtime.settings, runtime)
        message = {"messages": [{"peer_id": "ann", "content": "I moved to Ghent."}]}
        growth.answered(application, post("/v3/workspaces/source/sessions/one/messages", message))
    with pytest.raises(ValueError, match="rows of tasks are not copied"):
        Store(db).copy("source", ["copied"])
    with pytest.raises(ValueError, match="no workspace missing"):
        Store(db).copy("missing", ["copied"])


@pytest.mark.heavy
def test_the_store_of_growth_is_measured_among_tenants(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ["--requests", "1", "--rounds", "1"]
    command = ["tenants", "--db", db, *plan, "--tenants", "3", "--size", "1100"]
    with pytest.raises(ValueError, match="use a store that `growth` has filled"):
        load.main(command)
    load.main(["growth", "--db", db, *plan, "--sizes", "1200"])
    saved = tmp_path / "tenants.json"
    capsys.readouterr()
    load.main([*command, "--save", str(saved)])
    _, by_workspace = json.loads(saved.read_text())
    assert list(by_workspace) == ["growth", "tenant"]
    written = 2 * (1 + 20)  # while a workspace is measured, with the warming up
    for points in by_workspace.values():
        before, after = (point["messages"] for point in points)
        assert before == 1_200 + written + 1_100
        assert after - before == 2 * written + 2 * (1_100 + written)
        for point in points:
            assert [cell["errors"] for cell in point["cells"]] == [{}] * len(point["cells"])
    table = capsys.readouterr().out
    assert "Workspace `tenant`:" in table
    assert "| search, workspace |" in table
