"""Lists of integers on their way to the database and back: keys, and columns of many rows."""

# fast path: see docs/decisions/fast-paths.md#integers

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg.abc import Buffer
from psycopg.types.array import ListDumper

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INT8_ARRAY = 1016
# PostgreSQL's binary format of an array: dimensions, null flag, type, size, first index; then for
# each number its length and value.
_HEADER_BYTES = 20
_NUMBER = np.dtype([("length", ">i4"), ("value", ">i8")])


class IntegerListDumper(ListDumper):
    """Writes a list of integers in one step. psycopg writes it item by item, as it does here with
    all other lists."""

    def dump(self, obj: list[Any]) -> Buffer | None:
        # psycopg refuses lists of several types, so the others are integers or None too.
        if self.oid == _INT8_ARRAY and type(obj[0]) is int and None not in obj:
            return f"{{{','.join(map(repr, obj))}}}".encode()
        return super().dump(obj)


def numbers(sent: bytes) -> NDArray[np.int64]:
    """The numbers of a `bigint[]` without nulls, as PostgreSQL's `array_send` returns them."""
    return np.frombuffer(sent, _NUMBER, offset=_HEADER_BYTES)["value"].astype(np.int64)
