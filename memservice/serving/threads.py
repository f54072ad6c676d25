"""The threads of a server process. `concurrent.futures` has the same for any use; what it does for
each call costs a tenth of a cheap request."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from memservice.spi import waiting

log = logging.getLogger("memservice.server")

Job = Callable[[], None]

MAX_NEW = 4
"""Number of new jobs that run at the same time. Python runs one thread at a time: with more, all of
them take longer, and some wait for Python much longer than others. With 32 connections, the 99th
percentile of a read from PostgreSQL was 142 to 157 ms without a limit, 71 to 101 with this one."""
NEW_SECONDS = 0.05
"""How long a job is new. One that takes longer waits for something, most of the time: a model, a
lock, a client that reads slowly."""
WATCH_SECONDS = 0.025
"""How often a thread looks for jobs that are no longer new."""


class Threads:
    """Runs jobs in up to `number` threads, which start when they are needed. The jobs begin in the
    order in which they were submitted."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._begun: SimpleQueue[Job | None] = SimpleQueue()
        """Jobs that idle threads take at once. None ends a thread."""
        self._lock = threading.Lock()
        self._started = self._idle = 0
        """Threads, and those without a job."""
        self._jobs: deque[Job] = deque()
        """Jobs that have to wait until others end, or are no longer new."""
        self._since: deque[float] = deque()
        """When each job that no thread has taken yet was submitted (monotonic seconds). The last of
        them are `_jobs`."""
        self._new: dict[Job, float] = {}
        """New jobs, and when each began, in this order."""
        self._has_watcher = False
        """Whether a thread runs `_watch`. One does while jobs wait."""

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
            now = time.monotonic()
            self._since.append(now)
            self._jobs.append(job)
            self._begin(now)
            needs_watcher = bool(self._jobs) and not self._has_watcher
            self._has_watcher = self._has_watcher or needs_watcher
        if needs_watcher:
            threading.Thread(target=self._watch, name="request_watch", daemon=True).start()

    def shutdown(self) -> None:
        """Let the threads end after the jobs that were submitted. The interpreter waits for them at
        its exit."""
        with self._lock:
            while self._jobs:
                self._begun.put(self._next(time.monotonic()))
            for _ in range(self._number):
                self._begun.put(None)

    def _begin(self, now: float) -> None:
        """Hand jobs over to threads, as many as may begin."""
        while self._jobs and len(self._new) < MAX_NEW:
            if self._idle:
                self._idle -= 1
            elif self._started < self._number:
                self._started += 1
                threading.Thread(target=self._run, name=f"request_{self._started}").start()
            else:
                return
            self._begun.put(self._next(now))

    def _next(self, now: float) -> Job:
        job = self._jobs.popleft()
        self._new[job] = now
        return job

    def _run(self) -> None:
        while (first := self._begun.get()) is not None:
            job: Job | None = first
            while job is not None:
                job = self._do(job)

    def _do(self, job: Job) -> Job | None:
        """Returns the next job of this thread; None if it is idle then."""

        def no_longer_new() -> None:
            with self._lock:
                if self._new.pop(job, None) is not None:
                    self._begin(time.monotonic())

        with self._lock:
            self._since.popleft()
        waiting.on_wait(no_longer_new)
        try:
            job()
        except BaseException:
            log.exception("a request could not be answered")
        waiting.on_wait(None)
        with self._lock:
            self._new.pop(job, None)
            if self._jobs and len(self._new) < MAX_NEW:
                return self._next(time.monotonic())
            self._idle += 1
            return None

    def _watch(self) -> None:
        """Let jobs begin when others are no longer new, until none waits."""
        while True:
            time.sleep(WATCH_SECONDS)
            with self._lock:
                now = time.monotonic()
                for job in [job for job, began in self._new.items() if now - began > NEW_SECONDS]:
                    del self._new[job]
                self._begin(now)
                if not self._jobs:
                    self._has_watcher = False
                    return
