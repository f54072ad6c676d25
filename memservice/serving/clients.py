"""gunicorn's threads, kept from clients that send or take nothing: a thread is taken when a request
is there, and waits for so long only.

gunicorn reads a request in one of the process's threads and waits for as long as it takes: as many
clients as there are threads, of which each sends half a request, or nothing, would hold up all
others. Here the loop that accepts connections collects each request first.
"""

from __future__ import annotations

import errno
import io
import json
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from memservice.api.errors import UNEXPECTED
from memservice.domain.sizes import MAX_LARGE_BODY
from memservice.serving.arriving import Arriving

T = TypeVar("T")

HEAD_SECONDS = 5.0
"""For which the head of a request is waited for, from its first byte on."""
SECONDS = 30.0
"""For which the rest of one request is waited for, and in which its answer is to be taken, in
all."""
BYTES_PER_SECOND = 4096
"""What a line that is slow but alive carries: a second more is waited for so many bytes that came
or went."""
SILENT_SECONDS = 75.0
"""For which a connection may say nothing before its first request."""
STOPPING_SECONDS = 2.0
"""The same while the process ends."""
LINGER_SECONDS = 2.0
"""For which a client may take the last bytes and hang up, after the answer that ends its
connection."""
LINGER_BYTES = 2**16
"""What it may send meanwhile."""
MAX_KEPT = 2**28
"""Bytes of requests on their way that one process keeps, in memory and on disk. Beyond, a body is
awaited by a thread, if one may wait."""
PIECE = 2**16
LOOK_SECONDS = 0.25
"""How often the loop looks for those whose time is over."""

_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)
_FULL = (errno.EMFILE, errno.ENFILE)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class PatientSocket(socket.socket):
    """A client's connection. One that is too slow is treated as one that was closed, which gunicorn
    and the application expect."""

    _waited = 0.0
    _moved = 0

    arriving: Arriving
    """The request that is on its way, or that a thread reads. Its bytes come before those that are
    still in the connection."""
    places: threading.Semaphore | None = None
    """For threads that wait for what a client sends; None: without bound."""
    ends = 0.0
    """When the loop's patience ends, by the monotonic clock."""
    counted = 0
    """Bytes of it that the worker has counted as kept."""
    lingered = 0

    @classmethod
    def of(cls, accepted: socket.socket) -> PatientSocket:
        """The same connection; the given socket is empty afterwards."""
        patient_socket = cls(accepted.family, accepted.type, accepted.proto, accepted.detach())
        patient_socket.begin()
        return patient_socket

    def begin(self) -> None:
        """A request is awaited."""
        self.arriving = Arriving(MAX_LARGE_BODY)
        self._waited, self._moved = 0.0, 0

    def give_up(self) -> None:
        """What is missing is not waited for."""
        self._waited = float("inf")

    def setblocking(self, flag: bool) -> None:
        if self.fileno() >= 0:  # gunicorn says so of connections that are closed already, too
            self.settimeout(SECONDS if flag else 0.0)

    def receive(self) -> bytes:
        """What is there now, for the loop. Raises BlockingIOError if that is nothing."""
        return super().recv(PIECE)

    def recv(self, size: int, flags: int = 0) -> bytes:
        if self.arriving.kept:
            return self.arriving.kept.take(size)
        before = self.gettimeout()
        self.settimeout(0.0)
        try:
            data = super().recv(size, flags)
        except BlockingIOError:
            if before == 0.0:
                raise
            self.settimeout(before)
            data = self._wait_for(size, flags)
        finally:
            self.settimeout(before)
        self._moved += len(data)
        return data

    def _wait_for(self, size: int, flags: int) -> bytes:
        if self.places is None:
            return self._patiently(partial(super().recv, size, flags))
        if not self.places.acquire(blocking=False):
            raise ConnectionResetError(errno.ECONNRESET, "too many clients are slow")
        try:
            return self._patiently(partial(super().recv, size, flags))
        finally:
            self.places.release()

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
    """A connection is, in turn: awaited, until a request is there; in a thread; awaited again, or
    ended once its client has hung up.

    All but the thread's part happens in the loop, without waiting. TLS, and what else gunicorn
    reads before HTTP, stays with gunicorn.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._awaited: dict[TConn, None] = {}
        """In the order in which they began."""
        self._ending: dict[TConn, None] = {}
        self._kept = 0
        self._places = threading.BoundedSemaphore(max(1, self.cfg.threads // 2))
        self._next_look = 0.0
        cfg = self.cfg
        self._plain = (
            not cfg.is_ssl
            and cfg.proxy_protocol == "off"
            and cfg.http2_cleartext == "off"
            and cfg.protocol == "http"
        )

    def accept(self, listener: Any) -> None:
        if not self._plain:
            super().accept(listener)
            return
        if self.nr_conns >= self.worker_connections - 1:
            self._make_room()
        try:
            accepted, client = listener.accept()
        except OSError as error:
            if error.errno in _FULL:
                self._make_room()  # it is still in the queue
            elif error.errno not in _GONE:
                raise
            return
        self.nr_conns += 1
        conn = TConn(self.cfg, PatientSocket.of(accepted), client, listener.getsockname())
        conn.data_ready = True
        conn.sock.places = self._places
        conn.sock.ends = time.monotonic() + (SILENT_SECONDS if self.alive else STOPPING_SECONDS)
        self._await(conn)

    def on_client_socket_readable(self, conn: TConn, client: Any) -> None:
        """A connection that was kept alive has something, or is closed."""
        if not isinstance(conn.sock, PatientSocket):
            super().on_client_socket_readable(conn, client)
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._await(conn)

    def finish_request(self, conn: TConn, fs: Any) -> None:
        """A thread is done with a request."""
        sock = conn.sock
        if not isinstance(sock, PatientSocket):
            super().finish_request(conn, fs)
            return
        self._kept -= sock.counted
        sock.counted = 0
        if fs.cancelled() or fs.exception() is not None or not fs.result():
            self._end(conn)
            return
        ahead = conn.parser.unreader.buf.getvalue() + b"".join(
            iter(partial(sock.arriving.kept.take, PIECE), b"")
        )
        conn.parser.unreader.buf = io.BytesIO()
        sock.arriving.kept.close()
        sock.begin()
        if not ahead:
            super().finish_request(conn, fs)
            return
        sock.setblocking(False)
        self._add(conn, ahead)
        if sock.arriving.ready:
            self._hand_over(conn)
        else:
            self._await(conn)

    def murder_pending(self) -> None:
        """Called with each turn of the loop."""
        super().murder_pending()
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        for conn in list(self._awaited):
            if not self.alive and not conn.sock.arriving.came:
                conn.sock.ends = min(conn.sock.ends, now + STOPPING_SECONDS)
            if now >= conn.sock.ends:
                self._give_up(conn)
        for conn in [conn for conn in self._ending if now >= conn.sock.ends]:
            self._close(conn)

    def _await(self, conn: TConn) -> None:
        """Take what is there, and the rest when it comes."""
        self._awaited[conn] = None
        self._on_more(conn, conn.sock)
        if conn in self._awaited:
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_more, conn))

    def _on_more(self, conn: TConn, client: Any) -> None:
        arriving = conn.sock.arriving
        try:
            data = conn.sock.receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._close(conn)
            return
        if data:
            self._add(conn, data)
            no_room = self._kept > MAX_KEPT or arriving.kept.full
            if arriving.ready or (arriving.head_whole and no_room):
                self._hand_over(conn)
            elif no_room:
                self._close(conn)
        elif arriving.head_whole:
            self._hand_over(conn)  # which answers that the body is not whole
        else:
            self._close(conn)

    def _add(self, conn: TConn, data: bytes) -> None:
        """Keep bytes of a request, and set how long the next ones are waited for."""
        sock, arriving, now = conn.sock, conn.sock.arriving, time.monotonic()
        began, headless = not arriving.came, not arriving.head_whole
        self._kept += len(data)
        sock.counted += len(data)
        arriving.add(data)
        if began:
            sock.ends = now + HEAD_SECONDS
        if not arriving.head_whole:
            return
        if headless:
            sock.ends = now + SECONDS
            if arriving.expects:
                self._invite(sock)
        sock.ends += len(data) / BYTES_PER_SECOND

    def _invite(self, sock: PatientSocket) -> None:
        try:
            sock.send(CONTINUE)
        except OSError:
            self.log.debug("A client that waits for 100 Continue takes nothing")

    def _hand_over(self, conn: TConn) -> None:
        self._forget(conn)
        conn.sock.arriving.kept.rewind()
        self.enqueue_req(conn)

    def _give_up(self, conn: TConn) -> None:
        """Its time is over: a client that sent a head is answered, with 408 if the application asks
        for the body."""
        if conn.sock.arriving.head_whole:
            conn.sock.give_up()
            self._hand_over(conn)
        else:
            self._close(conn)

    def _end(self, conn: TConn) -> None:
        """The last answer is sent: close once the client has, so that it gets all of it (RFC 9112,
        section 9.6)."""
        conn.sock.arriving.kept.close()
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:  # it is closed already
            self._close(conn)
            return
        conn.sock.ends = time.monotonic() + LINGER_SECONDS
        self._ending[conn] = None
        self._on_last(conn, conn.sock)
        if conn in self._ending:
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_last, conn))

    def _on_last(self, conn: TConn, client: Any) -> None:
        try:
            data = conn.sock.receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        conn.sock.lingered += len(data)
        if not data or conn.sock.lingered > LINGER_BYTES:
            self._close(conn)

    def _make_room(self) -> None:
        """Close the connection that has said nothing for longest, or else the slowest."""
        silent = next((conn for conn in self._awaited if not conn.sock.arriving.came), None)
        chosen = silent or next(iter(self._ending), None)
        if chosen is None and self.keepalived_conns:
            chosen = self.keepalived_conns.popleft()
        chosen = chosen or next(iter(self._awaited), None)
        if chosen is not None:
            self._close(chosen)

    def _forget(self, conn: TConn) -> None:
        self._awaited.pop(conn, None)
        self._ending.pop(conn, None)
        with suppress(KeyError, ValueError):  # it need not be there
            self.poller.unregister(conn.sock)

    def _close(self, conn: TConn) -> None:
        self._forget(conn)
        self._kept -= conn.sock.counted
        conn.sock.arriving.kept.close()
        self.nr_conns -= 1
        conn.close()


def write_error(sock: Any, status: int, reason: str, text: str) -> None:
    """gunicorn's answer to what is no HTTP, in the form of ours."""
    body = json.dumps({"detail": UNEXPECTED if status == 500 else f"{reason}: {text}"}).encode()
    head = (
        f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: "
        f"application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    util.write_nonblock(sock, head.encode("latin-1") + body)
