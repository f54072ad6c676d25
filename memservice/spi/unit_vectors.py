"""Normalises vectors before they are stored: right dimension, finite numbers, length one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memservice.domain.records import Space

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


def checked(space: Space, vector: Vector) -> Vector:
    """The vector as float32. Raises ValueError if its dimension is not that of the space, or if it
    has numbers that are not finite."""
    array = np.asarray(vector, np.float32)
    if array.shape != (space.dimension,):
        shape = "×".join(map(str, array.shape))
        raise ValueError(
            f"a vector of dimension {shape} does not fit space {space.key}, whose "
            f"dimension is {space.dimension}"
        )
    if not np.isfinite(array).all():
        raise ValueError("a vector has numbers that are not finite")
    return array


UNIT_TOLERANCE = 1e-6
"""How far the square of a unit length may be from one, because of float32 rounding."""


def unit(vectors: Vector) -> Vector:
    """Rows scaled to length one. Lengths are computed in float64, because squares of large float32
    numbers overflow.

    A row of length one stays bit for bit the same, so vectors do not drift when they move between
    stores.
    """
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    lengths = np.where(np.abs(squares - 1) <= UNIT_TOLERANCE, 1.0, np.sqrt(squares))
    return np.asarray(vectors / lengths[:, None], np.float32)
