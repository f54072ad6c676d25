"""`memservice plugins check` fills a store for each test, and erases it afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from marshmallow import Schema, fields

from memservice.domain import records as r
from memservice.domain.errors import ConfigurationError
from memservice.domain.filters.ast import equals
from memservice.plugins import load_plugins
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, StorageProvider, VectorIndexProvider
from memservice.spi.storage import Storage
from memservice.spi.vectors import VectorIndex
from memservice.testing.scratch import Scratch
from memservice_memory.indexes import MemoryVectorIndex
from support.stores.postgres_server import connect, drop_database, new_database

CONTEXT = Context(lambda: datetime.now(UTC), logging.getLogger("memservice.test"))
SHARED = frozenset({Capability.SHARED})
SCHEMAS = (
    "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' AND nspname NOT IN "
    "('public', 'information_schema')"
)


class Named(Schema):
    url = fields.String()
    namespace = fields.String()


class Unnamed(Schema):
    url = fields.String()


class Town:
    """Offers an index, and notes with which settings it is opened and erased."""

    def __init__(self, settings: type[Schema]) -> None:
        self.opened: list[Mapping[str, Any]] = []
        self.erased: list[Mapping[str, Any]] = []
        self.provider = VectorIndexProvider(
            name="town",
            open=self.open,
            settings=settings,
            capabilities=SHARED,
            erase=lambda settings, context: self.erased.append(settings),
        )

    def open(self, settings: Mapping[str, Any], context: Context) -> VectorIndex:
        self.opened.append(settings)
        return MemoryVectorIndex()

    def scratch(self, uri: str) -> Scratch:
        return Scratch(
            load_plugins(),
            self.provider,
            {"url": "operator's", "namespace": "operator's"},
            uri,
            CONTEXT,
        )


def test_each_test_has_its_own_namespace_which_is_erased(tmp_path: Path) -> None:
    town = Town(Named)
    scratch = town.scratch("town://here")
    for _ in range(2):
        with scratch.one(tmp_path) as open_one:
            open_one()
            open_one()
            assert len(town.erased) == len(town.opened) // 2 - 1
    assert [each["url"] for each in town.opened] == ["town://here"] * 4
    first, again, second, _ = (each["namespace"] for each in town.opened)
    assert first == again
    assert first != second
    assert "operator's" not in (first, second)
    assert [each["namespace"] for each in town.erased] == [first, second]


def test_a_failed_test_erases_its_store_and_an_unused_one_nothing(tmp_path: Path) -> None:
    town = Town(Named)
    with pytest.raises(ZeroDivisionError), town.scratch("town://here").one(tmp_path):
        _ = 1 / 0
    assert town.erased == []
    with pytest.raises(ZeroDivisionError), town.scratch("town://here").one(tmp_path) as open_one:
        open_one()
        _ = 1 / 0
    assert len(town.erased) == 1


def test_without_namespaces_the_location_needs_a_placeholder(tmp_path: Path) -> None:
    town = Town(Unnamed)
    with pytest.raises(ConfigurationError, match=r"\{path\} or \{unique\}"):
        town.scratch("town://here")
    for uri in ("town://{unique}/x", "town://{path}"):
        scratch = town.scratch(uri)
        for folder in ("one", "two"):
            with scratch.one(tmp_path / folder) as open_one:
                open_one()
    *named, one, two = (each["url"] for each in town.opened)
    assert len(set(named)) == 2
    assert all(each.startswith("town://check_") and each.endswith("/x") for each in named)
    assert (one, two) == (f"town://{tmp_path}/one/place", f"town://{tmp_path}/two/place")


@pytest.fixture
def database() -> Iterator[str]:
    uri = new_database()
    yield uri
    drop_database(uri)


def test_stores_in_one_database_are_separate_and_erased_afterwards(
    database: str, tmp_path: Path
) -> None:
    plugins = load_plugins()
    provider: StorageProvider = plugins.storage(database)
    scratch = Scratch(plugins, provider, {"schema": "public", "vectors": False}, database, CONTEXT)
    with connect(database) as connection:
        with (
            scratch.one(tmp_path) as open_one,
            scratch.one(tmp_path) as open_other,
            ExitStack() as closing,
        ):
            for n, opened in enumerate((open_one, open_other)):
                storage: Storage = opened()
                closing.callback(storage.close)
                storage.migrate()
                storage.write(lambda tx, n=n: tx.rows.put([r.Fact(name=f"store {n}", value="")]))  # type: ignore[misc]
                with storage.read() as tx:
                    assert [fact.name for fact in tx.rows.page(r.Fact, equals())] == [f"store {n}"]
            assert len(connection.execute(SCHEMAS).fetchall()) == 2
        assert connection.execute(SCHEMAS).fetchall() == []
        assert (
            connection.execute(
                "SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            ).fetchall()
            == []
        )


def test_the_shared_extension_is_not_erased(database: str, tmp_path: Path) -> None:
    plugins = load_plugins()
    scratch = Scratch(plugins, plugins.storage(database), {"vectors": True}, database, CONTEXT)
    with connect(database) as connection:
        with scratch.one(tmp_path) as open_one:
            storage = open_one()
            storage.migrate()
            storage.close()
            connection.execute("CREATE TABLE public.theirs (one vector(2))")
            connection.execute("INSERT INTO public.theirs VALUES ('[1,2]')")
        assert connection.execute("SELECT one::text FROM public.theirs").fetchall() == [("[1,2]",)]
        assert connection.execute(SCHEMAS).fetchall() == []


def test_the_public_schema_is_not_erased(database: str) -> None:
    plugins = load_plugins()
    with pytest.raises(ConfigurationError, match="DB_SCHEMA"):
        plugins.erase(plugins.storage(database), {"uri": database}, CONTEXT)
