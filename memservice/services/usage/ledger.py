"""The usage ledger: every call of a model or an embedder, with its token counts.

Calls are recorded without a transaction, and written in batches by a thread of the ledger. `flush`
and the end of the process write the rest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from memservice.domain.errors import MemserviceError
from memservice.domain.records import Usage
from memservice.domain.times import day_of
from memservice.spi.llm import ModelCall
from memservice.spi.storage import Storage
from memservice.telemetry.buffer import RingBuffer

log = logging.getLogger("memservice.usage")

WAIT_SECONDS = 0.5
"""Maximum time that a call waits for a batch."""
BATCH_SIZE = 500
MAX_WAITING = 50_000
"""Maximum number of calls that wait while the store is unavailable. Beyond it the oldest are
dropped, which is logged."""
PAUSE_SECONDS = 1.0
LAST_SECONDS = 10.0
"""How long a process that ends waits for an unavailable store."""


class Ledger:
    """A listener of calls. Create it in the process that uses it, after forking; close it once,
    before the store."""

    def __init__(self, storage: Storage, clock: Callable[[], datetime]) -> None:
        self._storage = storage
        self._clock = clock
        self._waiting: RingBuffer[Usage] = RingBuffer(MAX_WAITING, self._report_lost)
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._ended = threading.Event()
        self._unwritten_tokens: Counter[tuple[int, str]] = Counter()
        """Tokens of calls that are not written yet, by workspace and day."""
        self._counting = threading.Lock()

    def __call__(self, call: ModelCall) -> None:
        now = self._clock()
        row = Usage(
            workspace_key=call.workspace_key,
            day=day_of(now),
            task=call.purpose,
            provider=call.transport,
            model=call.model,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            cache_read_tokens=call.cache_read_tokens,
            cache_write_tokens=call.cache_write_tokens,
            reasoning_tokens=call.reasoning_tokens,
            duration_ms=call.duration_ms,
            outcome=call.outcome,
            created_at=now,
        )
        self._count([row], 1)
        self._waiting.add(row)
        if self._thread is None:
            self._start()

    def unwritten(self, workspace_key: int | None, day: str) -> int:
        """Tokens of this process's calls that are not in the store yet; None: of all
        workspaces."""
        with self._counting:
            if workspace_key is not None:
                return self._unwritten_tokens[workspace_key, day]
            return sum(tokens for (_, of), tokens in self._unwritten_tokens.items() if of == day)

    def flush(self) -> None:
        """Write all waiting calls. Raises `Unavailable` if the store is unavailable; the calls then
        continue to wait."""
        with self._writing:
            while rows := self._waiting.take(BATCH_SIZE):
                try:
                    self._storage.write(lambda tx, rows=rows: tx.usage.add(rows))  # type: ignore[misc]
                except BaseException:
                    self._waiting.give_back(rows)
                    raise
                self._count(rows, -1)

    def close(self) -> None:
        """Write all waiting calls, with retries for a limited time if the store is unavailable."""
        self._ended.set()
        self._waiting.close()
        if self._thread is not None:
            self._thread.join()
        deadline = time.monotonic() + LAST_SECONDS
        while True:
            try:
                return self.flush()
            except MemserviceError as error:
                if time.monotonic() >= deadline:
                    log.error("could not record %d model call(s): %s", len(self._waiting), error)
                    return None
                time.sleep(PAUSE_SECONDS / 4)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="usage", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        reported = False
        while self._waiting.wait(BATCH_SIZE, WAIT_SECONDS):
            try:
                self.flush()
                reported = False
            except Exception as error:  # the calls continue to wait, and the next try may succeed
                if not reported:
                    log.error("cannot record usage now, will retry: %s", type(error).__name__)
                reported = True
                self._ended.wait(PAUSE_SECONDS)

    def _count(self, rows: list[Usage], sign: int) -> None:
        with self._counting:
            for row in rows:
                if row.workspace_key is not None:
                    workspace_day = (row.workspace_key, row.day)
                    self._unwritten_tokens[workspace_day] += sign * (
                        row.input_tokens + row.output_tokens
                    )
                    if not self._unwritten_tokens[workspace_day]:
                        del self._unwritten_tokens[workspace_day]

    def _report_lost(self, number: int, failed: bool) -> None:
        log.error("dropped %d unrecorded model call(s): too many wait for the store", number)
