"""Plain HTTP against a running server: what a caller without any client library sees, and what only
a real server shows."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.clients.server import Server, serving

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("served")]

FACT = "I keep bees behind the old mill."


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        yield client


@pytest.fixture
def path() -> str:
    """The path of a workspace of this test's own."""
    return f"/v3/workspaces/w-{uuid.uuid4().hex[:12]}"


def say(
    http: httpx.Client, path: str, session: str, *texts: str, peer: str = "alice", **options: Any
) -> httpx.Response:
    body = {"messages": [{"peer_id": peer, "content": text} for text in texts]}
    return http.post(f"{path}/sessions/{session}/messages", json=body, **options)


def eventually(look: Any, seconds: float = 30.0) -> Any:
    """The first truthy result of `look`, asked again and again."""
    deadline = time.monotonic() + seconds
    while not (result := look()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return result


def test_messages_become_conclusions_and_answers(http: httpx.Client, path: str) -> None:
    workspace = path.rpartition("/")[2]
    response = http.post("/v3/workspaces", json={"id": workspace})
    assert response.status_code == 201
    assert list(response.json()) == ["id", "uid", "metadata", "configuration", "created_at"]
    assert http.post("/v3/workspaces", json={"id": workspace}).status_code == 200

    messages = say(http, path, "talk", f"Hello! {FACT}", "What about you?")
    assert messages.status_code == 201
    first, second = messages.json()
    assert list(first) == [
        "id",
        "content",
        "peer_id",
        "session_id",
        "metadata",
        "created_at",
        "workspace_id",
        "token_count",
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", first["created_at"])
    reply = http.post(
        f"{path}/sessions/talk/messages/list",
        json={"filters": {}},
        params={"size": 1, "reverse": "true"},
    ).json()
    assert reply == {"items": [second], "total": 2, "page": 1, "size": 1, "pages": 2}

    def conclusions() -> Any:
        return http.post(f"{path}/conclusions/list").json()["items"]

    (conclusion,) = eventually(conclusions)
    assert conclusion["content"] == FACT
    assert {conclusion[name] for name in ("observer_id", "observed_id")} == {"alice"}
    assert (conclusion["level"], conclusion["source_ids"], conclusion["times_derived"]) == (
        "explicit",
        None,
        1,
    )
    assert [
        m["id"]
        for m in http.post(f"{path}/search", json={"query": "bees at the mill", "limit": 1}).json()
    ] == [first["id"]]
    representation = http.post(f"{path}/peers/alice/representation", json={}).json()[
        "representation"
    ]
    assert representation.endswith(f"] {FACT}\n")
    context = http.get(
        f"{path}/sessions/talk/context", params={"tokens": 200, "peer_target": "alice"}
    ).json()
    assert list(context) == ["id", "messages", "summary", "peer_representation", "peer_card"]
    assert [m["id"] for m in context["messages"]] == [first["id"], second["id"]]
    assert FACT in context["peer_representation"]
    status = eventually(
        lambda: (s := http.get(f"{path}/queue/status").json())["pending_work_units"] == 0 and s
    )
    assert status["completed_work_units"] == status["total_work_units"] == 2


def test_health_and_document(http: httpx.Client) -> None:
    assert (http.get("/health").json(), http.head("/health").status_code) == ({"status": "ok"}, 200)
    document = http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "/v3/workspaces/{workspace_id}/sessions/{session_id}/messages" in document["paths"]


@pytest.mark.parametrize(
    ("method", "path", "status", "detail"),
    [
        ("GET", "/nowhere", 404, "Not Found"),
        ("GET", "/v3/workspaces", 405, "Method Not Allowed"),
        ("PATCH", "/v3/workspaces/w", 405, "Method Not Allowed"),
        ("OPTIONS", "/v3/workspaces", 405, "Method Not Allowed"),
    ],
)
def test_errors_are_json(
    http: httpx.Client, method: str, path: str, status: int, detail: str
) -> None:
    answer = http.request(method, path)
    assert (answer.status_code, answer.json()) == (status, {"detail": detail})


def test_a_trailing_slash_is_redirected(http: httpx.Client, path: str) -> None:
    answer = http.post(f"{path}/peers/list/?size=3")
    assert (answer.status_code, answer.headers["location"]) == (307, f"{path}/peers/list?size=3")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"text"',
        b'{"messages": [{"peer_id": "a", "content": 7}]}',
        b'{"messages": [{"peer_id": "a", "content": "x", "metadata": {"n": NaN}}]}',
        b'{"messages": [{"peer_id": "a", "content": "x", "metadata": {"n": -Infinity}}]}',
        b'{"messages": [{"peer_id": "a", "content": "x", "metadata": {"n": 1e999}}]}',
        b'{"messages": [{"peer_id": "a", "content": "x", "metadata": {"n": 9223372036854775808}}]}',
        b'{"messages": [{"peer_id": "a", "content": "\\ud800"}]}',
        b'{"messages": [{"peer_id": "a", "content": "x", "created_at": "0000-01-01T00:00:00Z"}]}',
        b'{"messages": [{"peer_id": "a b", "content": "x"}]}',
        b'{"messages": [{"content": "x"}]}',
        b'\xff\xfe{"messages": []}',
        b"[" * 100_000,
    ],
)
def test_malformed_bodies_have_distinct_errors(http: httpx.Client, path: str, body: bytes) -> None:
    answer = http.post(
        f"{path}/sessions/s/messages", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    for problem in answer.json()["detail"]:
        assert problem.keys() == {"loc", "msg", "type"}
        assert problem["loc"][0] == "body"
        assert problem["msg"]


def test_invalid_queries_have_distinct_errors(http: httpx.Client, path: str) -> None:
    for query in (
        "size=0",
        "size=101",
        "page=0",
        "page=x",
        "size=1e3",
        "reverse=perhaps",
        "page=99999999999999999999",
    ):
        answer = http.post(f"{path}/peers/list?{query}")
        assert answer.status_code == 422, query
        assert answer.json()["detail"][0]["loc"] == ["query", query.partition("=")[0]]
    for query in (
        "tokens=-x",
        "search_max_distance=2",
        "search_top_k=0",
        "peer_perspective=a",
        "tokens=100001",
    ):
        assert http.get(f"{path}/sessions/s/context?{query}").status_code == 422, query


def test_a_body_may_be_missing_where_it_is_optional(http: httpx.Client, path: str) -> None:
    for content in (b"", b"null", b"{}", b'{"filters":null}'):
        answer = http.post(
            f"{path}/peers/list", content=content, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["total"]) == (200, 0)
    assert http.post("/v3/workspaces", content=b"").status_code == 422


def test_reading_creates_nothing(http: httpx.Client, path: str) -> None:
    workspace = path.rpartition("/")[2]
    assert http.post(f"{path}/search", json={"query": "x"}).json() == []
    assert http.get(f"{path}/sessions/s/summaries").json() == {
        "id": "s",
        "short_summary": None,
        "long_summary": None,
    }
    assert http.get(f"{path}/queue/status").json()["total_work_units"] == 0
    assert http.get(f"{path}/peers/p/card").status_code == 404
    assert (
        http.post("/v3/workspaces/list", json={"filters": {"id": workspace}}).json()["total"] == 0
    )


def test_a_retried_create_is_answered_not_repeated(http: httpx.Client, path: str) -> None:
    first = say(http, path, "s", "once", headers={"Idempotency-Key": "k-1"})
    again = say(http, path, "s", "once", headers={"Idempotency-Key": "k-1"})
    assert (first.status_code, first.json()) == (201, again.json())
    assert say(http, path, "s", "once", headers={"Idempotency-Key": "k-2"}).json() != first.json()
    assert http.post(f"{path}/sessions/s/messages/list").json()["total"] == 2


def test_many_concurrent_writers_lose_and_double_nothing(http: httpx.Client, path: str) -> None:
    """Across server processes: no message is lost or doubled, batches stay together."""

    def write(number: int) -> int:
        return say(
            http, path, "busy", f"{number} first", f"{number} second", peer=f"p{number % 4}"
        ).status_code

    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(write, range(60))) == {201}
    items = [
        item["content"]
        for page in (1, 2)
        for item in http.post(f"{path}/sessions/busy/messages/list?size=100&page={page}").json()[
            "items"
        ]
    ]
    assert sorted(items) == sorted(
        f"{number} {word}" for number in range(60) for word in ("first", "second")
    )
    assert [text.replace("first", "second") for text in items[::2]] == items[1::2]


def test_acknowledged_writes_survive_the_end_of_the_process(tmp_path: Path) -> None:
    """SIGKILL of the supervisor: the children end too, nothing acknowledged is lost, and the work
    is done after the next start."""
    server = Server(tmp_path, "--no-worker")
    try:
        server.wait_until_healthy()
        with httpx.Client(base_url=server.url, timeout=30) as http:
            stored = [
                say(http, "/v3/workspaces/w", "s", f"{FACT[:-1]} number {number}.").json()[0]["id"]
                for number in range(20)
            ]
    finally:
        server.stop(signal.SIGKILL)
    with serving(tmp_path) as again, httpx.Client(base_url=again.url, timeout=30) as http:
        items = http.post("/v3/workspaces/w/sessions/s/messages/list?size=100").json()["items"]
        assert [item["id"] for item in items] == stored
        eventually(lambda: http.post("/v3/workspaces/w/conclusions/list").json()["total"] >= 20)
        time.sleep(0.5)
        assert http.post("/v3/workspaces/w/conclusions/list").json()["total"] == 20, (
            "nothing is derived twice"
        )


def test_sigterm_lets_requests_finish(tmp_path: Path) -> None:
    """Writers go on until they are refused; whatever got a 201 is there after the next start, and
    nothing else."""
    acknowledged: list[str] = []
    refused = threading.Event()
    server = Server(tmp_path)
    server.wait_until_healthy()
    url = server.url

    def write(number: int) -> None:
        with httpx.Client(base_url=url, timeout=30) as http:
            for turn in range(10_000):
                try:
                    answer = say(http, "/v3/workspaces/w", "s", f"{number}-{turn}")
                except httpx.TransportError:
                    break
                assert answer.status_code == 201, answer.text
                acknowledged.append(f"{number}-{turn}")
        refused.set()

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        eventually(lambda: len(acknowledged) > 40)
        status = server.stop()
        for writer in writers:
            writer.result(30)
    assert (status, refused.is_set()) == (0, True)
    assert "Traceback" not in server.log
    assert [path.name for path in tmp_path.iterdir()] == ["memservice.db"], "one whole file is left"
    connection = sqlite3.connect(tmp_path / "memservice.db")
    stored = {row[0] for row in connection.execute("SELECT content FROM messages")}
    connection.close()
    assert stored >= set(acknowledged)
    assert len(stored - set(acknowledged)) <= 4, "at most the one that each writer heard nothing of"


def test_connections_are_kept_alive_and_a_slow_one_delays_no_other(
    server: Server, http: httpx.Client
) -> None:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"POST /v3/workspaces HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(20):
            assert http.get("/health").status_code == 200
        slow.sendall(b"Content-Length: 10\r\n\r\n")
        assert http.get("/health").status_code == 200
    for _ in range(3):
        answer = http.get("/health")
        assert answer.headers.get("connection", "keep-alive").lower() == "keep-alive"


def test_the_script_name_header_is_ignored(http: httpx.Client) -> None:
    """A proxy could send this header for a path prefix. It is ignored, because any client can send
    it."""
    assert http.get("/health", headers={"SCRIPT_NAME": "/health"}).json() == {"status": "ok"}
