"""A client's connection, for which a thread waits for a limited time."""

from __future__ import annotations

import errno
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from memservice.domain.sizes import MAX_LARGE_BODY
from memservice.serving.incoming import IncomingRequest
from memservice.spi.waiting import about_to_wait

T = TypeVar("T")

SECONDS = 30.0
"""Total time to wait for the rest of a request and for the client to read the response."""
BYTES_PER_SECOND = 4096
"""Minimum speed of a client: the timeout is extended by one second for this many bytes sent or
received."""
RECEIVE_SIZE = 2**16


class ClientSocket(socket.socket):
    """A client's connection. If the client is too slow, it behaves like a closed connection, which
    gunicorn and the application can handle."""

    _timeout = 0.0
    """How long an operation waits for the client, in seconds; 0: not at all."""
    _waited_seconds = 0.0
    _moved_bytes = 0

    incoming: IncomingRequest
    """The request that is arriving or that a thread reads. Its bytes come before those still in the
    connection."""
    wait_slots: threading.Semaphore | None = None
    """Limits the number of threads that wait for clients; None: no limit."""
    deadline = 0.0
    """When the loop stops waiting, by the monotonic clock."""
    buffered_bytes = 0
    """Bytes of the request that the worker has counted as buffered."""
    lingered_bytes = 0
    polled = False
    """Whether the loop is told when bytes arrive."""
    on_bytes: Callable[[Any, Any], None] | None = None
    """What the loop calls then, with the connection and this socket; None while a thread has it."""

    @classmethod
    def of(cls, accepted: socket.socket) -> ClientSocket:
        """The same connection. `accepted` is detached afterwards."""
        client_socket = cls(accepted.family, accepted.type, accepted.proto, accepted.detach())
        socket.socket.setblocking(client_socket, False)
        client_socket.begin()
        return client_socket

    def begin(self) -> None:
        """Start to wait for a request."""
        self.incoming = IncomingRequest(MAX_LARGE_BODY)
        self._waited_seconds, self._moved_bytes = 0.0, 0

    def stop_waiting(self) -> None:
        """Do not wait for missing bytes."""
        self._waited_seconds = float("inf")

    # The connection itself is always non-blocking: to change that is a system call, of which each
    # request would need five.

    def settimeout(self, value: float | None) -> None:
        self._timeout = SECONDS if value is None else value

    def gettimeout(self) -> float:
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        self._timeout = SECONDS if flag else 0.0

    def receive(self) -> bytes:
        """The available bytes, for the loop. Raises BlockingIOError if there are none."""
        return super().recv(RECEIVE_SIZE)

    def recv(self, size: int, flags: int = 0) -> bytes:
        if self.incoming.buffer:
            return self.incoming.buffer.take(size)
        try:
            data = super().recv(size, flags)
        except BlockingIOError:
            if self._timeout == 0.0:
                raise
            data = self._recv_later(size, flags)
        self._moved_bytes += len(data)
        return data

    def _recv_later(self, size: int, flags: int) -> bytes:
        if self.wait_slots is None:
            return self._when(select.POLLIN, partial(super().recv, size, flags))
        if not self.wait_slots.acquire(blocking=False):
            raise ConnectionResetError(errno.ECONNRESET, "too many clients are slow")
        try:
            return self._when(select.POLLIN, partial(super().recv, size, flags))
        finally:
            self.wait_slots.release()

    def sendall(self, data: Any, flags: int = 0) -> None:
        remaining = memoryview(data)
        while remaining:
            try:
                sent = super().send(remaining, flags)
            except BlockingIOError:
                if self._timeout == 0.0:
                    raise
                sent = self._when(select.POLLOUT, partial(super().send, remaining, flags))
            self._moved_bytes += sent
            remaining = remaining[sent:]

    def _when(self, event: int, operation: Callable[[], T]) -> T:
        """The result of an operation as soon as it is possible. Raises ConnectionResetError if it
        is not in the remaining time."""
        poll = select.poll()
        poll.register(self, event)
        while True:
            seconds_left = SECONDS + self._moved_bytes / BYTES_PER_SECOND - self._waited_seconds
            about_to_wait()
            started_at = time.monotonic()
            is_ready = poll.poll(1_000 * max(0.001, min(seconds_left, self._timeout)))
            self._waited_seconds += time.monotonic() - started_at
            if not is_ready:
                raise ConnectionResetError(errno.ECONNRESET, "the client is too slow")
            try:
                return operation()
            except BlockingIOError:
                continue  # another reason woke it
