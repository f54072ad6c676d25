"""Statements written with SQLAlchemy Core, compiled once per shape, and run on the driver's own
cursor.

Building and compiling an expression costs ten times what SQLite takes to run it, and SQLAlchemy's
execution three times as much again. So a statement is looked up by its shape (which conditions on
which columns, in which order) and only its values change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

Value = Any


class Cursor(Protocol):
    """What is used of a DB-API cursor."""

    rowcount: int
    lastrowid: Any

    def execute(self, sql: str, values: Any, /) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def fetchone(self) -> Any: ...


class Slots:
    """The bind parameters of a statement that is being written, in the order in which its values
    will be listed."""

    def __init__(self) -> None:
        self.taken: list[sa.BindParameter[Any]] = []

    def take(self, type_: TypeEngine[Any]) -> sa.BindParameter[Any]:
        """The place of the next value."""
        slot: sa.BindParameter[Any] = sa.bindparam(f"v{len(self.taken)}", type_=type_)
        self.taken.append(slot)
        return slot


Writer = Callable[[Slots], sa.Executable]


class Prepared:
    """One compiled statement."""

    __slots__ = ("_constants", "_converters", "_names", "sql")

    def __init__(self, statement: sa.Executable, slots: Slots, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
        assert isinstance(compiled, SQLCompiler)
        self.sql = str(compiled)
        places = {slot.key: index for index, slot in enumerate(slots.taken)}
        converters = [
            slot.type.dialect_impl(dialect).bind_processor(dialect) for slot in slots.taken
        ]
        given = compiled.params  # computed at each look
        names: Sequence[str] = (
            compiled.positiontup if compiled.positiontup is not None else list(given)
        )
        # Per parameter of the text: the place of its value (-1: a constant of the statement), how
        # the value is converted, the constant.
        self._constants = [given[name] for name in names]
        self._converters = [
            (places.get(name, -1), converters[places[name]] if name in places else None)
            for name in names
        ]
        self._names = None if compiled.positiontup is not None else tuple(names)

    def run(self, cursor: Cursor, values: Sequence[Value]) -> Cursor:
        """Execute with the values of the slots, in their order."""
        cursor.execute(self.sql, self.parameters(values))
        return cursor

    def parameters(self, values: Sequence[Value]) -> Any:
        """As the driver takes them."""
        given = [
            self._constants[i]
            if index < 0
            else values[index]
            if convert is None
            else convert(values[index])
            for i, (index, convert) in enumerate(self._converters)
        ]
        return given if self._names is None else dict(zip(self._names, given, strict=True))


class Statements:
    """Compiled statements by shape. Shared between threads: at worst two compile the same one."""

    LIMIT = 2_000
    """Shapes that callers' filters make are without number; beyond this many, start again."""
    LARGE = 200
    """A statement with more values than this is not worth keeping."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: dict[Hashable, Prepared] = {}

    def get(self, shape: Hashable, write: Writer) -> Prepared:
        prepared = self._known.get(shape)
        if prepared is None:
            slots = Slots()
            prepared = Prepared(write(slots), slots, self._dialect)
            if len(self._known) >= self.LIMIT:
                self._known.clear()
            if len(slots.taken) <= self.LARGE:
                self._known[shape] = prepared
        return prepared

    @property
    def texts(self) -> list[str]:
        """The SQL of every statement that is kept, for those who want to see how it is carried
        out."""
        return [prepared.sql for prepared in self._known.values()]
