"""Protection of gunicorn's threads from slow clients: a request gets a thread only when it is
complete, and a thread waits for a client only for a limited time.

gunicorn itself reads a request in a thread, without a time limit. So as many clients as there are
threads could block all others by sending half a request, or nothing. Here the loop that accepts
connections collects each request first.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import select
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker

from memservice.api.errors import UNEXPECTED
from memservice.serving import client_socket
from memservice.serving.client_socket import ClientSocket
from memservice.serving.threads import Threads
from memservice.serving.usual import (
    AnswerFailed,
    Parser,
    UsualRequest,
    answer,
    can_parse_usual,
)

log = logging.getLogger("memservice.server")

HEAD_SECONDS = 5.0
"""Timeout for the head of a request, from its first byte."""
FIRST_REQUEST_SECONDS = 75.0
"""Timeout for the first byte on a new connection."""
STOPPING_SECONDS = 2.0
"""The same timeout while the process is stopping."""
LINGER_SECONDS = 2.0
"""Timeout for the client to read the last response and close its connection."""
LINGER_BYTES = 2**16
"""Maximum bytes that the client may send in that time."""
MAX_BUFFERED = 2**28
"""Maximum bytes of incomplete requests in one process, in memory and on disk. Beyond it, a thread
waits for a body, if a wait slot is free."""
QUEUED_PER_THREAD = 8
QUEUE_SECONDS = 10.0
"""If `QUEUED_PER_THREAD` complete requests for each thread wait for a thread, and the first of them
has waited this long, further ones are answered with 503: their clients would probably give up
before it is their turn. Many short requests at once are not refused."""
OVERLOAD_LOG_SECONDS = 10.0
"""Minimum interval of the log lines about that."""
ACCEPT_SECONDS = 0.005
"""Interval at which a process accepts connections while a request computes or waits for a thread in
it: another process may be free."""
CHECK_SECONDS = 0.25
"""Interval of the check for expired connections."""
PARENT_SECONDS = 1.0
"""Interval at which gunicorn's main process is checked, and notified."""
ENDING_SECONDS = 0.02
"""Interval of the check whether the last connection has ended, while the process is stopping."""

_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)
_FULL = (errno.EMFILE, errno.ENFILE)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_OVERLOADED_BODY = b'{"detail": "This process has too many requests waiting: try again soon"}'
OVERLOADED = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
) % (len(_OVERLOADED_BODY), _OVERLOADED_BODY)


class BufferingWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker that waits for complete requests. A connection's states: waiting for a request; in a
    thread; waiting again, or ending until its client has closed it.

    A thread that has answered puts the connection back itself (`_keep`). Everything else runs in
    turns of the loop, without blocking; the threads take them, one at a time
    (`memservice.serving.threads`). gunicorn itself handles TLS and other protocols before HTTP.
    """

    alive: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._awaiting: dict[TConn, None] = {}
        """Waiting connections, oldest first."""
        self._ending: dict[TConn, None] = {}
        self._buffered_bytes = 0
        self._released_bytes: deque[int] = deque()
        """What threads have yet to subtract from `_buffered_bytes`."""
        self._keeping = threading.Lock()
        """Held while a connection begins or ends to be among gunicorn's kept-alive ones."""
        self._threads = Threads(self.cfg.threads, self._turn, self._wake_main)
        self._wait_slots = threading.BoundedSemaphore(max(1, self.cfg.threads // 2))
        self._next_accept = self._next_check = self._next_notice = 0.0
        self._is_stopping = False
        self._max_queued = QUEUED_PER_THREAD * self.cfg.threads
        self._refused, self._next_overload_log = 0, 0.0
        """Requests refused since the last log line, and when the next line is due."""
        cfg = self.cfg
        self._plain = (
            not cfg.is_ssl
            and cfg.proxy_protocol == "off"
            and cfg.http2_cleartext == "off"
            and cfg.protocol == "http"
        )
        self._parses_usual = can_parse_usual(cfg)

    def run(self) -> None:
        """As gunicorn's, but the loop runs in the threads: the main one only has the signals."""
        self.poller.register(
            self.method_queue.fileno(), selectors.EVENT_READ, self.method_queue.run_callbacks
        )
        self._threads.start()
        try:
            while self.alive and self._threads.failure is None and self.is_parent_alive():
                self._pause(PARENT_SECONDS)
            self.alive = False
            self._wake_loop()
            ends = time.monotonic() + self.cfg.graceful_timeout
            while self._has_connections() and time.monotonic() < ends:
                self._pause(ENDING_SECONDS)
        finally:
            self.alive = False
            self._threads.shutdown(self._wake_loop)
        self.murder_keepalived(force=True)
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()
        if self._threads.failure is not None:
            raise self._threads.failure

    def _pause(self, seconds: float) -> None:
        """Until a signal arrives, at most some seconds."""
        if select.select([self.PIPE[0]], [], [], seconds)[0]:
            os.read(self.PIPE[0], 4096)

    def _wake_main(self) -> None:
        os.write(self.PIPE[1], b".")

    def _wake_loop(self) -> None:
        self.method_queue.defer(_do_nothing)

    def _has_connections(self) -> bool:
        return self._threads.failure is None and (not self._is_stopping or self.nr_conns > 0)

    def _turn(self, can_wait: bool) -> None:
        """A turn of the loop, in the thread that leads."""
        now = time.monotonic()
        if now >= self._next_notice:
            self._next_notice = now + PARENT_SECONDS / 2
            self.notify()
        seconds = PARENT_SECONDS
        if self.alive:
            pause = self._accept_pause(now)
            seconds = min(seconds, pause) if pause > 0 else seconds
            can_accept = self.nr_conns < self.worker_connections and pause <= 0
            if can_accept != self._accepting:
                self.set_accept_enabled(can_accept)
        else:
            if not self._is_stopping:
                self.set_accept_enabled(False)
                self._cap_keepalive(now + STOP_KEEPALIVE_LINGER)
                self._is_stopping = True
            seconds = CHECK_SECONDS
        self.wait_for_and_dispatch_events(seconds if can_wait else 0)
        self.murder_keepalived()
        self.murder_pending()

    def _accept_pause(self, now: float) -> float:
        """Seconds until this process accepts a connection; 0 or less: it does."""
        if not self._threads.is_loaded or self._is_overloaded():  # which refuses further requests
            return 0.0
        return self._next_accept - now

    def accept(self, listener: Any) -> None:
        if not self._plain:
            super().accept(listener)
            return
        if self.nr_conns >= self.worker_connections - 1:
            self._close_idlest()
        try:
            accepted, client = listener.accept()
        except OSError as error:
            if error.errno in _FULL:
                self._close_idlest()  # the new connection is still in the queue
            elif error.errno not in _GONE:
                raise
            return
        now = time.monotonic()
        self._next_accept = now + ACCEPT_SECONDS
        self.nr_conns += 1
        conn = TConn(self.cfg, ClientSocket.of(accepted), client, listener.getsockname())
        conn.data_ready = True
        if self._parses_usual and isinstance(client, tuple):
            conn.parser = Parser(self.cfg, conn.sock, client, conn.server)
        conn.sock.wait_slots = self._wait_slots
        conn.sock.deadline = now + (FIRST_REQUEST_SECONDS if self.alive else STOPPING_SECONDS)
        self._await(conn)

    def enqueue_req(self, conn: TConn) -> None:
        if not isinstance(conn.sock, ClientSocket):
            super().enqueue_req(conn)
        elif self._is_overloaded():
            self._refuse(conn)
        else:
            self._threads.submit(partial(self._serve, conn))

    def _is_overloaded(self) -> bool:
        return (
            self._threads.waiting >= self._max_queued
            and self._threads.waited_seconds >= QUEUE_SECONDS
        )

    def _refuse(self, conn: TConn) -> None:
        """Answer a request with 503: too many others are waiting."""
        self._refused += 1
        if time.monotonic() >= self._next_overload_log:
            log.warning(
                "%d requests wait for a thread: refused %d since the last such line",
                self._threads.waiting,
                self._refused,
            )
            self._refused = 0
            self._next_overload_log = time.monotonic() + OVERLOAD_LOG_SECONDS
        try:
            conn.sock.send(OVERLOADED)
        except OSError:
            self.log.debug("cannot answer a client that is refused")
        self._end(conn)

    def _serve(self, conn: TConn) -> None:
        """Answer a request, in a thread."""
        keep = False
        try:
            keep = self.handle(conn)
        finally:
            # A turn of the loop for each request would cost as much as a cheap request itself.
            if not keep or self._has_next_bytes(conn):
                self.method_queue.defer(self._finish, conn, keep)
            else:
                self._keep(conn)

    def handle_request(self, req: Any, conn: TConn) -> bool:
        if not isinstance(req, UsualRequest):
            return bool(super().handle_request(req, conn))
        is_last = not self.alive or len(self.keepalived_conns) >= self.max_keepalived
        try:
            return answer(req, conn.sock, self.cfg, self.wsgi, is_last=is_last)
        except AnswerFailed as error:
            self.log.exception("Error handling request", exc_info=error.__cause__)
            util.close_graceful(conn.sock)
            raise StopIteration from None

    def _has_next_bytes(self, conn: TConn) -> bool:
        """Whether bytes of the next request were read with the last one."""
        return bool(conn.sock.incoming.buffer or conn.parser.unreader.buf.getvalue())

    def _keep(self, conn: TConn) -> None:
        """Wait for the next request. Any thread may call this."""
        sock = conn.sock
        self._begin(conn)
        sock.setblocking(False)
        conn.set_timeout()
        with self._keeping:
            if not self.alive:
                conn.timeout = min(conn.timeout, time.monotonic() + STOP_KEEPALIVE_LINGER)
            if self.poller.get_map() is None:  # the loop has ended meanwhile
                conn.close()
                return
            self.keepalived_conns.append(conn)
            try:
                self._listen(conn, self.on_client_socket_readable)
            except ValueError:  # as above
                conn.close()

    def _begin(self, conn: TConn) -> None:
        """Release the buffer of the last request, and prepare for the next one."""
        sock = conn.sock
        self._released_bytes.append(sock.buffered_bytes)
        sock.buffered_bytes = 0
        sock.incoming.buffer.close()
        sock.begin()

    def on_client_socket_readable(self, conn: TConn, client: Any) -> None:
        """A kept-alive connection has data, or is closed."""
        if not isinstance(conn.sock, ClientSocket):
            super().on_client_socket_readable(conn, client)
            return
        with self._keeping:
            self.keepalived_conns.remove(conn)
        self._await(conn)

    def murder_keepalived(self, force: bool = False) -> None:
        with self._keeping:
            super().murder_keepalived(force)

    def _cap_keepalive(self, deadline: float) -> None:
        with self._keeping:
            super()._cap_keepalive(deadline)

    def _finish(self, conn: TConn, keep: bool) -> None:
        """A thread has finished a request, and has not put the connection back itself."""
        if not keep:
            self._end(conn)
            return
        sock = conn.sock
        next_bytes = conn.parser.unreader.buf.getvalue() + b"".join(
            iter(partial(sock.incoming.buffer.take, client_socket.RECEIVE_SIZE), b"")
        )
        conn.parser.unreader.buf = io.BytesIO()
        self._begin(conn)
        sock.setblocking(False)
        self._add(conn, next_bytes)
        if sock.incoming.ready:
            self._hand_over(conn)
        else:
            self._await(conn)

    def murder_pending(self) -> None:
        """Called in each iteration of the loop."""
        super().murder_pending()
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + CHECK_SECONDS
        for conn in list(self._awaiting):
            if not self.alive and not conn.sock.incoming.received_bytes:
                conn.sock.deadline = min(conn.sock.deadline, now + STOPPING_SECONDS)
            if now >= conn.sock.deadline:
                self._time_out(conn)
        for conn in [conn for conn in self._ending if now >= conn.sock.deadline]:
            self._close(conn)

    def _await(self, conn: TConn) -> None:
        """Read available bytes, and further ones when they arrive."""
        self._awaiting[conn] = None
        self._on_more(conn, conn.sock)
        if conn in self._awaiting:
            self._listen(conn, self._on_more)

    def _listen(self, conn: TConn, on_bytes: Callable[[TConn, Any], None]) -> None:
        """Call this in the loop when bytes arrive."""
        conn.sock.on_bytes = on_bytes
        if not conn.sock.polled:
            conn.sock.polled = True
            readable = partial(self._on_readable, conn)
            self.poller.register(conn.sock, selectors.EVENT_READ, readable)

    def _on_readable(self, conn: TConn, client: Any) -> None:
        """A connection stays registered while a thread has it: most clients send nothing then, and
        to unregister and register it takes two system calls."""
        with self._keeping:
            on_bytes = conn.sock.on_bytes
            if on_bytes is None:
                self._unregister(conn)
                return
        on_bytes(conn, client)

    def _on_more(self, conn: TConn, client: Any) -> None:
        incoming = conn.sock.incoming
        try:
            data = conn.sock.receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._close(conn)
            return
        if data:
            self._add(conn, data)
            is_full = self._buffered_bytes > MAX_BUFFERED or incoming.buffer.full
            if incoming.ready or (incoming.head_complete and is_full):
                self._hand_over(conn)
            elif is_full:
                self._close(conn)
        elif incoming.head_complete:
            self._hand_over(conn)  # the answer is that the body is incomplete
        else:
            self._close(conn)

    def _add(self, conn: TConn, data: bytes) -> None:
        """Buffer bytes of a request, and set the deadline for the next ones."""
        sock, incoming, now = conn.sock, conn.sock.incoming, time.monotonic()
        is_first, head_was_missing = not incoming.received_bytes, not incoming.head_complete
        while self._released_bytes:
            self._buffered_bytes -= self._released_bytes.popleft()
        self._buffered_bytes += len(data)
        sock.buffered_bytes += len(data)
        incoming.add(data)
        if is_first:
            sock.deadline = now + HEAD_SECONDS
        if not incoming.head_complete:
            return
        if head_was_missing:
            sock.deadline = now + client_socket.SECONDS
            if incoming.expects_continue:
                self._send_continue(sock)
        sock.deadline += len(data) / client_socket.BYTES_PER_SECOND

    def _send_continue(self, sock: ClientSocket) -> None:
        try:
            sock.send(CONTINUE)
        except OSError:
            self.log.debug("cannot send 100 Continue to a client")

    def _hand_over(self, conn: TConn) -> None:
        self._awaiting.pop(conn, None)
        conn.sock.on_bytes = None
        conn.sock.incoming.buffer.rewind()
        self.enqueue_req(conn)

    def _time_out(self, conn: TConn) -> None:
        """The deadline has passed. A client that sent a head gets an answer, with 408 if the
        application reads the body."""
        if conn.sock.incoming.head_complete:
            conn.sock.stop_waiting()
            self._hand_over(conn)
        else:
            self._close(conn)

    def _end(self, conn: TConn) -> None:
        """The last response is sent. Close the connection after the client has, so that it gets the
        whole response (RFC 9112, section 9.6)."""
        conn.sock.incoming.buffer.close()
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:  # already closed
            self._close(conn)
            return
        conn.sock.deadline = time.monotonic() + LINGER_SECONDS
        self._ending[conn] = None
        self._on_last(conn, conn.sock)
        if conn in self._ending:
            self._listen(conn, self._on_last)

    def _on_last(self, conn: TConn, client: Any) -> None:
        try:
            data = conn.sock.receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        conn.sock.lingered_bytes += len(data)
        if not data or conn.sock.lingered_bytes > LINGER_BYTES:
            self._close(conn)

    def _close_idlest(self) -> None:
        """Close the connection that has been silent longest, or else the slowest one."""
        silent = next(
            (conn for conn in self._awaiting if not conn.sock.incoming.received_bytes), None
        )
        idlest = silent or next(iter(self._ending), None)
        if idlest is None:
            with self._keeping:
                if self.keepalived_conns:
                    idlest = self.keepalived_conns.popleft()
        idlest = idlest or next(iter(self._awaiting), None)
        if idlest is not None:
            self._close(idlest)

    def _unregister(self, conn: TConn) -> None:
        if conn.sock.polled:
            conn.sock.polled = False
            self.poller.unregister(conn.sock)

    def _close(self, conn: TConn) -> None:
        self._awaiting.pop(conn, None)
        self._ending.pop(conn, None)
        self._unregister(conn)
        self._buffered_bytes -= conn.sock.buffered_bytes
        conn.sock.incoming.buffer.close()
        self.nr_conns -= 1
        conn.close()


def _do_nothing() -> None:
    """Called by a loop that only has to end its wait."""


def write_error(sock: Any, status: int, reason: str, text: str) -> None:
    """Send gunicorn's answer to invalid HTTP in the format of the API's errors."""
    body = json.dumps({"detail": UNEXPECTED if status == 500 else f"{reason}: {text}"}).encode()
    head = (
        f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: "
        f"application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    util.write_nonblock(sock, head.encode("latin-1") + body)
