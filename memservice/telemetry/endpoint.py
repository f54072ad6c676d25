"""`/metrics` of a process that serves no API: a small HTTP server in a thread of its own.

Of several processes that share a directory of values, the one that has the port answers for all of
them. If it ends another takes over.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = logging.getLogger("memservice.metrics")

TRY_AGAIN_SECONDS = 3.0

Exposition = Callable[[], tuple[bytes, str]]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    timeout = 0.2
    """Seconds after which it looks whether it is to end."""


class MetricsEndpoint:
    """Serves from now until it is closed."""

    def __init__(self, host: str, port: int, exposition: Exposition) -> None:
        self._place = (host, port)
        self._exposition = exposition
        self._ended = threading.Event()
        self._server: _Server | None = None
        self.listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The one that it listens on; 0 before it does."""
        return 0 if self._server is None else int(self._server.server_address[1])

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        self._server = self._open()
        if self._server is None:
            return
        with self._server as server:
            self.listening.set()
            while not self._ended.is_set():
                server.handle_request()

    def _open(self) -> _Server | None:
        """The port, as soon as it is free; None at the end."""
        handler = type("_Handler", (_Handler,), {"exposition": staticmethod(self._exposition)})
        told = False
        while not self._ended.is_set():
            try:
                return _Server(self._place, handler)
            except OSError as error:
                if not told:
                    level = logging.INFO if error.errno == errno.EADDRINUSE else logging.ERROR
                    log.log(
                        level,
                        (
                            "cannot serve metrics on %s:%s (%s): another process of this "
                            "worker does, or else choose another METRICS_PORT"
                        ),
                        *self._place,
                        error.strerror,
                    )
                told = True
            self._ended.wait(TRY_AGAIN_SECONDS)
        return None


class _Handler(BaseHTTPRequestHandler):
    exposition: Exposition

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"metrics are at /metrics\n", "text/plain; charset=utf-8")
            return
        self._answer(200, *type(self).exposition())

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Who asks for metrics is not worth a line."""
