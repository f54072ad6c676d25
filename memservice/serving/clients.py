"""gunicorn's threads, kept from clients that send or take nothing: each may wait for its client so long and no longer.

gunicorn reads a request, and writes its answer, in one of the process's threads and waits for as long as it takes: as many clients as there
are threads, of which each sends half a request, would hold up everybody else for good.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from gunicorn import util
from gunicorn.workers.gthread import ThreadWorker

T = TypeVar("T")

SECONDS = 30.0
"""For which a thread waits for the client of one request, in all."""
BYTES_PER_SECOND = 4096
"""What a line that is slow but alive carries: a second more is waited for so many bytes that came or went."""


class PatientSocket(socket.socket):
    """A client's connection. Who is too slow is treated as who has hung up, which both gunicorn and the application expect."""

    _waited = 0.0
    _moved = 0

    @classmethod
    def of(cls, accepted: socket.socket) -> PatientSocket:
        """The same connection; the given socket is empty afterwards."""
        return cls(accepted.family, accepted.type, accepted.proto, accepted.detach())

    def begin(self) -> None:
        """A request begins, or is awaited."""
        self._waited, self._moved = 0.0, 0

    def setblocking(self, flag: bool) -> None:
        if self.fileno() >= 0:  # gunicorn says so of connections that are closed already, too
            self.settimeout(SECONDS if flag else 0.0)

    def recv(self, size: int, flags: int = 0) -> bytes:
        data = self._patiently(partial(super().recv, size, flags))
        self._moved += len(data)
        return data

    def sendall(self, data: Any, flags: int = 0) -> None:
        rest = memoryview(data)
        while rest:
            sent = self._patiently(partial(super().send, rest, flags))
            self._moved += sent
            rest = rest[sent:]

    def _patiently(self, act: Callable[[], T]) -> T:
        """Raises ConnectionResetError when patience is at its end."""
        before = self.gettimeout()
        if before == 0.0:
            return act()
        left = SECONDS + self._moved / BYTES_PER_SECOND - self._waited
        began = time.monotonic()
        try:
            self.settimeout(max(0.001, left if before is None else min(left, before)))
            return act()
        except TimeoutError as error:
            raise ConnectionResetError(errno.ECONNRESET, "the client is too slow") from error
        finally:
            self._waited += time.monotonic() - began
            self.settimeout(before)


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    def handle(self, conn: Any) -> Any:
        if type(conn.sock) is socket.socket:  # not one that speaks TLS
            conn.sock = PatientSocket.of(conn.sock)
        if isinstance(conn.sock, PatientSocket):
            conn.sock.begin()
        again = super().handle(conn)
        if again is False:
            # Here rather than by gunicorn's loop, which would serve nobody else while it waits for the client to hang up.
            util.close_graceful(conn.sock)
        return again
