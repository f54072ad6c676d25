"""More requests than threads, idle connections, and more streams than a server allows."""

from __future__ import annotations

import http.client
import json
import select
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from memservice.serving.clients import QUEUED_PER_THREAD
from memservice.testing.llm import Say
from memservice.testing.model_protocols import OpenAiWire
from memservice.testing.model_server import Handler, Request, scripted
from memservice.testing.model_server import Server as Model
from support.clients.server import Server, serving
from support.processes.processes import eventually

pytestmark = pytest.mark.e2e

SECONDS = 60.0
THREADS = 2
QUEUED = THREADS * QUEUED_PER_THREAD
EXCESS = 10
IDLE, STREAMS = 1_000, 50
CHAT = "/v3/workspaces/w/peers/alice/chat"


@contextmanager
def connections(server: Server) -> Iterator[Callable[[], http.client.HTTPConnection]]:
    """A function that opens connections, which are closed at the end."""
    address = urlsplit(server.url)
    with ExitStack() as stack:

        def connect() -> http.client.HTTPConnection:
            connection = http.client.HTTPConnection(
                address.hostname or "", address.port, timeout=SECONDS
            )
            connection.connect()
            stack.enter_context(closing(connection))
            return connection

        yield connect


def send(connection: http.client.HTTPConnection, path: str, body: object) -> None:
    content = json.dumps(body).encode()
    connection.request("POST", path, content, {"Content-Type": "application/json"})


def check_refusal(response: http.client.HTTPResponse) -> None:
    """503, in the form of the API's errors, and when to try again."""
    assert response.status == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert "try again soon" in json.loads(response.read())["detail"]


def test_requests_beyond_the_queue_are_refused(tmp_path: Path) -> None:
    """All threads wait for the store, which another process has locked. Requests behind them wait
    too, up to a limit. Those beyond it are refused, and all others are answered in the end."""
    options = ("--no-worker", "--workers", "1", "--threads", f"{THREADS}")
    with (
        serving(tmp_path, *options, DB_POOL_TIMEOUT=f"{10 * SECONDS}") as server,
        closing(sqlite3.connect(tmp_path / "memservice.db", isolation_level=None)) as lock,
        connections(server) as connect,
    ):
        lock.execute("BEGIN IMMEDIATE")
        waiting = [connect() for _ in range(THREADS + QUEUED)]
        for number, connection in enumerate(waiting):
            send(connection, "/v3/workspaces", {"id": f"w{number}"})
        late: list[http.client.HTTPConnection] = []

        def is_refused() -> bool:
            late.append(connect())
            send(late[-1], "/v3/workspaces", {"id": "late"})
            return bool(select.select([late[-1].sock], [], [], 0.5)[0])

        eventually(is_refused, "a request is refused")
        for _ in range(EXCESS):
            connection = connect()
            send(connection, "/v3/workspaces", {"id": "refused"})
            check_refusal(connection.getresponse())
        check_refusal(late.pop().getresponse())
        lock.execute("ROLLBACK")
        statuses = [connection.getresponse().status for connection in waiting + late]
        assert set(statuses) == {200, 201}
        assert statuses[: len(waiting)] == [201] * len(waiting)
        response = httpx.post(f"{server.url}/v3/workspaces/list?size=100", json={}, timeout=SECONDS)
        assert "refused" not in {each["id"] for each in response.json()["items"]}
    assert "requests wait for a thread: refused 1 since the last such line" in server.log


@pytest.fixture
def finish() -> threading.Event:
    """When it is set, the model ends its answers."""
    return threading.Event()


@pytest.fixture
def model(finish: threading.Event) -> Iterator[Model]:
    """A model that writes the beginning of an answer, and its end later."""
    wire = OpenAiWire()

    def write(handler: Handler, request: Request) -> None:
        if not wire.is_stream(request):
            handler.json(wire.whole(Say(("READY",))))
            return
        handler.begin_chunks("text/event-stream")
        first, *others = wire.events(Say(("Seven hives" + " of bees" * 30, ".")))
        handler.chunk(first)
        finish.wait(SECONDS)
        for event in others:
            handler.chunk(event)
        handler.end_chunks()

    with scripted() as model_server:
        model_server.then(write)
        yield model_server


def test_idle_connections_and_streams_do_not_delay_reads(
    tmp_path: Path, model: Model, finish: threading.Event
) -> None:
    settings = {"LLM_OPENAI_BASE_URL": model.url, "LLM_MODEL": "m", "DERIVER_ENABLED": "false"}
    with (
        serving(tmp_path, "--no-worker", "--threads", "8", **settings) as server,
        connections(server) as connect,
        httpx.Client(base_url=server.url, timeout=SECONDS) as client,
    ):
        messages = [{"peer_id": "alice", "content": f"Hive {n} has bees."} for n in range(20)]
        session = "/v3/workspaces/w/sessions/s"
        client.post("/v3/workspaces/w/sessions", json={"id": "s"}).raise_for_status()
        client.post(f"{session}/messages", json={"messages": messages}).raise_for_status()

        for _ in range(IDLE):
            connect()
        streams = [connect() for _ in range(STREAMS)]
        responses: list[http.client.HTTPResponse] = []

        def ask(connection: http.client.HTTPConnection) -> None:
            send(connection, CHAT, {"query": "How many hives?", "stream": True})
            responses.append(connection.getresponse())

        asking = [threading.Thread(target=ask, args=(each,)) for each in streams]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join(SECONDS)
        assert len(responses) == STREAMS
        is_open = [response.status == 200 for response in responses]
        # Half of the threads of a process; whether both got some is the kernel's choice.
        assert 4 <= sum(is_open) <= 8
        for response in responses:
            if response.status != 200:
                check_refusal(response)
        for response in responses:
            if response.status == 200:
                assert b"Seven hives" in response.readline()

        for _ in range(20):
            page = httpx.post(f"{server.url}{session}/messages/list", json={}, timeout=SECONDS)
            assert len(page.json()["items"]) == 20
            hits = client.post("/v3/workspaces/w/search", json={"query": "hive 7"}).json()
            assert hits[0]["content"] == "Hive 7 has bees."
        finish.set()
        for response in responses:
            if response.status == 200:
                assert b'"done": true' in response.read()
