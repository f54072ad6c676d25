"""Connections to an endpoint. Each serves one exchange at a time, and another thread can cut it off
in every phase of an exchange.

A connection is opened by a thread of its own: nothing limits how long a name server may take."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import httpx

MAX_IDLE = 20
"""Idle connections that are kept."""
MAX_IDLE_SECONDS = 60.0


class Connection:
    """A transport with at most one connection, so that its socket is known before the head of an
    answer has arrived."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self.transport = transport
        self._socket: socket.socket | None = None
        self._is_cut = False
        self.is_usable = True
        """False once opening it took too long: its thread may still be waiting."""
        self.idle_since = 0.0

    def begin(self) -> None:
        """Start a new exchange."""
        self._is_cut = False

    def send(self, request: httpx.Request, seconds: float) -> httpx.Response:
        """Send a request and wait for the head of its answer; if the connection has to be opened
        first, at most so many seconds. Raises `httpx.HTTPError`."""
        request.extensions["trace"] = self._trace
        if self._is_open():
            return self._send(request)
        head: Future[httpx.Response] = Future()
        threading.Thread(
            target=self._open_and_send, args=(request, head), name="connecting", daemon=True
        ).start()
        try:
            return head.result(seconds)
        except FutureTimeout:
            self.is_usable = False
            self.cut_off()
            # Opening and answering together: neither alone is known to have taken so long.
            raise httpx.TimeoutException("", request=request) from None

    def _open_and_send(self, request: httpx.Request, head: Future[httpx.Response]) -> None:
        try:
            head.set_result(self._send(request))
        except BaseException as error:  # raised in the thread that waits for the head
            head.set_exception(error)

    def _send(self, request: httpx.Request) -> httpx.Response:
        response = self.transport.handle_request(request)
        response.request = request
        return response

    def _is_open(self) -> bool:
        if self._socket is None or self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        # Between two exchanges, a server sends nothing but the end of the connection.
        return not poll.poll(0)

    def cut_off(self) -> None:
        """End the exchange in progress: what it waits for fails at once. A connection that is not
        there yet is ended as soon as it is."""
        self._is_cut = True
        if self._socket is not None:
            _shut_down(self._socket)

    def close(self) -> None:
        self.transport.close()

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """httpcore calls this for each step of an exchange. A kept connection is not opened again:
        its socket is that of the exchange before."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._is_cut and self._socket is not None:
                _shut_down(self._socket)


class Connections:
    """The connections to one endpoint, kept between exchanges. Safe to share between threads."""

    def __init__(self, open_transport: Callable[[], httpx.BaseTransport]) -> None:
        self._open_transport = open_transport
        self._lock = threading.Lock()
        self._idle = [Connection(open_transport())]

    def take(self) -> Connection:
        """The connection that was used last, or a new one."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or Connection(self._open_transport())
        connection.begin()
        return connection

    def give_back(self, connection: Connection) -> None:
        if not connection.is_usable:
            connection.close()
            return
        now = connection.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(connection)
            is_full = len(self._idle) > MAX_IDLE
            is_old = now - self._idle[0].idle_since > MAX_IDLE_SECONDS
            surplus = self._idle.pop(0) if is_full or is_old else None
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _shut_down(plain: socket.socket) -> None:
    try:
        # Of the plain socket, also under TLS: this is not a goodbye.
        socket.socket.shutdown(plain, socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already
