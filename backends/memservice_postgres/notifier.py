"""Notifications between processes that there may be work: LISTEN and NOTIFY, on one connection per
process."""

from __future__ import annotations

import logging
import os
import select
import socket
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
"""How long `close` waits until the last notification is sent."""


class Notifier:
    """Notifies all other processes of commits. Each process starts its thread and connection at
    first use.

    NOTIFY is not part of the writing transaction: PostgreSQL commits transactions with NOTIFY one
    at a time, with a disk flush each. A notification that is lost with its process causes only a
    delay, since workers also poll.
    """

    def __init__(
        self, config: ConnectionConfig, on_notification: Callable[[], None], log: logging.Logger
    ) -> None:
        """`on_notification` is called in the notifier's thread when another process may have
        committed."""
        self._config = config
        self._on_notification = on_notification
        self._log = log
        self._pid = 0
        self._thread: _NotifyThread | None = None
        self._closed = False

    def notify(self) -> None:
        """Notify the other processes of a commit; not after `close`."""
        if not self._closed:
            self._running_thread().notify()

    def listen(self) -> None:
        """Start to call `on_notification`; not after `close`."""
        if not self._closed:
            self._running_thread()

    def close(self) -> None:
        self._closed = True
        if self._thread is not None and self._pid == os.getpid():
            self._thread.end()

    def _running_thread(self) -> _NotifyThread:
        pid = os.getpid()
        notify_thread = self._thread
        # A thread does not survive a fork, and its connection belongs to the parent. At worst two
        # threads start, which is harmless.
        if notify_thread is None or self._pid != pid or not notify_thread.is_alive():
            notify_thread = _NotifyThread(self._config, self._on_notification, self._log)
            self._thread, self._pid = notify_thread, pid
            notify_thread.start()
        return notify_thread


class _NotifyThread(threading.Thread):
    def __init__(
        self, config: ConnectionConfig, on_notification: Callable[[], None], log: logging.Logger
    ) -> None:
        super().__init__(name=NOTIFIER_NAME, daemon=True)
        self._config = config
        self._on_notification = on_notification
        self._log = log
        self._closing = False
        self._pending = False
        # A byte to this socket ends the wait for that of the connection. A closed socket refuses
        # it; the number of a closed pipe may belong to another file by then.
        self._wake_out, self._wake_in = socket.socketpair()
        self._wake_in.setblocking(False)

    def notify(self) -> None:
        if not self._pending:
            self._pending = True
            self._wake()

    def end(self) -> None:
        self._closing = True
        self._wake()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(CLOSE_TIMEOUT + self._config.connect_seconds)

    def run(self) -> None:
        try:
            self._connected()
        finally:
            self._wake_out.close()
            self._wake_in.close()

    def _connected(self) -> None:
        failures = 0
        while not self._closing or (self._pending and not failures):
            try:
                # This connection is idle on purpose.
                with self._config.connect(application_name=NOTIFIER_NAME) as driver:
                    driver.execute(f"LISTEN {CHANNEL}")
                    failures = 0
                    # There may have been commits before LISTEN.
                    self._on_notification()
                    self._serve(driver)
            except psycopg.Error as error:
                pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                failures += 1
                self._log.warning(
                    "the LISTEN connection failed, reconnecting in %g s: %s",
                    pause,
                    str(error).partition("\n")[0],
                )
                self._sleep(pause)

    def _serve(self, driver: Driver) -> None:
        own_pid = driver.info.backend_pid
        poll = select.poll()
        poll.register(driver.pgconn.socket, select.POLLIN)
        poll.register(self._wake_out, select.POLLIN)
        notified_at = 0.0
        while True:
            if self._pending:
                self._sleep(notified_at + NOTIFY_INTERVAL - time.monotonic(), drain=False)
                self._pending = False
                driver.execute(f"NOTIFY {CHANNEL}")
                notified_at = time.monotonic()
            elif self._closing:
                return
            else:
                poll.poll()
            self._drain()
            if any(notice.pid != own_pid for notice in driver.notifies(timeout=0)):
                self._on_notification()

    def _wake(self) -> None:
        with suppress(OSError):  # full: the thread will wake; closed: it has ended
            self._wake_in.send(b".")

    def _drain(self) -> None:
        while select.select([self._wake_out], [], [], 0)[0]:
            self._wake_out.recv(1_024)

    def _sleep(self, seconds: float, *, drain: bool = True) -> None:
        if seconds <= 0:
            return
        if not drain:
            time.sleep(seconds)
            return
        self._drain()
        select.select([self._wake_out], [], [], seconds)
