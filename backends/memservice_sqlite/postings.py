"""Postings of several terms, combined into the rows with the greatest total weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Postings:
    """Ids of rows, each with the sum of the weights with which it was added."""

    def __init__(self) -> None:
        self._ids: list[NDArray[np.int64]] = []
        self._weights: list[NDArray[np.float64]] = []
        self._sums: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
        """What `_combined` returned last, until more is added."""

    def add(self, ids: str | None, weight: float) -> None:
        """Add a weight to rows, given as distinct ids separated by commas."""
        if ids:
            added = np.fromstring(ids, np.int64, sep=",")
            self._sums = None
            self._ids.append(added)
            self._weights.append(np.full(len(added), weight))

    @property
    def rows(self) -> int:
        ids, _ = self._combined()
        return len(ids)

    def best(self, limit: int) -> list[int]:
        """Ids of the `limit` rows with the greatest weight (ties: the greatest id), best first."""
        ids, weights = self._combined()
        # The ids are sorted, so a stable order by weight has ties by id.
        chosen: list[int] = ids[np.argsort(weights, kind="stable")[::-1][:limit]].tolist()
        return chosen

    def _combined(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Distinct ids, ascending, and their weights. Weights are added in the order of `add`, so
        that equal sums are equal numbers."""
        if self._sums is None:
            added = np.concatenate([np.empty(0, np.int64), *self._ids])
            weights = np.concatenate([np.empty(0), *self._weights])
            ids, row_of_posting = np.unique(added, return_inverse=True)
            self._sums = ids, np.bincount(row_of_posting, weights, len(ids)).astype(np.float64)
        return self._sums
