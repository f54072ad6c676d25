"""How processes tell each other that there may be work: LISTEN and NOTIFY, on one connection per
process."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg

from memservice_postgres.connections import ConnectionConfig, Driver
from memservice_postgres.health import NOTIFIER_NAME

CHANNEL = "memservice_work"
NOTIFY_INTERVAL = 0.02
"""Seconds between two notifications of one process; commits in between share one."""
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""How long to wait before connecting again."""
CLOSE_TIMEOUT = 1.0
"""How long closing waits for the last notification to leave."""


class Notifier:
    """Rings in every other process when one rings it. Its thread and connection are made at first
    use, by each process for itself.

    It does not notify in the writing transaction: PostgreSQL commits those one by one, waiting for
    the disk each time. A notification that is lost with its process costs delay, since workers also
    look for work without being told.
    """

    def __init__(
        self, config: ConnectionConfig, on_notification: Callable[[], None], log: logging.Logger
    ) -> None:
        """`on_notification` is called, in the bell's thread, when another process may have
        committed something."""
        self._place = config
        self._on_notification = on_notification
        self._log = log
        self._pid = 0
        self._thread: _NotifyThread | None = None
        self._closed = False

    def notify(self) -> None:
        """Something was committed."""
        self._running_thread().notify()

    def listen(self) -> None:
        """From now on `heard` is called."""
        self._running_thread()

    def close(self) -> None:
        self._closed = True
        if self._thread is not None and self._pid == os.getpid():
            self._thread.end()

    def _running_thread(self) -> _NotifyThread:
        here = os.getpid()
        notify_thread = self._thread
        # A thread does not survive a fork, and its connection is the parent's. At worst two are
        # started, which does no harm.
        if notify_thread is None or self._pid != here or not notify_thread.is_alive():
            notify_thread = _NotifyThread(self._place, self._on_notification, self._log)
            self._thread, self._pid = notify_thread, here
            if not self._closed:
                notify_thread.start()
        return notify_thread


class _NotifyThread(threading.Thread):
    def __init__(
        self, place: ConnectionConfig, heard: Callable[[], None], log: logging.Logger
    ) -> None:
        super().__init__(name="memservice-bell", daemon=True)
        self._place = place
        self._on_notification = heard
        self._log = log
        self._ending = False
        self._wanted = False
        # Written to in order to end the wait for the socket.
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)

    def notify(self) -> None:
        if not self._wanted:
            self._wanted = True
            self._wake()

    def end(self) -> None:
        self._ending = True
        self._wake()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(CLOSE_TIMEOUT + self._place.connect_seconds)

    def run(self) -> None:
        try:
            self._connected()
        finally:
            os.close(self._wake_out)
            os.close(self._wake_in)

    def _connected(self) -> None:
        failures = 0
        while not self._ending or (self._wanted and not failures):
            try:
                # Idle is what this connection is for, and it waits for nobody.
                with self._place.connect(application_name=NOTIFIER_NAME) as driver:
                    driver.execute(f"LISTEN {CHANNEL}")
                    failures = 0
                    # What was committed while nobody listened is not known.
                    self._on_notification()
                    self._attend(driver)
            except psycopg.Error as error:
                pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                failures += 1
                self._log.warning(
                    "not told of other processes' work for now, trying again in %g s: %s",
                    pause,
                    str(error).partition("\n")[0],
                )
                self._sleep(pause)

    def _attend(self, driver: Driver) -> None:
        mine = driver.info.backend_pid
        poll = select.poll()
        poll.register(driver.pgconn.socket, select.POLLIN)
        poll.register(self._wake_out, select.POLLIN)
        rung = 0.0
        while True:
            if self._wanted:
                self._sleep(rung + NOTIFY_INTERVAL - time.monotonic(), drain=False)
                self._wanted = False
                driver.execute(f"NOTIFY {CHANNEL}")
                rung = time.monotonic()
            elif self._ending:
                return
            else:
                poll.poll()
            self._drain()
            if any(notice.pid != mine for notice in driver.notifies(timeout=0)):
                self._on_notification()

    def _wake(self) -> None:
        with suppress(OSError):  # full: it will wake up; closed: it has ended
            os.write(self._wake_in, b".")

    def _drain(self) -> None:
        while select.select([self._wake_out], [], [], 0)[0]:
            os.read(self._wake_out, 1_024)

    def _sleep(self, seconds: float, *, drain: bool = True) -> None:
        if seconds <= 0:
            return
        if not drain:
            time.sleep(seconds)
            return
        self._drain()
        select.select([self._wake_out], [], [], seconds)
