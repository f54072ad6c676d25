"""Clients that send half a request, read no answer, or never disconnect do not delay others."""

from __future__ import annotations

import json
import logging
import os
import selectors
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.workers.gthread import TConn

from memservice.serving import client_socket, clients
from memservice.serving.client_socket import ClientSocket
from memservice.serving.clients import BufferingWorker
from memservice.serving.threads import Threads
from support.processes import preloaded
from support.processes.command import environment
from support.processes.processes import eventually

PATIENCE = 30.0
"""What tells a hang from an answer."""

CONFIG = """
from memservice.serving import client_socket
from memservice.serving.gunicorn_config import *

client_socket.SECONDS = 1.0
workers, threads = 1, 2
"""


@pytest.fixture
def pair() -> Iterator[tuple[ClientSocket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ClientSocket.of(ours) as patient, theirs:
        theirs.settimeout(PATIENCE)
        patient.setblocking(True)
        yield patient, theirs


def test_a_client_that_sends_nothing_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, pair: tuple[ClientSocket, socket.socket]
) -> None:
    monkeypatch.setattr(client_socket, "SECONDS", 0.1)
    patient, theirs = pair
    theirs.sendall(b"half")
    assert patient.recv(100) == b"half"
    with pytest.raises(ConnectionResetError):
        patient.recv(100)


def test_the_loop_never_waits_for_a_client(pair: tuple[ClientSocket, socket.socket]) -> None:
    """Whatever a thread has set: gunicorn limits how long it reads the rest of a body."""
    patient, _ = pair
    for seconds in (0.0, 5.0, None):
        patient.settimeout(seconds)
        with pytest.raises(BlockingIOError):
            patient.receive()
    patient.setblocking(False)
    with pytest.raises(BlockingIOError):
        patient.recv(1)
    with pytest.raises(BlockingIOError):
        patient.sendall(bytes(2**24))


def test_a_shorter_time_limit_of_gunicorn_holds(pair: tuple[ClientSocket, socket.socket]) -> None:
    patient, theirs = pair
    patient.settimeout(0.01)
    assert patient.gettimeout() == 0.01
    with pytest.raises(ConnectionResetError):
        patient.recv(1)
    theirs.sendall(b"x")
    assert patient.recv(1) == b"x"


def test_a_client_that_sends_too_slowly_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, pair: tuple[ClientSocket, socket.socket]
) -> None:
    """However short each wait is."""
    monkeypatch.setattr(client_socket, "SECONDS", 0.3)
    patient, theirs = pair
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.02):
            theirs.sendall(b".")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        with pytest.raises(ConnectionResetError):
            for _ in range(10_000):
                patient.recv(1)
    finally:
        over.set()
        dripping.join()


def test_a_client_that_reads_nothing_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, pair: tuple[ClientSocket, socket.socket]
) -> None:
    monkeypatch.setattr(client_socket, "SECONDS", 0.1)
    monkeypatch.setattr(client_socket, "BYTES_PER_SECOND", 2**30)
    with pytest.raises(ConnectionResetError):
        pair[0].sendall(b"x" * 50_000_000)


def test_a_slow_but_steady_connection_is_served(
    monkeypatch: pytest.MonkeyPatch, pair: tuple[ClientSocket, socket.socket]
) -> None:
    """What came buys time for what is to come, and each request has its own."""
    monkeypatch.setattr(client_socket, "SECONDS", 0.05)
    monkeypatch.setattr(client_socket, "BYTES_PER_SECOND", 1)
    patient, theirs = pair
    theirs.sendall(b"x" * 100)
    assert len(patient.recv(100)) == 100
    later = threading.Timer(0.3, theirs.sendall, [b"more"])
    later.start()
    assert patient.recv(100) == b"more"
    later.join()
    patient.begin()
    with pytest.raises(ConnectionResetError):
        patient.recv(100)


def test_a_long_answer_is_sent_completely(pair: tuple[ClientSocket, socket.socket]) -> None:
    patient, theirs = pair
    whole = bytes(range(256)) * 20_000
    sending = threading.Thread(target=patient.sendall, args=(whole,))
    sending.start()
    got = bytearray()
    while len(got) < len(whole):
        got += theirs.recv(100_000)
    sending.join()
    assert got == whole


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server with two threads and little patience, one for all of these tests: each leaves it
    as it was, or the next one fails."""
    folder = tmp_path_factory.mktemp("impatient")
    (folder / "impatient.py").write_text(CONFIG, encoding="utf-8")
    environ = environment(PYTHONDONTWRITEBYTECODE="1")
    preloaded.run(["db", "upgrade"], folder, {}).check_returncode()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "impatient.py",
            "--bind",
            f"fd://{listener.fileno()}",
        ]
        process = subprocess.Popen(
            [*command, "memservice.serving.wsgi:app"],
            cwd=folder,
            env=environ,
            pass_fds=[listener.fileno()],
        )
        number = int(listener.getsockname()[1])
    try:
        eventually(lambda: healthy(number), what="it answers")
        yield number
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def healthy(port: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE) as answer:
        return bool(answer.status == 200)


@pytest.mark.e2e
@pytest.mark.xdist_group("impatient")
@pytest.mark.parametrize(
    "half",
    [
        b"POST /v3/workspaces HTTP/1.1\r\nHost: localhost\r\n",
        (
            b"POST /v3/workspaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            b'application/json\r\nContent-Length: 100\r\n\r\n{"id": "w"'
        ),
        (
            b"POST /v3/workspaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            b"application/json\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{"
        ),
    ],
)
def test_incomplete_requests_delay_no_others(port: int, half: bytes) -> None:
    """More of them than there are threads."""
    started = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(4)]
    try:
        for connection in started:
            connection.sendall(half)
        assert healthy(port)
        # to its end: the connection is closed
        answer = b"".join(iter(lambda: started[0].recv(10_000), b""))
        if b"Content-Type" in half:
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 ")
            assert "not arrive in time" in json.loads(body)["detail"]
        else:
            assert answer == b""
    finally:
        for connection in started:
            connection.close()


@pytest.mark.e2e
@pytest.mark.xdist_group("impatient")
@pytest.mark.parametrize("chunk", [b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}x\r\n0\r\n\r\n", b"-1\r\n"])
def test_malformed_chunks_are_the_clients_error(port: int, chunk: bytes) -> None:
    head = (
        b"POST /v3/workspaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        b"application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(head + chunk)
        answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert answer.startswith(b"HTTP/1.1 408 "), answer
    assert b"was incomplete" in answer


REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Loop(BufferingWorker):
    """Its loop alone: requests are noted instead of answered."""

    def __init__(self) -> None:
        self.poller = selectors.DefaultSelector()
        self.keepalived_conns: deque[Any] = deque()
        self.alive = True
        self.handed_over: list[Any] = []
        self._awaiting, self._ending = {}, {}
        self._buffered_bytes, self._released_bytes = 0, deque()
        self._keeping = threading.Lock()

    def enqueue_req(self, conn: Any) -> None:
        self.handed_over.append(conn)

    def turn(self) -> int:
        """Process what has arrived; returns the number of connections."""
        events = self.poller.select(1.0 if self.poller.get_map() else 0)
        for key, _ in events:
            key.data(key.fileobj)
        return len(events)


def test_a_connection_is_not_watched_while_it_sends_more_than_one_request(
    pair: tuple[ClientSocket, socket.socket],
) -> None:
    ours, client = pair
    loop = Loop()
    conn = TConn(Config(), ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
    loop._await(conn)
    for number in (1, 2):
        client.sendall(REQUEST)
        assert loop.turn() == 1
        assert loop.handed_over == [conn] * number
        assert ours.polled, "the usual client sends nothing until it has the answer"
        loop._keep(conn)
    client.sendall(REQUEST)
    loop.turn()
    client.sendall(REQUEST)  # before the answer
    assert loop.turn() == 1
    assert not ours.polled, "else the loop would be told again and again"
    assert loop.turn() == 0
    assert len(loop.handed_over) == 3
    loop._keep(conn)
    loop.turn()
    assert len(loop.handed_over) == 4
    loop.poller.close()


class Accepting:
    """A process that accepts connections, and is loaded with requests if a test says so."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.worker = BufferingWorker(
            1, os.getpid(), [self.listener], None, 30, Config(), logging.getLogger("gunicorn")
        )
        self.worker.poller = selectors.DefaultSelector()
        self._clients: list[socket.socket] = []
        self.is_loaded = False

    def connect(self) -> None:
        self._clients.append(socket.create_connection(self.listener.getsockname()))

    def accepted_in_a_turn(self, *, can_wait: bool = False) -> int:
        before = self.worker.nr_conns
        self.worker._turn(can_wait)
        return int(self.worker.nr_conns - before)

    def close(self) -> None:
        for key in list(self.worker.poller.get_map().values()):
            key.fileobj.close()
        self.worker.poller.close()
        self.worker.tmp.close()
        for each in (self.listener, *self._clients):
            each.close()


@pytest.fixture
def accepting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Accepting]:
    process = Accepting()
    monkeypatch.setattr(Threads, "is_loaded", property(lambda threads: process.is_loaded))
    yield process
    process.close()


def test_connections_are_left_to_other_processes_by_a_loaded_one(
    accepting: Accepting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "ACCEPT_SECONDS", 1_000.0)
    for _ in range(5):
        accepting.connect()
    assert accepting.accepted_in_a_turn() == 1
    accepting.is_loaded = True
    assert [accepting.accepted_in_a_turn() for _ in range(3)] == [0, 0, 0]
    with monkeypatch.context() as overloaded:
        overloaded.setattr(BufferingWorker, "_is_overloaded", lambda self: True)
        assert accepting.accepted_in_a_turn() == 1, "it refuses their requests"
    accepting.is_loaded = False
    assert [accepting.accepted_in_a_turn() for _ in range(3)] == [1, 1, 1]


def test_a_loaded_process_accepts_connections_at_intervals(
    accepting: Accepting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for anything else: all processes may be as busy."""
    monkeypatch.setattr(clients, "PARENT_SECONDS", 3 * PATIENCE)
    accepting.is_loaded = True
    for _ in range(4):
        accepting.connect()
    for _ in range(4):
        eventually(lambda: accepting.accepted_in_a_turn(can_wait=True) == 1)
