"""The embedder seam: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from memservice.spi.capabilities import Capability

if TYPE_CHECKING:
    from memservice.spi.storage import Finding
    from memservice.spi.vectors import Vector

Purpose = Literal["document", "query"]


class Embedder(Protocol):
    """Turns texts into vectors. Safe to call from several threads."""

    id: str
    """Names the model and its version; vectors of different ids are never compared. At most 200
    characters."""
    capabilities: frozenset[Capability]
    duplicate_distance: float | None
    """Two texts at this cosine distance or below state the same; None if the distance does not show
    that."""

    @property
    def dimension(self) -> int:
        """The dimension of every vector. An embedder that is not `INLINE` may have to embed a text
        to determine it, which can fail. Do not read it inside a transaction, nor on the request
        path before the first vector."""
        ...

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        """One float32 vector for each text, in order: of length 1, or all zeros for a text without
        content (white space only). No texts give no vectors.

        Equal texts have equal vectors, and different ones different vectors. A text may have any
        length and any characters. With the capability `INLINE`, a short text takes well below a
        millisecond. The caller's list is not changed.
        """
        ...


@runtime_checkable
class Examinable(Protocol):
    """An embedder with files on this machine that can be damaged, for `memservice doctor`."""

    def examine(self) -> Sequence[Finding]:
        """Problems of its files; none if they are complete. Takes milliseconds."""
        ...
