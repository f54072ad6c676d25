"""Vectors on their way to the database and back, in binary: as text they cost a thousand times as
much."""

# fast path: see docs/decisions/fast-paths.md#floats

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

_FLOAT4 = 700
_FLOAT4_ARRAY = 1021


class FloatArray:
    """A vector as a parameter. The statement casts it: `%s::real[]::vector`."""

    __slots__ = ("data",)

    def __init__(self, vector: Vector) -> None:
        import numpy as np

        # PostgreSQL's binary format of a float4 array: dimensions, null flag, type, size, first
        # index; then for each number its length and value.
        numbers = np.empty(len(vector), [("length", ">i4"), ("value", ">f4")])
        numbers["length"] = 4
        numbers["value"] = vector
        self.data = struct.pack(">5i", 1, 0, _FLOAT4, len(vector), 1) + numbers.tobytes()


class FloatArrayDumper(Dumper):
    format = Format.BINARY
    oid = _FLOAT4_ARRAY

    def dump(self, obj: FloatArray) -> Buffer:
        return obj.data


def vector_of(sent: bytes) -> Vector:
    """The vector in the output of pgvector's `vector_send`: dimension, two empty bytes, numbers."""
    import numpy as np

    return np.frombuffer(sent, ">f4", offset=4).astype(np.float32)
