"""A real HTTP server on loopback that receives webhooks, or misbehaves as a test says."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOPBACK = "127.0.0.0/8"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)


class Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.requests.append(Request(self.command, self.path, headers, body))
        # Whoever delivers may hang up at any moment; that is what some tests are about.
        with suppress(OSError):
            self.receiver.behave(self)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that is closed early is none of the server's errors."""


class Receiver:
    def __init__(self, secured: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.behave: Callable[[Handler], None] = lambda handler: handler.answer(204)
        self.closed = threading.Event()
        self.taken = 0
        """Bytes of an endless answer that somebody took."""
        self._server = _Server(("127.0.0.1", 0), type("_Handler", (Handler,), {"receiver": self}))
        self.port: int = self._server.server_address[1]
        if secured is not None:
            self._server.socket = secured.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def answers(self, *statuses: int) -> None:
        """With these, the last one from then on."""
        left = list(statuses)
        lock = threading.Lock()

        def behave(handler: Handler) -> None:
            with lock:
                status = left.pop(0) if len(left) > 1 else left[0]
            handler.answer(status)

        self.behave = behave

    @property
    def events(self) -> list[Any]:
        return [request.event for request in self.requests]

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiving(secured: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """`secured`: it speaks TLS."""
    receiver = Receiver(secured)
    try:
        yield receiver
    finally:
        receiver.close()


def hang(handler: Handler) -> None:
    handler.receiver.closed.wait(60)


def drip(handler: Handler) -> None:
    """A header that never ends, a byte at a time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.receiver.closed.wait(0.05):
        handler.wfile.write(b"a")


def go_on(handler: Handler) -> None:
    """Never an answer, always the word that one is coming."""
    while not handler.receiver.closed.wait(0.05):
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def drip_body(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not handler.receiver.closed.wait(0.05):
        handler.wfile.write(b"a")


def flood(handler: Handler) -> None:
    """An answer without end. What was taken of it is noted in the receiver's `taken`."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    taken = 0
    try:
        while not handler.receiver.closed.is_set():
            handler.wfile.write(b"x" * 65536)
            taken += 65536
    finally:
        handler.receiver.taken = taken


def flood_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.receiver.closed.is_set():
        handler.wfile.write(b"X-More: " + b"x" * 8000 + b"\r\n")
