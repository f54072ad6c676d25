"""The turns of the transactions of a process with the rows that they lock."""

from __future__ import annotations

from collections.abc import Hashable
from types import TracebackType

from memservice.spi.fair_locks import FairLocks

ROW_SECONDS = 1.0
"""How long a transaction waits for its turn with a row. It may keep another one waiting meanwhile,
for rows that it has changed, and that one may have the turn. After this time the database decides,
which notices if two wait for each other."""


class Turn:
    """One transaction's turn with the first row that it locks; enter it before the transaction
    begins. With one row at a time, two transactions never wait for each other's turns."""

    def __init__(self, locks: FairLocks) -> None:
        """`locks`: of the rows."""
        self._locks = locks
        self._row: Hashable = None
        self._has_waited = False

    def wait(self, row: Hashable) -> None:
        """Wait for the turn with this row. Returns at once for any further row."""
        if not self._has_waited:
            self._has_waited = True
            if self._locks.acquire(row, ROW_SECONDS):
                self._row = row

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._row is not None:
            self._locks.release(self._row)
