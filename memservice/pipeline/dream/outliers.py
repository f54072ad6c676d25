"""The most unusual conclusions of a collection: a dream looks at them first."""

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
    """Uids of the conclusions with the greatest mean distance to their nearest neighbours, the most
    distant first; empty unless the settings enable it.

    `conclusions` is oldest first. All pairs of a sample are compared, so the distances are exact,
    without the approximation of a tree. Call it with no transaction open, since the vector index
    may be remote. `seed` determines a random sample.
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
