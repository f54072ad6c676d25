"""Vectors on their way to the database and back, in binary: as text they would cost a thousand
times as much."""

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


class Reals:
    """One vector as a parameter; the statement casts it, `%s::real[]::vector`."""

    __slots__ = ("data",)

    def __init__(self, vector: Vector) -> None:
        import numpy as np

        # An array of float4 as PostgreSQL sends it: dimensions, nulls, type, size, first index;
        # then each number after its length.
        numbers = np.empty(len(vector), [("length", ">i4"), ("value", ">f4")])
        numbers["length"] = 4
        numbers["value"] = vector
        self.data = struct.pack(">5i", 1, 0, _FLOAT4, len(vector), 1) + numbers.tobytes()


class RealsDumper(Dumper):
    format = Format.BINARY
    oid = _FLOAT4_ARRAY

    def dump(self, obj: Reals) -> Buffer:
        return obj.data


def vector_of(sent: bytes) -> Vector:
    """A vector as pgvector's `vector_send` gives it: its dimension, two bytes of nothing, and the
    numbers."""
    import numpy as np

    return np.frombuffer(sent, ">f4", offset=4).astype(np.float32)
