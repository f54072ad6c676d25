"""Hundreds of clients that send nothing, half a head or half a body, or drop by drop: others are
answered as if they were not there."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from support.clients.server import Server

pytestmark = pytest.mark.e2e

PROMPT = 15.0
"""Seconds in which others are answered: far less than any slow client is waited for, and enough on
a busy machine."""
PATIENCE = 60.0
POST = b"POST /v3/workspaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALF = {
    "silent": (500, b""),
    "half a line": (200, b"POST /v3/works"),
    "half a head": (200, b"POST /v3/workspaces HTTP/1.1\r\nHost: localhost\r\n"),
    "half a body": (200, POST + b'Content-Length: 100\r\n\r\n{"id": "w"'),
    "half a large body": (40, POST + b"Content-Length: 300000\r\n\r\n{" + b" " * 200_000),
    "half the chunks": (200, POST + b"Transfer-Encoding: chunked\r\n\r\n64\r\n{"),
    "an invitation not taken up": (
        100,
        POST + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n",
    ),
    "no further": (200, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
    "a second one that is half": (200, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With fewer threads than any test has slow clients."""
    started = Server(
        tmp_path_factory.mktemp("slow"), "--no-worker", "--workers", "1", "--threads", "4"
    )
    started.wait_until_healthy()
    yield started
    assert started.stop() == 0


Connect = Callable[..., socket.socket]


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    with ExitStack() as opened:

        def one(*pieces: bytes) -> socket.socket:
            connection = opened.enter_context(
                socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), PATIENCE)
            )
            for piece in pieces:
                connection.sendall(piece)
            return connection

        yield one


def others_are_answered(server: Server) -> None:
    """New connections and one that is kept, reading and writing."""
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        for number in range(3):
            began = time.monotonic()
            assert client.get("/health").status_code == 200
            body = json.dumps({"id": f"w{number}", "metadata": {"long": "x" * 60_000}}).ljust(
                100_000
            )
            response = client.post(
                "/v3/workspaces", content=body, headers={"Content-Type": "application/json"}
            )
            assert response.status_code in (200, 201)
            assert httpx.get(f"{server.url}/health", timeout=PATIENCE).status_code == 200
            assert time.monotonic() - began < PROMPT


@pytest.mark.parametrize(("number", "half"), HALF.values(), ids=HALF.keys())
def test_other_clients_are_answered_meanwhile(
    server: Server, connect: Connect, number: int, half: bytes
) -> None:
    for _ in range(number):
        connect(half)
    others_are_answered(server)


@pytest.mark.parametrize(
    "begun", [b"POST /v3/workspaces HTTP/1.1\r\nX-Long: ", POST + b"Content-Length: 1000\r\n\r\n"]
)
def test_other_clients_are_answered_while_one_sends_slowly(
    server: Server, connect: Connect, begun: bytes
) -> None:
    dripping, over = [connect(begun) for _ in range(100)], threading.Event()

    def drip() -> None:
        while not over.wait(0.1):
            for one in dripping:
                try:
                    one.sendall(b"x")
                except OSError:
                    return  # it was closed

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        others_are_answered(server)
    finally:
        over.set()
        thread.join()


def test_a_slow_head_has_five_seconds(connect: Connect) -> None:
    one, began = connect(b"GET /health HTTP/1.1\r\n"), time.monotonic()
    one.settimeout(0.3)
    while time.monotonic() - began < PATIENCE:
        try:
            one.sendall(b"X: y\r\n")
            assert one.recv(1000) == b""
            break
        except TimeoutError:
            continue
        except OSError:
            break
    assert 4.0 < time.monotonic() - began < 30.0


def test_connections_beyond_the_limit_are_answered(server: Server, connect: Connect) -> None:
    """The ones that have said nothing for longest make room."""
    for _ in range(1100):
        connect()
    others_are_answered(server)


def answers(one: socket.socket, number: int) -> list[tuple[int, bytes]]:
    statuses, reader = [], one.makefile("rb")
    for _ in range(number):
        status = int(reader.readline().split()[1])
        length = 0
        while line := reader.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        statuses.append((status, reader.read(length)))
    return statuses


def test_requests_in_one_piece_are_answered_in_order(connect: Connect) -> None:
    """And one that comes in two, its beginning behind others."""
    body = b'{"id": "piped"}'
    post = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    one = connect(get + post + b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n" + post[:-5])
    first = answers(one, 3)
    assert [status for status, _ in first] == [200, 201, 404]
    one.sendall(post[-5:] + get)
    assert [status for status, _ in answers(one, 2)] == [200, 200]
    time.sleep(0.5)
    one.sendall(get)
    assert answers(one, 1)[0] == (200, b'{"status":"ok"}')


@pytest.mark.parametrize("coded", [False, True])
def test_a_large_body_in_small_pieces_is_read_whole(connect: Connect, coded: bool) -> None:
    body = (
        b"{"
        + b" " * 350_000
        + json.dumps({"id": f"large{coded}", "metadata": {"text": "0123456789" * 5_000}})[
            1:
        ].encode()
    )
    pieces = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    one = connect(
        POST
        + (
            b"Transfer-Encoding: chunked\r\n\r\n"
            if coded
            else b"Content-Length: %d\r\n\r\n" % len(body)
        )
    )
    for piece in pieces:
        one.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if coded else piece)
        time.sleep(0.02)
    if coded:
        one.sendall(b"0\r\n\r\n")
    ((status, answer),) = answers(one, 1)
    assert status == 201
    assert json.loads(answer)["metadata"] == json.loads(body)["metadata"]


def test_expect_100_continue_is_answered(connect: Connect) -> None:
    body = b'{"id": "invited"}'
    one = connect(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
    assert one.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
    one.sendall(body)
    statuses = [status for status, _ in answers(one, 2)]
    assert statuses == [100, 201], (
        "gunicorn invites once more, which clients expect (RFC 9110, section 15.2)"
    )


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"garbage\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nExpect: coffee\r\n\r\n", 417),
    ],
)
def test_a_request_that_is_not_http_is_refused_in_json(
    connect: Connect, head: bytes, status: int
) -> None:
    one = connect(head)
    answer = b"".join(iter(lambda: one.recv(10_000), b""))
    top, _, body = answer.partition(b"\r\n\r\n")
    assert top.split()[1] == str(status).encode()
    assert b"Content-Type: application/json" in top
    assert isinstance(json.loads(body)["detail"], str)


def test_slow_clients_do_not_delay_the_shutdown(tmp_path: Path) -> None:
    """Silent clients are disconnected; a request that arrives during the shutdown is answered."""
    server = Server(tmp_path, "--no-worker", "--workers", "1", "--threads", "2")
    server.wait_until_healthy()
    at = ("127.0.0.1", urlsplit(server.url).port or 0)
    body = b'{"id": "late"}'
    with ExitStack() as opened:
        for _ in range(50):
            opened.enter_context(socket.create_connection(at, PATIENCE))
        late = opened.enter_context(socket.create_connection(at, PATIENCE))
        late.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body))
        time.sleep(0.5)
        rest = threading.Timer(1.0, late.sendall, [body])
        rest.start()
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 40
        rest.join()
        assert answers(late, 1)[0][0] == 201
