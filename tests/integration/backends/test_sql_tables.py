"""The tables hold exactly the records, and every look-up has its index."""

from __future__ import annotations

import types
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
import sqlalchemy as sa

from memservice.domain.records import Conclusion
from memservice.spi.schema import TABLES, TableSpec
from memservice_sql.tables import BY_RECORD, LIST_TABLES, metadata
from memservice_sql.types import JSON, UtcDateTime

KINDS: dict[Any, type[Any]] = {
    str: sa.Text,
    int: sa.BigInteger,
    bool: sa.Boolean,
    datetime: UtcDateTime,
    dict: type(JSON),
    list: type(JSON),
}


def python_type(hint: Any) -> tuple[Any, bool]:
    """The type of a field without `None`, and whether it may be None."""
    arguments = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (argument for argument in arguments if argument is not type(None))
        return get_origin(hint) or hint, True
    return get_origin(hint) or hint, False


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_a_table_has_the_columns_of_its_record(spec: TableSpec) -> None:
    table = BY_RECORD[spec.record]
    assert table.name == spec.name
    names = [column.name for column in table.columns]
    assert names[0] == "key"
    assert sorted(names) == sorted(spec.record.__struct_fields__)
    hints = get_type_hints(spec.record)
    for column in table.columns:
        kind, nullable = python_type(hints[column.name])
        assert isinstance(column.type, KINDS[kind]), column
        assert column.nullable == nullable, column


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_a_table_has_the_unique_constraints_of_its_record(spec: TableSpec) -> None:
    indexes = [index for index in BY_RECORD[spec.record].indexes if index.unique]
    by_columns = {tuple(column.name for column in index.columns): index for index in indexes}
    assert set(by_columns) == {unique.fields for unique in spec.unique}
    for unique in spec.unique:
        condition = by_columns[unique.fields].dialect_options["sqlite"]["where"]
        assert (condition is None) == (not unique.unless_state)
        assert all(
            repr(state) in str(condition.compile(compile_kwargs={"literal_binds": True}))
            for state in unique.unless_state
        )


def test_there_is_exactly_one_table_for_every_record_and_list() -> None:
    listed = {one.table.name for tables in LIST_TABLES.values() for one in tables}
    assert set(metadata.tables) == {spec.name for spec in TABLES} | listed
    hints = get_type_hints(Conclusion)
    assert {one.field for one in LIST_TABLES["conclusions"]} == {
        name for name in hints if python_type(hints[name])[0] is list
    }


def test_keys_are_never_reused() -> None:
    for spec in TABLES:
        assert BY_RECORD[spec.record].dialect_options["sqlite"]["autoincrement"] is True


def leading(table: sa.Table) -> Iterator[str]:
    """First columns of the indexes, the primary key's included."""
    yield next(iter(table.primary_key.columns)).name
    for index in table.indexes:
        if index.dialect_options["sqlite"]["where"] is None:
            yield index.columns[0].name


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_erasing_scans_no_table(table: sa.Table) -> None:
    """What refers to a row is found by an index when that row is erased, and so is what belongs to
    a workspace."""
    columns = {column.name for column in table.columns if column.foreign_keys}
    columns |= {"workspace_key"} & set(table.columns.keys())
    assert columns <= set(leading(table))
