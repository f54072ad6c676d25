"""The levels of the text index: their number, and what is being merged.

FTS5 lists the blocks of an index by level, from new to old, in one record. Every merge of all
blocks ('optimize', or 'merge' with a negative number) adds two levels, and none is removed when it
is empty. SQLite 3.40 writes any number of levels, but does not read more than 2,000: then every
statement that uses the index fails with "database disk image is malformed". An empty level has no
meaning, because only the order of the blocks counts.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

MAX_LEVELS = 64
"""The record is shortened when it has more."""
KEPT_LEVELS = 16
"""Levels after that. Not fewer, because FTS5 merges low levels often, and the largest block is in
the highest."""

_READ = "SELECT block FROM text_index_data WHERE id = 10"
_WRITE = "UPDATE text_index_data SET block = ? WHERE id = 10"
_COOKIE = 4
"""Bytes before the numbers."""


class Level(NamedTuple):
    merging: int
    """Blocks that a merge, which is not finished, writes into one of the next level."""
    blocks: int
    raw: bytes


def shorten(driver: sqlite3.Connection) -> None:
    """Remove empty levels if there are many. In a transaction, and best after a statement that
    merged: then FTS5 has no copy of the record in memory. An old copy of this connection does no
    harm, but writes the empty levels again."""
    row = driver.execute(_READ).fetchone()
    record = None if row is None else shortened(row[0])
    if record is not None:
        driver.execute(_WRITE, (record,))


def shortened(record: bytes) -> bytes | None:
    """The record without its oldest empty levels; None if it is short, or of an unknown form."""
    try:
        counts, levels = _read(record)
    except (IndexError, ValueError):
        return None
    if len(levels) <= MAX_LEVELS:
        return None
    spare = len(levels) - KEPT_LEVELS
    remaining: list[Level] = []
    for level in reversed(levels):
        if spare and not level.blocks:
            spare -= 1
        else:
            remaining.append(level)
    raw = b"".join(level.raw for level in reversed(remaining))
    return record[:_COOKIE] + _varint(len(remaining)) + counts + raw


def is_merging_all(driver: sqlite3.Connection) -> bool:
    """Whether a merge of all blocks, as they were when it began, is unfinished: the block that it
    writes is the only one of the oldest level. Call it in the transaction that merged. True too
    for a record of an unknown form."""
    row = driver.execute(_READ).fetchone()
    try:
        levels = [] if row is None else _read(row[0])[1]
    except (IndexError, ValueError):
        return True
    while levels and not levels[-1].blocks:
        levels.pop()
    return len(levels) > 1 and levels[-1].blocks == 1 and levels[-2].merging > 0


def _read(record: bytes) -> tuple[bytes, list[Level]]:
    """The bytes between the number of levels and the levels, and the levels from new to old. Raises
    IndexError or ValueError if the record is not of the known form."""
    number, begin = _number(record, _COOKIE)
    blocks, at = _number(record, begin)
    _, at = _number(record, at)
    counts = record[begin:at]
    levels: list[Level] = []
    for _ in range(number):
        start = at
        merging, at = _number(record, at)
        of_level, at = _number(record, at)
        for _ in range(3 * of_level):  # the number of the block, its first and its last page
            _, at = _number(record, at)
        levels.append(Level(merging, of_level, record[start:at]))
    outputs = [*levels[1:], Level(0, 0, b"")]
    if (
        at != len(record)
        or sum(level.blocks for level in levels) != blocks
        or any(
            level.merging and not output.blocks
            for level, output in zip(levels, outputs, strict=True)
        )
    ):
        raise ValueError("not the record of an index without contents")
    return counts, levels


def _number(record: bytes, at: int) -> tuple[int, int]:
    """The number at an offset, and the offset after it. Seven bits a byte, most significant first;
    a ninth byte has eight."""
    value = 0
    for _ in range(8):
        byte = record[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | record[at], at + 1


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([0x80 | value >> 7, value & 0x7F])
