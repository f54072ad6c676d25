"""Vectors as they are stored: of the right dimension, finite, and of length one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memservice.domain.records import Space

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


def checked(space: Space, vector: Vector) -> Vector:
    """The vector as float32. Raises ValueError for another dimension than the space's, and for
    numbers that are not finite."""
    found = np.asarray(vector, np.float32)
    if found.shape != (space.dimension,):
        shape = "×".join(map(str, found.shape))
        raise ValueError(
            f"a vector of dimension {shape} does not fit space {space.key}, whose "
            f"dimension is {space.dimension}"
        )
    if not np.isfinite(found).all():
        raise ValueError("a vector has numbers that are not finite")
    return found


NEARLY = 1e-6
"""How far the square of a length may be from one in float32, which cannot be nearer."""


def unit(vectors: Vector) -> Vector:
    """Rows scaled to length one. Lengths are taken in float64: squares of large float32 numbers
    overflow.

    A row that has that length already stays bit by bit as it is, so that one which moves between
    stores does not drift.
    """
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    lengths = np.where(np.abs(squares - 1) <= NEARLY, 1.0, np.sqrt(squares))
    return np.asarray(vectors / lengths[:, None], np.float32)
