"""Record when keys were last used: in a thread of its own, at most once a minute for each key."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from memservice.domain.errors import MemserviceError
from memservice.domain.records import ApiKey
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.keys")

EVERY = timedelta(minutes=1)
CLOSING_SECONDS = 5.0


class KeyUsage:
    """One for each process. The first use of a key starts the thread, so it runs in the process
    that serves, after any fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._pending: dict[str, datetime] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def note(self, rt: Runtime, key: ApiKey, now: datetime) -> None:
        """Record that the key was used. Never waits for the store, and never fails."""
        if key.last_used_at is not None and now - key.last_used_at < EVERY:
            return
        with self._lock:
            if self._closed:
                return
            self._pending.setdefault(key.uid, now)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, args=(rt,), name="key-usage", daemon=True
                )
                self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Write what is pending and end the thread."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        self._wake.set()
        if thread is not None:
            thread.join(CLOSING_SECONDS)

    def _run(self, rt: Runtime) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            self._write(rt)
        self._write(rt)

    def _write(self, rt: Runtime) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
        if not pending:
            return

        def change(tx: Transaction) -> None:
            for uid, at in sorted(pending.items()):
                tx.keys.used(uid, at, at - EVERY)

        try:
            rt.storage.write(change)
        except MemserviceError as error:
            log.warning("could not store the last use of %d keys: %s", len(pending), error)
        except Exception:
            log.exception("could not store the last use of %d keys", len(pending))
