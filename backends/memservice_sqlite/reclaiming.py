"""Letting go of what erased rows left behind: their words in the text index and in the log, and the
room that they took.

FTS5 only notes that a text was removed; its words go when the blocks that hold them are merged.
Rows themselves are overwritten when they are erased (`secure_delete`), but the log has pages as
they were before, until it is cut off.
"""

from __future__ import annotations

import sqlite3

from memservice_sqlite.text import REMOVED

MERGED_PAGES = 250
"""Pages (1 MB) of the text index that one step writes at most."""
FREED_PAGES = 500
"""Pages (2 MB) that one step takes from the file."""
KEPT_PAGES = 1_000
"""Free pages (4 MB) that stay in the file for what is written next."""
LOG_SECONDS = 0.2
"""How long others may wait while the log is cut off; a reader that is slow keeps it longer, and it
is tried again."""

_MARK = "SELECT documents, length FROM text_statistics WHERE workspace_key = ? AND kind = ?"
_BEGIN = "UPDATE text_statistics SET documents = 0, length = ? WHERE workspace_key = ? AND kind = ?"
_END = "UPDATE text_statistics SET length = 0 WHERE workspace_key = ? AND kind = ?"


def step(driver: sqlite3.Connection, *, thorough: bool) -> bool:
    """One short transaction, or all that there is to do if `thorough`. True if there is more.

    The mark is (removed since the last round began, removed before the round that is under way): a
    round merges what there was at its beginning into one, in which nothing of the removed is left,
    and ends when the log is cut off.
    """
    removed, merging = driver.execute(_MARK, REMOVED).fetchone() or (0, 0)
    if removed or merging:
        if _merge(driver, removed, merging, thorough):
            return True
        merging = merging or removed
    if thorough:
        # of a file that was made without it, from now on
        driver.execute("PRAGMA auto_vacuum=INCREMENTAL")
        driver.execute("VACUUM")
    elif _shrink(driver):
        return True
    if not (merging or thorough):
        return False
    if not _cut_log(driver):
        return not thorough
    driver.execute(_END, REMOVED)
    return bool((driver.execute(_MARK, REMOVED).fetchone() or (0, 0))[0])


def _merge(driver: sqlite3.Connection, removed: int, merging: int, thorough: bool) -> bool:
    """Merge some of the text index; True if there is more to merge."""
    driver.execute("BEGIN IMMEDIATE")
    try:
        if not merging:
            driver.execute(_BEGIN, (removed, *REMOVED))
        if driver.execute("SELECT 1 FROM text_rows LIMIT 1").fetchone() is None:
            driver.execute("INSERT INTO text_index (text_index) VALUES ('delete-all')")
            more = False
        elif thorough:
            driver.execute("INSERT INTO text_index (text_index) VALUES ('optimize')")
            more = False
        else:
            before = driver.total_changes
            driver.execute(
                "INSERT INTO text_index (text_index, rank) VALUES ('merge', ?)", (-MERGED_PAGES,)
            )
            more = driver.total_changes - before >= 2  # as FTS5 tells whether it did anything
        driver.execute("COMMIT")
    finally:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
    return more


def _shrink(driver: sqlite3.Connection) -> bool:
    """Take free pages from the end of the file, where there are many; True if there are more. None
    in a file that was not made for it."""
    free, pages = (
        driver.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count")
    )
    spare = free - max(KEPT_PAGES, pages // 10)
    if spare <= 0 or driver.execute("PRAGMA auto_vacuum").fetchone()[0] != 2:
        return False
    driver.execute(f"PRAGMA incremental_vacuum({min(spare, FREED_PAGES)})").fetchall()
    return bool(spare > FREED_PAGES)


def _cut_log(driver: sqlite3.Connection) -> bool:
    """Copy the log into the file and leave nothing of it; False while somebody reads from it."""
    patience = driver.execute("PRAGMA busy_timeout").fetchone()[0]
    driver.execute(f"PRAGMA busy_timeout={int(LOG_SECONDS * 1_000)}")
    try:
        busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        driver.execute(f"PRAGMA busy_timeout={patience}")
    return not busy
