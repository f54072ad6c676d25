"""The threads of a server process. `concurrent.futures` has the same for any use; what it does for
each call costs a tenth of a cheap request."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
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
        self._started = self._idle = 0
        """Threads, and those without a job."""
        self._since: deque[float] = deque()
        """When each job that waits for a thread was submitted (monotonic seconds)."""

    @property
    def waiting(self) -> int:
        """Number of jobs that no thread has taken yet."""
        return len(self._since)

    @property
    def waited_seconds(self) -> float:
        """How long the first of these jobs has waited; 0 if there is none."""
        with self._lock:
            return time.monotonic() - self._since[0] if self._since else 0.0

    def submit(self, job: Job) -> None:
        with self._lock:
            self._since.append(time.monotonic())
            is_short = len(self._since) > self._idle and self._started < self._number
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
                if job is not None:
                    self._since.popleft()
            if job is None:
                return
            try:
                job()
            except BaseException:
                log.exception("a request could not be answered")
