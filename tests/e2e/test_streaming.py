"""Streams through the real server, by a reasoner that a test holds up: nothing is buffered
anywhere, and a broken answer looks broken."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.clients.server import Server
from support.processes.processes import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streaming")]

PATIENCE = 40.0

PLUGIN = """
import time
from pathlib import Path

from memservice.hookspecs import hookimpl
from memservice.spi.providers import ReasonerProvider
from memservice.spi.reasoner import Consolidated, Derived, Summarized


class Held:
    name, capabilities = "held", frozenset()

    def derive(self, request):
        return Derived([])

    def summarize(self, request):
        return Summarized("")

    def consolidate(self, request):
        return Consolidated()

    def answer(self, request):
        yield "first"
        if request.question == "fail":
            raise ConnectionError("no model")
        deadline = time.monotonic() + 30
        while not Path(request.question).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield " and second" if time.monotonic() < deadline else " and too late"


@hookimpl
def memservice_reasoners():
    yield ReasonerProvider(name="held", open=lambda settings, context: Held())
"""


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of one process with two threads, so with one slot for slow answers."""
    folder = tmp_path_factory.mktemp("held")
    (folder / "held_reasoner.py").write_text(PLUGIN, encoding="utf-8")
    about = folder / "held_reasoner-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: held-reasoner\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[memservice]\nheld = held_reasoner\n", encoding="utf-8"
    )
    server = Server(
        folder,
        "--workers",
        "1",
        "--threads",
        "2",
        "--no-worker",
        PYTHONPATH=str(folder),
        REASONER="held",
    )
    try:
        server.wait_until_healthy()
        post(server, "peers", {"id": "alice"})
        yield server
    finally:
        assert server.stop() == 0


def post(server: Server, path: str, body: Any) -> Any:
    request = urllib.request.Request(
        f"{server.url}/v3/workspaces/w/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


@contextmanager
def stream(
    server: Server, query: str, path: str = "peers/alice/chat"
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    body = json.dumps({"query": query, "stream": True})
    connection.request(
        "POST",
        f"/v3/workspaces/w/{path}",
        body,
        {"Content-Type": "application/json", "Accept": "text/event-stream"},
    )
    with closing(connection), closing(connection.getresponse()) as answer:
        yield answer


@contextmanager
def stream_when_free(
    server: Server, query: str, path: str = "peers/alice/chat"
) -> Iterator[http.client.HTTPResponse]:
    """An answer that is being given has its slot until a moment after its last byte was read."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with stream(server, query, path) as answer:
            if answer.status != 503:
                yield answer
                return
        assert time.monotonic() < deadline, "the slot was never freed"
        time.sleep(0.05)


def next_event(answer: http.client.HTTPResponse) -> Any:
    line = answer.readline()
    assert line.startswith(b"data: "), line
    assert answer.readline() == b"\n"
    return json.loads(line[6:])


def test_the_first_piece_arrives_before_the_last_is_created(
    slow_server: Server, tmp_path: Path
) -> None:
    marker = tmp_path / "heard"
    with stream_when_free(slow_server, str(marker)) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert next_event(answer) == {"delta": {"content": "first"}, "done": False}
        marker.touch()
        assert next_event(answer) == {"delta": {"content": " and second"}, "done": False}
        assert next_event(answer) == {"done": True}
        assert answer.read() == b""


def test_slow_answers_leave_threads_for_other_requests(slow_server: Server, tmp_path: Path) -> None:
    marker = tmp_path / "heard"
    with stream_when_free(slow_server, str(marker), "chat") as answer:
        next_event(answer)
        with stream(slow_server, "x") as refused:
            assert refused.status == 503
            assert refused.headers["Retry-After"] is not None
            assert "try again" in json.load(refused)["detail"]
        assert post(slow_server, "peers/list", {})["total"] == 1
        marker.touch()
        assert [next_event(answer)["done"], next_event(answer)["done"]] == [False, True]
        answer.read()


def test_an_answer_that_fails_is_cut_off(slow_server: Server) -> None:
    """The body ends without the last chunk, so no client can take it for complete; the log says
    why, not what was asked."""
    with stream_when_free(slow_server, "fail") as answer:
        assert next_event(answer) == {"delta": {"content": "first"}, "done": False}
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            answer.read()
    # Its slot is free again.
    with stream_when_free(slow_server, "fail") as answer:
        assert answer.status == 200
    assert "a streamed answer failed: builtins.ConnectionError" in slow_server.log
    # The next test looks for tracebacks in the log, and gunicorn logs this one a moment later.
    eventually(
        lambda: slow_server.log.count("Error handling request") >= 2,
        what="both failures are logged",
    )


@contextmanager
def first_piece_received(server: Server, query: str) -> Iterator[socket.socket]:
    """A connection that has the first piece of an answer. Sends the request again while the answer
    before it has the only slot."""
    body = json.dumps({"query": query, "stream": True}).encode()
    head = (
        "POST /v3/workspaces/w/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        f"application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    address = ("127.0.0.1", urlsplit(server.url).port or 0)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with socket.create_connection(address, PATIENCE) as connection:
            connection.sendall(head.encode() + body)
            received = b""
            while b'"first"' not in received and not received.startswith(b"HTTP/1.1 503"):
                piece = connection.recv(10_000)
                assert piece, received
                received += piece
            if b'"first"' in received:
                yield connection
                return
        time.sleep(0.05)
    raise AssertionError("the slot was never freed")


@pytest.mark.parametrize("again", range(3))
def test_a_client_that_disconnects_frees_its_slot(
    slow_server: Server, tmp_path: Path, again: int
) -> None:
    """Noticed when the next piece is sent, at the latest; until then the only slot is taken."""
    marker, logged = tmp_path / "heard", len(slow_server.log)
    with first_piece_received(slow_server, str(marker)) as connection:
        # what follows is refused by a reset
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    marker.touch()
    with stream_when_free(slow_server, str(marker)) as answer:
        assert answer.status == 200
        assert [next_event(answer)["done"] for _ in range(3)] == [False, False, True]
        answer.read()
    assert "Traceback" not in slow_server.log[logged:]
