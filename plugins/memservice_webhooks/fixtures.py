"""Fixtures for the contract tests of both transports: a receiver on the loopback address, and a
directory."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from memservice.spi.webhooks import TransportFixture
from memservice_webhooks.http import HttpTransport
from memservice_webhooks.jsonl import JsonLinesTransport

LOOPBACK = "127.0.0.0/8"
ACCEPTING, STUCK = "/204", "/stuck"
TIMEOUT_SECONDS = 1.0


class _Receiver(ThreadingHTTPServer):
    """Answers with the status named by the path, and at `STUCK` not at all."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.stopping = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of connections that are closed early."""


class _Handler(BaseHTTPRequestHandler):
    server: _Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == STUCK:
            self.server.stopping.wait(60)
            return
        if self.path == ACCEPTING:
            self.server.received.append((dict(self.headers.items()), body))
        with suppress(OSError):  # the sender may close the connection at any time
            self.send_response(int(self.path[1:]))
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def http_fixture() -> Iterator[TransportFixture]:
    with _Receiver() as receiver:
        threading.Thread(target=receiver.serve_forever, args=(0.05,), daemon=True).start()
        failing_urls = map(receiver.url, ("/500", "/302", "/404", "/410"))
        try:
            yield TransportFixture(
                transport=HttpTransport((LOOPBACK,), timeout_seconds=TIMEOUT_SECONDS),
                url=receiver.url(ACCEPTING),
                received=lambda: list(receiver.received),
                failing=[
                    f"http://127.0.0.1:{_closed_port()}/",
                    "http://nowhere.invalid/",
                    *failing_urls,
                ],
                refused=[
                    "http://10.0.0.1/",
                    "https://[::1]/",
                    "http://",
                    "http://user@127.0.0.1/",
                    "http://127.0.0.1:0/",
                ],
                stuck=receiver.url(STUCK),
                patience_seconds=TIMEOUT_SECONDS,
            )
        finally:
            receiver.stopping.set()
            receiver.shutdown()


@contextmanager
def jsonl_fixture(folder: Path) -> Iterator[TransportFixture]:
    (folder / "linked.jsonl").symlink_to(folder / "elsewhere")
    (folder / "dir.jsonl").mkdir()
    file = folder / "events.jsonl"

    def received() -> list[tuple[dict[str, str], bytes]]:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(line["headers"], line["body"].encode()) for line in map(json.loads, lines)]

    yield TransportFixture(
        transport=JsonLinesTransport(str(folder)),
        url="jsonl:events",
        received=received,
        failing=["jsonl:linked", "jsonl:dir"],
        refused=[
            "jsonl:",
            "jsonl:../events",
            "jsonl:/etc/passwd",
            "jsonl://events",
            "jsonl:a.b",
            "jsonl:events\n",
            "jsonl:" + "a" * 101,
        ],
    )


def _closed_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
