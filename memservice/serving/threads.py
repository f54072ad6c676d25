"""The threads of a server process. `concurrent.futures` has the same for any use; what it does for
each call costs a tenth of a cheap request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

log = logging.getLogger("memservice.server")

Job = Callable[[], None]


class Threads:
    """Runs jobs in up to `number` threads, which start when they are needed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = self._idle = self._waiting = 0
        """Threads, those without a job, and jobs without a thread."""

    def submit(self, job: Job) -> None:
        with self._lock:
            self._waiting += 1
            is_short = self._waiting > self._idle and self._started < self._number
            if is_short:
                self._started += 1
        if is_short:
            threading.Thread(target=self._run, name=f"request_{self._started}").start()
        self._jobs.put(job)

    def shutdown(self) -> None:
        """Let the threads end after the jobs that were submitted. The interpreter waits for them at
        its exit."""
        for _ in range(self._number):
            self._jobs.put(None)

    def _run(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
                self._waiting -= 1
            if job is None:
                return
            try:
                job()
            except BaseException:
                log.exception("a request could not be answered")
