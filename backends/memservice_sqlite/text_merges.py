"""Merging the blocks of the text index, a few pages with each change.

FTS5 writes the words that a transaction adds or removes as a new block, and merges blocks so that
searches read few of them. By itself it does so rarely and much at once: a commit merges 64 pages
for each level, or a whole level, while all other writers wait. So this is switched off, and each
change merges in proportion to what it writes. In all, this is as much work.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy import Connection

from memservice_sqlite import text_levels

BLOCKS = 4
"""Blocks of one level that are merged into one: searches read fewer if it is less, but pages are
merged more often. If changes write more than they merge, levels get more blocks, and pages are
merged less often, so the number of blocks stays bounded."""
MERGED_PAGES = 4
"""Pages that a change merges for each page that it writes: a page is merged once on each level, and
there are few levels."""
ERASING_BLOCKS = 2
"""`BLOCKS` during a merge of all blocks, which FTS5 does not continue while a level of newer blocks
has as many as it merges, but fewer than this."""
PAGE_CHARACTERS = 4_000
"""Characters of terms that fill a page, or less: FTS5 stores a term once in each block."""
MAX_BLOCKS = 500
"""Of one level: then FTS5 merges all of them at once. Far above what there is, and below the number
of blocks that an index can have."""

COMMAND = "INSERT INTO text_index (text_index, rank) VALUES (?, ?)"
_STORED = "SELECT k, v FROM text_index_config"
SETTINGS = (("automerge", 0), ("crisismerge", MAX_BLOCKS), ("usermerge", BLOCKS))
"""FTS5 stores them with the index, for all connections."""


def configure(connection: Connection) -> None:
    """Switch off FTS5's own merging. What is set already is not written again: every connection
    would read the settings anew."""
    stored: dict[str, object] = dict(connection.exec_driver_sql(_STORED).all())
    changed = [(name, value) for name, value in SETTINGS if stored.get(name) != value]
    if changed:
        connection.exec_driver_sql(COMMAND, changed)


def merge(connection: Connection, characters: int) -> None:
    """Merge some pages after a change of the index with so many characters of terms."""
    pages = MERGED_PAGES * (1 + characters // PAGE_CHARACTERS)
    connection.exec_driver_sql(COMMAND, ("merge", pages))


def merge_all(driver: sqlite3.Connection, pages: int, *, begins: bool) -> bool:
    """Write some pages of a merge of all blocks into one, while others add blocks. True if there is
    more to merge. `begins`: the merge begins with all blocks that there are now, else it goes on:
    to begin again after each write of others, or to merge what they write, would never end."""
    if begins:
        driver.execute(COMMAND, ("usermerge", ERASING_BLOCKS))
    before = driver.total_changes
    driver.execute(COMMAND, ("merge", -pages if begins else pages))
    has_merged = driver.total_changes - before >= 2  # FTS5 reports it so
    return has_merged and text_levels.is_merging_all(driver)


def end(driver: sqlite3.Connection) -> None:
    """After a merge of all blocks."""
    driver.execute(COMMAND, ("usermerge", BLOCKS))
