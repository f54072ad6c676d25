"""Lists of integers arrive in PostgreSQL as psycopg would send them, and come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from memservice_postgres.integers import IntegerListDumper, numbers
from support.stores.postgres_server import connect, drop_database, new_database

BIGGEST = 2**63 - 1


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection[Any]]:
    uri = new_database()
    with connect(uri) as opened:
        for dumper in (Int8Dumper, Int8BinaryDumper):
            opened.adapters.register_dumper(int, dumper)
        opened.adapters.register_dumper(list, IntegerListDumper)
        yield opened
    drop_database(uri)


@pytest.mark.parametrize(
    "items", [[1], [3, -2, 0, BIGGEST, -BIGGEST], [1, None, 2], [None, 1], [[1, 2], [3, 4]], []]
)
def test_a_list_arrives_unchanged(connection: psycopg.Connection[Any], items: list[Any]) -> None:
    assert connection.execute("SELECT %s::bigint[]", (items,)).fetchone() == (items,)


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        (["a,b", 'quo"te', "back\\slash", "NULL", ""], "text[]"),
        ([1.5], "float8[]"),
        ([True], "bool[]"),
    ],
)
def test_other_lists_are_those_of_psycopg(
    connection: psycopg.Connection[Any], items: list[Any], kind: LiteralString
) -> None:
    assert connection.execute(f"SELECT %s::{kind}", (items,)).fetchone() == (items,)


def test_columns_come_back_as_numbers(connection: psycopg.Connection[Any]) -> None:
    items = [5, -7, BIGGEST]
    row = connection.execute(
        "SELECT array_send(array_agg(item)) FROM unnest(%s::bigint[]) AS item",
        (items,),
        binary=True,
    ).fetchone()
    assert row is not None
    assert numbers(row[0]).tolist() == items
