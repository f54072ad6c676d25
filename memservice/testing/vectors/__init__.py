"""The contract of a vector index.

Subclass `VectorIndexContract`, give it the fixture `open_index`, and run pytest: a callable without
arguments that opens the index of this test and returns it as an `Engine`. A second call within a
test opens the same index again (an index outside the storage without the capability `SHARED` is
opened once). Every test begins empty. An engine that stores less than float32 overrides
`tolerance`.
"""

from memservice.testing.vectors.base import (
    LONG,
    NAMED,
    NAMES,
    OURS,
    ROUNDS,
    SPACES,
    THEIRS,
    WIDE,
    WRITERS,
    OpenVectorIndex,
    at_angle,
    keys,
    row,
    space,
    vector,
)
from memservice.testing.vectors.changes import ChangesChapter
from memservice.testing.vectors.filters import FiltersChapter
from memservice.testing.vectors.scores import ScoresChapter
from memservice.testing.vectors.spaces import SpacesChapter

__all__ = [
    "LONG",
    "NAMED",
    "NAMES",
    "OURS",
    "ROUNDS",
    "SPACES",
    "THEIRS",
    "WIDE",
    "WRITERS",
    "OpenVectorIndex",
    "VectorIndexContract",
    "at_angle",
    "keys",
    "row",
    "space",
    "vector",
]


class VectorIndexContract(
    ScoresChapter,
    FiltersChapter,
    ChangesChapter,
    SpacesChapter,
):
    """The whole contract of a vector index."""
