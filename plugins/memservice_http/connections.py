"""Connections to an endpoint. Each serves one exchange at a time, and another thread can cut it off
in every phase of an exchange."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

MAX_IDLE = 20
"""Idle connections that are kept."""
MAX_IDLE_SECONDS = 60.0


class Connection:
    """An HTTP client with at most one connection, so that its socket is known before the head of
    an answer has arrived."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._socket: socket.socket | None = None
        self._is_cut = False
        self.idle_since = 0.0

    def begin(self) -> None:
        """Start a new exchange."""
        self._is_cut = False

    def send(self, request: httpx.Request) -> httpx.Response:
        """Send a request and wait for the head of its answer."""
        request.extensions["trace"] = self._trace
        return self.client.send(request, stream=True)

    def cut_off(self) -> None:
        """End the exchange in progress: what it waits for fails at once. A connection that is not
        there yet is ended as soon as it is."""
        self._is_cut = True
        if self._socket is not None:
            _shut_down(self._socket)

    def close(self) -> None:
        self.client.close()

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """httpcore calls this for each step of an exchange. A kept connection is not opened again:
        its socket is that of the exchange before."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._is_cut and self._socket is not None:
                _shut_down(self._socket)


class Connections:
    """The connections to one endpoint, kept between exchanges. Safe to share between threads."""

    def __init__(self, open_client: Callable[[], httpx.Client]) -> None:
        self._open_client = open_client
        self._lock = threading.Lock()
        self._idle = [Connection(open_client())]

    def take(self) -> Connection:
        """The connection that was used last, or a new one."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or Connection(self._open_client())
        connection.begin()
        return connection

    def give_back(self, connection: Connection) -> None:
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
