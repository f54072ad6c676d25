"""Calls of a remote service on the path of a request: each has a time limit, and a service that did
not answer gets no calls for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import TypeVar

from memservice.compute_lock import released
from memservice.spi.waiting import about_to_wait

T = TypeVar("T")

OPEN_SECONDS = 5.0
"""How long a service gets no calls after a failure. Then one call tries it, and other calls are
refused until that one succeeded."""
THREADS = 8


class CircuitOpen(Exception):
    """The service failed a moment ago, so it was not called."""


class TimedCalls:
    """Calls of one kind of service in a process. Threads start with the first call, so that they
    belong to the process that makes it. `services` are distinguished by name."""

    def __init__(self, thread_name: str) -> None:
        self._thread_name = thread_name
        self._executor: ThreadPoolExecutor | None = None
        self._open_until: dict[str, float] = {}
        self._lock = Lock()

    def call(
        self,
        service: str,
        seconds: float,
        fn: Callable[[], T],
        is_outage: Callable[[Exception], bool] = lambda error: True,
        *,
        is_timed: bool = False,
    ) -> T:
        """What `fn` returns. Raises `CircuitOpen`, `TimeoutError` after `seconds`, and what `fn`
        raises; `is_outage` says which of these errors keep further calls away. `is_timed`: `fn`
        itself ends in time, so it runs in this thread."""
        if not self._allows(service):
            raise CircuitOpen(service)
        try:
            answer = _waited_for(fn) if is_timed else self.within(seconds, fn)
        except Exception as error:
            if isinstance(error, TimeoutError) or is_outage(error):
                self._record_failure(service)
            raise
        self.record_success(service)
        return answer

    def within(self, seconds: float, fn: Callable[[], T]) -> T:
        """As `call`, for a service that is called even while it fails."""
        future = self._threads().submit(copy_context().run, fn)
        try:
            return _waited_for(partial(future.result, seconds))
        except FutureTimeout:
            future.cancel()
            raise

    def record_success(self, service: str) -> None:
        """Let calls through again."""
        with self._lock:
            self._open_until.pop(service, None)

    def close(self) -> None:
        """Drop calls that have not begun. Calls in progress end by themselves."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix=self._thread_name)
            return self._executor

    def _allows(self, service: str) -> bool:
        with self._lock:
            now = time.monotonic()
            open_until = self._open_until.get(service)
            if open_until is None:
                return True
            if now < open_until:
                return False
            self._open_until[service] = now + OPEN_SECONDS
            return True

    def _record_failure(self, service: str) -> None:
        with self._lock:
            self._open_until[service] = time.monotonic() + OPEN_SECONDS


def _waited_for(fn: Callable[[], T]) -> T:
    """What `fn` returns, which mostly waits: others compute meanwhile."""
    about_to_wait()
    with released():
        return fn()
