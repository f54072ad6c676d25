"""Removing the remains of erased rows: their words in the text index and in the log, what SQLite
left of them in pages, and free pages.

FTS5 only records that a text was removed; its words disappear when the blocks with them are merged.
Rows are overwritten when they are erased (`secure_delete`), but the log contains earlier versions
of their pages until it is truncated, and pages can have copies of them (`page_remains`).
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from memservice_sqlite import text_levels, text_merges
from memservice_sqlite.page_remains import Cleaning
from memservice_sqlite.text import REMOVED

MERGED_PAGES = 40
"""Maximum pages (160 kB) of the text index that one step writes, while other writers wait."""
FREED_PAGES = 500
"""Maximum pages (2 MB) that one step removes from the file."""
MIN_FREE_PAGES = 1_000
"""Free pages (4 MB) that stay in the file for the next writes."""
LOG_SECONDS = 0.05
"""How long other writers may wait until the readers of the log have ended, so that it can be
truncated. If a slow reader prevents it, the next step tries again."""

_MARK = "SELECT documents, length FROM text_statistics WHERE workspace_key = ? AND kind = ?"
_BEGIN = "UPDATE text_statistics SET documents = 0, length = ? WHERE workspace_key = ? AND kind = ?"
_END = "UPDATE text_statistics SET length = 0 WHERE workspace_key = ? AND kind = ?"


@dataclass(slots=True)
class Pages:
    """The pages of a file, and how far this process has cleaned them in the current round."""

    path: Path
    connect: Callable[[], sqlite3.Connection]
    _round: int = 0
    _cleaning: Cleaning | None = field(default=None, repr=False)

    def clean(self, current_round: int) -> bool:
        """The next step; True if there are more. Call it when the log was just truncated."""
        if self._cleaning is None or self._round != current_round:
            self._round, self._cleaning = current_round, Cleaning(self.path)
        return self._cleaning.step(self.connect)


def step(
    driver: sqlite3.Connection, pages: Pages, *, thorough: bool, erasure: bool = False
) -> bool:
    """One short transaction, or all work if `thorough`. True if there is more to do.

    The mark is (texts removed since the current round began, number of the round; 0: none). A round
    merges all blocks that existed at its beginning into one, without the removed words, cleans all
    pages, and ends when the log is truncated. `erasure`: the log may have erased rows without a
    text in the index, so it is truncated in any case.
    """
    removed, current_round = driver.execute(_MARK, REMOVED).fetchone() or (0, 0)
    if removed or current_round:
        if _merge(driver, removed, current_round, thorough):
            return True
        if not current_round and not thorough:
            return True  # the merge ended in its first step; what follows is for the next one
        (_, current_round) = driver.execute(_MARK, REMOVED).fetchone()
    if thorough:
        # enables it in a file that was created without it
        driver.execute("PRAGMA auto_vacuum=INCREMENTAL")
        driver.execute("VACUUM")
    elif _shrink(driver):
        return True
    if not (current_round or thorough or erasure):
        return False
    if not _cut_log(driver):
        return not thorough
    if not current_round and not thorough:
        return False
    if not thorough and (pages.clean(current_round) or not _cut_log(driver)):
        return True
    driver.execute(_END, REMOVED)
    return bool((driver.execute(_MARK, REMOVED).fetchone() or (0, 0))[0])


def _merge(driver: sqlite3.Connection, removed: int, current_round: int, thorough: bool) -> bool:
    """Merge some of the text index; True if there is more to merge."""
    driver.execute("BEGIN IMMEDIATE")
    try:
        text_levels.shorten(driver)  # an index with too many cannot be merged
        if not current_round:
            driver.execute(_BEGIN, (secrets.randbelow(2**40) + 1, *REMOVED))
        if driver.execute("SELECT 1 FROM text_rows LIMIT 1").fetchone() is None:
            driver.execute("INSERT INTO text_index (text_index) VALUES ('delete-all')")
            more = False
        elif thorough:
            driver.execute("INSERT INTO text_index (text_index) VALUES ('optimize')")
            more = False
        else:
            more = text_merges.merge_all(driver, MERGED_PAGES, begins=not current_round)
        text_levels.shorten(driver)
        if not more:
            text_merges.end(driver)
        driver.execute("COMMIT")
    finally:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
    return more


def _shrink(driver: sqlite3.Connection) -> bool:
    """Remove free pages from the end of the file if there are many; True if there are more. Does
    nothing in a file without incremental vacuum."""
    free, pages = (
        driver.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count")
    )
    spare = free - max(MIN_FREE_PAGES, pages // 10)
    if spare <= 0 or driver.execute("PRAGMA auto_vacuum").fetchone()[0] != 2:
        return False
    driver.execute(f"PRAGMA incremental_vacuum({min(spare, FREED_PAGES)})").fetchall()
    return bool(spare > FREED_PAGES)


def _cut_log(driver: sqlite3.Connection) -> bool:
    """Copy the log into the file and truncate it to zero; False if a reader prevents it."""
    busy_timeout = driver.execute("PRAGMA busy_timeout").fetchone()[0]
    driver.execute(f"PRAGMA busy_timeout={int(LOG_SECONDS * 1_000)}")
    try:
        busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        driver.execute(f"PRAGMA busy_timeout={busy_timeout}")
    return not busy
