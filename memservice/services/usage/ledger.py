"""The ledger of usage: every call of a model or an embedder, as it was paid for.

Calls are noted where they are made, in no transaction, and written by a thread of the ledger's own,
many at once. `flush` and the end of the process write what still waits.
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
"""How long a call may wait for others to be written with."""
BATCH_SIZE = 500
MAX_WAITING = 50_000
"""Calls that wait for a store that is away; beyond them the oldest are lost, and said to be."""
PAUSE_SECONDS = 1.0
LAST_SECONDS = 10.0
"""How long the end of a process waits for a store that is away."""


class Ledger:
    """A listener of calls. Made in the process that uses it, after forking; close it once, before
    the store."""

    def __init__(self, storage: Storage, clock: Callable[[], datetime]) -> None:
        self._storage = storage
        self._clock = clock
        self._waiting: RingBuffer[Usage] = RingBuffer(MAX_WAITING, self._lost)
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._ended = threading.Event()
        self._noted: Counter[tuple[int, str]] = Counter()
        """Tokens that are noted and not yet written, by workspace and day."""
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
            duration_ms=call.duration_ms,
            outcome=call.outcome,
            created_at=now,
        )
        self._count([row], 1)
        self._waiting.add(row)
        if self._thread is None:
            self._start()

    def unwritten(self, workspace_key: int, day: str) -> int:
        """Tokens of this process's calls that the store does not know yet."""
        with self._counting:
            return self._noted[workspace_key, day]

    def flush(self) -> None:
        """Write what waits now. Raises `Unavailable` if the store is away; it all waits on then."""
        with self._writing:
            while rows := self._waiting.take(BATCH_SIZE):
                try:
                    self._storage.write(lambda tx, rows=rows: tx.usage.add(rows))  # type: ignore[misc]
                except BaseException:
                    self._waiting.give_back(rows)
                    raise
                self._count(rows, -1)

    def close(self) -> None:
        """Write what waits, for which a store that is away is given a while."""
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
                    log.error(
                        "%d call(s) of models could not be recorded: %s", len(self._waiting), error
                    )
                    return None
                time.sleep(PAUSE_SECONDS / 4)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="usage", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        complained = False
        while self._waiting.wait(BATCH_SIZE, WAIT_SECONDS):
            try:
                self.flush()
                complained = False
            except (
                Exception
            ) as error:  # whatever it is, the calls are not lost, and the next time may go better
                if not complained:
                    log.error(
                        "usage cannot be recorded at present, it waits: %s", type(error).__name__
                    )
                complained = True
                self._ended.wait(PAUSE_SECONDS)

    def _count(self, rows: list[Usage], sign: int) -> None:
        with self._counting:
            for row in rows:
                if row.workspace_key is not None:
                    place = (row.workspace_key, row.day)
                    self._noted[place] += sign * (row.input_tokens + row.output_tokens)
                    if not self._noted[place]:
                        del self._noted[place]

    def _lost(self, number: int, failed: bool) -> None:
        log.error("%d call(s) of models are not recorded: too many wait for the store", number)
