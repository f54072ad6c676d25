"""The embedder seam: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from memservice.spi.capabilities import Capability

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

Purpose = Literal["document", "query"]


class Embedder(Protocol):
    """Turns texts into vectors. Safe to call from several threads."""

    id: str
    """Names the model and its version; vectors of different ids are never compared. At most 200
    characters."""
    capabilities: frozenset[Capability]
    duplicate_distance: float | None
    """Cosine distance at or below which two texts say the same; None where distance does not
    tell."""

    @property
    def dimension(self) -> int:
        """Of every vector. An embedder that is not `INLINE` may have to make one to know, and fail
        at that: never to be asked for on the request path before it has made a vector, nor inside a
        transaction."""
        ...

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        """One float32 vector per text, in order, each of length 1, or all zeros for a text without
        any content."""
        ...
