"""Which conclusions fit the others least: where a dream had better begin to look."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memservice.domain.records import Conclusion
from memservice.runtime import Runtime
from memservice.services.indexing import CONCLUSION

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


def outliers(
    rt: Runtime, workspace_key: int, conclusions: Sequence[Conclusion], seed: str
) -> list[str]:
    """Uids of the conclusions whose nearest neighbours are farthest away, the oddest first; empty
    unless the settings ask for it.

    `conclusions` is oldest first. A sample is compared all with all, so there is nothing that a
    tree would have to approximate. To be called with no view open, since the vectors may be
    elsewhere. `seed` settles which ones a random sample takes.
    """
    settings = rt.settings.dream.surprisal
    if not settings.enabled:
        return []
    rows = [row for row in conclusions if row.level in settings.include_levels]
    if settings.sampling_strategy == "recent":
        rows = rows[-settings.sample_size :]
    elif settings.sampling_strategy == "random":
        rows = random.Random(seed).sample(rows, min(settings.sample_size, len(rows)))
    vectors = _vectors(rt, workspace_key, [row.key for row in rows])
    rows = [row for row in rows if row.key in vectors]
    if len(rows) < 2 * settings.tree_k:
        return []
    scores = _scores([vectors[row.key] for row in rows], settings.tree_k)
    number = math.ceil(len(rows) * settings.top_percent_surprisal)
    ranked = sorted(zip(rows, scores, strict=True), key=lambda pair: (-pair[1], pair[0].key))
    return [row.uid for row, _ in ranked[:number]]


def _vectors(rt: Runtime, workspace_key: int, keys: Sequence[int]) -> dict[int, Vector]:
    with rt.storage.read() as tx:
        space = tx.spaces.active(workspace_key, CONCLUSION)
        if space is None:
            return {}
        if rt.vectors_transactional:
            return rt.vectors.fetch(tx, space, keys)
    return rt.vectors.fetch(None, space, keys)


def _scores(vectors: Sequence[Vector], neighbours: int) -> list[float]:
    """For each vector the mean cosine distance to its nearest others."""
    import numpy as np

    matrix = np.stack([vector / np.linalg.norm(vector) for vector in vectors])
    distances = 1.0 - matrix @ matrix.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.partition(distances, neighbours - 1, axis=1)[:, :neighbours]
    return [float(score) for score in nearest.mean(axis=1)]
