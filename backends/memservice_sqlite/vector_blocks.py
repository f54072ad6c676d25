"""Vectors in memory: the rows of one (observer, observed) pair as numpy arrays, and a mask of those
that match a filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.spi.index_filter import IndexFilter
from memservice.spi.unit_vectors import unit
from memservice_sql.vector_blocks import KEY, ROW, Block, GrowingBlock
from memservice_sqlite.narrowing import micros

if TYPE_CHECKING:
    from memservice_sql.vector_blocks import Integers, Mask

NULL = int(np.iinfo(np.int64).min)
"""Stands for null; less than every key, code and time."""
NEVER_DELETED = int(np.iinfo(np.int64).max)

SESSION, AUTHOR, LEVEL, AT, DELETED_AT = range(ROW + 1, ROW + 6)
"""Columns of a block's `facts` after the vector's key and its row's key: the row's session, author,
level code and time, and the key of its tombstone."""
FACTS = DELETED_AT + 1
"""The number of these columns."""


class Levels:
    """Codes for the names of levels, within this process."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, level: str | None) -> int:
        return NULL if level is None else self._codes.setdefault(level, len(self._codes))

    def codes(self, levels: Iterable[str]) -> list[int]:
        return [self._codes[level] for level in levels if level in self._codes]


class Partition(GrowingBlock):
    """All rows of one pair, by ascending vector key.

    A deletion is a tombstone's key in a column, which the reader compares with the version that its
    own transaction sees.
    """

    def __init__(self, dimension: int, since: int, capacity: int = 0) -> None:
        super().__init__(dimension, FACTS, capacity)
        self.since = since
        """A tombstone's key. Rows deleted up to it may be missing here, so a transaction that sees
        an earlier version must not use this partition."""
        self.deleted_rows = 0
        self.counted = 0
        """The bytes that the cache has counted for it."""

    def mark_deleted(self, keys: Integers, tombstones: Integers) -> None:
        """Record deletions: sorted vector keys, and the tombstone's key for each. Keys that are not
        here belong to vectors that were stored and deleted since the last refresh."""
        keys_column = self._facts[: self.rows, KEY]
        index = np.searchsorted(keys_column, keys)
        matches = (
            np.flatnonzero(keys_column[np.minimum(index, self.rows - 1)] == keys)
            if self.rows
            else index[:0]
        )
        self._facts[index[matches], DELETED_AT] = tombstones[matches]
        self.deleted_rows += len(matches)
        if len(matches) < len(keys):
            self.since = max(self.since, int(tombstones.max()))

    def without_deleted(self, since: int) -> Partition:
        """A smaller copy, without rows deleted up to tombstone `since`, the newest one."""
        existing = self._facts[: self.rows, DELETED_AT] == NEVER_DELETED
        copy = Partition(len(self._matrix), since)
        matrix = self._matrix[:, : self.rows]
        copy.append(Block(self._facts[: self.rows][existing], matrix[:, existing]))
        return copy


def block_of(rows: Sequence[Sequence[Any]], dimension: int, levels: Levels) -> Block:
    """Selected rows (key, row, session, author, level, at, vector, …; `NULL` for a null key or
    time), in the same order."""
    columns = list(zip(*rows, strict=True))
    facts = np.empty((len(rows), FACTS), np.int64)
    for column in (KEY, ROW, SESSION, AUTHOR, AT):
        facts[:, column] = columns[column]
    facts[:, LEVEL] = [levels.code(level) for level in columns[LEVEL]]
    facts[:, DELETED_AT] = NEVER_DELETED
    vectors = np.frombuffer(b"".join(columns[AT + 1]), "<f4").reshape(-1, dimension)
    return Block(facts, unit(vectors).T)


def mask_of(
    facts: Integers, index_filter: IndexFilter, levels: Levels, newest: int, deleted: int
) -> Mask:
    """A mask of the rows that match `index_filter` and exist in a version with vectors up to key
    `newest` and tombstones up to `deleted`.

    Observers and observed peers are not checked: they are the same for all rows of a block.
    """
    mask: Mask = (facts[:, KEY] <= newest) & (facts[:, DELETED_AT] > deleted)
    if index_filter.sessions is not None:
        mask &= _any_of(facts[:, SESSION], index_filter.sessions)
    if index_filter.authors is not None:
        mask &= _any_of(facts[:, AUTHOR], index_filter.authors)
    if index_filter.levels is not None:
        mask &= _any_of(facts[:, LEVEL], levels.codes(index_filter.levels))
    since, until = micros(index_filter.since), micros(index_filter.until)
    if since is not None:
        mask &= facts[:, AT] >= since
    if until is not None:
        mask &= (facts[:, AT] <= until) & (facts[:, AT] != NULL)
    return mask


def _any_of(column: Integers, values: Sequence[int]) -> Mask:
    if len(values) == 1:
        return np.asarray(column == values[0])
    return np.isin(column, np.array(values, np.int64))
