"""`/metrics` of a process that does not serve the API: a small HTTP server in its own thread.

If several processes share a directory of values, the one that has the port answers for all of them.
When it ends, another takes over.
"""

from __future__ import annotations

import errno
import logging
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

log = logging.getLogger("memservice.metrics")

TRY_AGAIN_SECONDS = 3.0

Exposition = Callable[[], tuple[bytes, str]]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    timeout = 0.2
    """Seconds between checks whether to end."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless it is that the client has gone."""
        error = sys.exception()
        if isinstance(error, ConnectionError):
            log.debug("a client of /metrics did not wait for the answer: %s", error)
        else:
            log.exception("cannot answer a request for metrics")


class MetricsEndpoint:
    """Serves until it is closed."""

    def __init__(self, host: str, port: int, exposition: Exposition) -> None:
        self._address = (host, port)
        self._exposition = exposition
        self._closing = threading.Event()
        self._server: _Server | None = None
        self.listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on; 0 before."""
        return 0 if self._server is None else int(self._server.server_address[1])

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        self._server = self._open()
        if self._server is None:
            return
        with self._server as server:
            self.listening.set()
            while not self._closing.is_set():
                server.handle_request()

    def _open(self) -> _Server | None:
        """A server on the port, as soon as the port is free; None when closing."""
        handler = type("_Handler", (_Handler,), {"exposition": staticmethod(self._exposition)})
        reported = False
        while not self._closing.is_set():
            try:
                return _Server(self._address, handler)
            except OSError as error:
                if not reported:
                    level = logging.INFO if error.errno == errno.EADDRINUSE else logging.ERROR
                    log.log(
                        level,
                        (
                            "cannot serve metrics on %s:%s (%s): unless another process of "
                            "this worker serves them there, choose another METRICS_PORT"
                        ),
                        *self._address,
                        error.strerror,
                    )
                reported = True
            self._closing.wait(TRY_AGAIN_SECONDS)
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
        """Do not log requests for metrics."""
