"""Statements of SQLAlchemy Core, compiled once per shape and run on the driver's own cursor.

Building and compiling an expression costs ten times what SQLite takes to run it, and SQLAlchemy's
execution costs three times as much. So a statement is looked up by its shape (conditions, their
columns and their order), and only its values change.
"""

# fast path: see docs/decisions/fast-paths.md#statements

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

Value = Any


class Cursor(Protocol):
    """The part of a DB-API cursor that is used here."""

    rowcount: int
    lastrowid: Any

    def execute(self, sql: str, values: Any, /) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def fetchone(self) -> Any: ...


class Executor(Protocol):
    """Runs statements: a cursor, or what runs each on a cursor of its own."""

    def execute(self, sql: str, values: Any, /) -> Any:
        """The cursor with the result."""


class Slots:
    """The bind parameters of a statement under construction, in the order of its values."""

    def __init__(self) -> None:
        self.taken: list[sa.BindParameter[Any]] = []

    def take(self, type_: TypeEngine[Any]) -> sa.BindParameter[Any]:
        """The bind parameter for the next value."""
        slot: sa.BindParameter[Any] = sa.bindparam(f"v{len(self.taken)}", type_=type_)
        self.taken.append(slot)
        return slot


Writer = Callable[[Slots], sa.Executable]


class Prepared:
    """One compiled statement."""

    __slots__ = ("_constants", "_converters", "_names", "is_query", "sql")

    def __init__(self, statement: sa.Executable, slots: Slots, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
        assert isinstance(compiled, SQLCompiler)
        self.sql = str(compiled)
        self.is_query = statement.is_select
        index_of_name = {slot.key: index for index, slot in enumerate(slots.taken)}
        converters = [
            slot.type.dialect_impl(dialect).bind_processor(dialect) for slot in slots.taken
        ]
        constants = compiled.params  # computed at each access
        names: Sequence[str] = (
            compiled.positiontup if compiled.positiontup is not None else list(constants)
        )
        # For each parameter of the text: the index of its value (-1: a constant of the statement),
        # the converter of the value, and the constant.
        self._constants = [constants[name] for name in names]
        self._converters = [
            (
                index_of_name.get(name, -1),
                converters[index_of_name[name]] if name in index_of_name else None,
            )
            for name in names
        ]
        self._names = None if compiled.positiontup is not None else tuple(names)

    def run(self, executor: Executor, values: Sequence[Value]) -> Cursor:
        """Execute with the values of the slots, in their order."""
        cursor: Cursor = executor.execute(self.sql, self.parameters(values))
        return cursor

    def parameters(self, values: Sequence[Value]) -> Any:
        """The parameters in the form that the driver needs."""
        arguments = [
            self._constants[i]
            if index < 0
            else values[index]
            if convert is None
            else convert(values[index])
            for i, (index, convert) in enumerate(self._converters)
        ]
        return arguments if self._names is None else dict(zip(self._names, arguments, strict=True))


class Statements:
    """Compiled statements by shape. Shared between threads: at worst two of them compile the same
    one."""

    LIMIT = 2_000
    """Maximum number of cached statements; the cache is emptied when it is full. Callers' filters
    can have any number of shapes."""
    LARGE = 200
    """A statement with more values than this is not cached."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._compiled: dict[Hashable, Prepared] = {}

    def get(self, shape: Hashable, write: Writer) -> Prepared:
        prepared = self._compiled.get(shape)
        if prepared is None:
            slots = Slots()
            prepared = Prepared(write(slots), slots, self._dialect)
            if len(self._compiled) >= self.LIMIT:
                self._compiled.clear()
            if len(slots.taken) <= self.LARGE:
                self._compiled[shape] = prepared
        return prepared

    @property
    def texts(self) -> list[str]:
        """The SQL of every cached statement, for instance to explain it."""
        return [prepared.sql for prepared in self._compiled.values()]
