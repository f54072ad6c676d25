"""What a Qdrant server is sent: payload indexes, the tenant's key, and the tenant's condition in
every request about points.

The stand-in in the process ignores all of that, so it is looked at on the way, over a socket.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from memservice.domain.errors import ConfigurationError, IndexUnavailable
from memservice.plugins import load_plugins
from memservice.spi.index_filter import IndexFilter
from memservice.spi.providers import Context
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import NOON, SECOND
from memservice.testing.vectors import OURS, THEIRS, at_angle, row, vector
from memservice_qdrant.collections import collection_of
from memservice_qdrant.conditions import tenant_of

# A key over plain HTTP: the server is on this machine.
pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")

NAME = collection_of("here", OURS)
DONE = {"operation_id": 1, "status": "completed"}


class Server(ThreadingHTTPServer):
    """Answers as Qdrant does, keeps collections and their payload indexes, and finds nothing."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str, Any, str | None]] = []
        """Method, path, body and API key."""
        self.collections: dict[str, dict[str, Any]] = {}
        self.fails_with: int | None = None
        self.created_by_another = False
        self.hangs = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def bodies(self, method: str, path: str) -> list[Any]:
        return [body for each, where, body, _ in self.requests if (each, where) == (method, path)]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self.fails_with is not None:
            return self.fails_with, None
        _, _, name, *rest = path.split("/")
        if not rest and method == "PUT":
            taken = self.created_by_another or name in self.collections
            self.collections.setdefault(name, {})
            return (409, None) if taken else (200, True)
        if rest == ["exists"]:
            return 200, {"exists": name in self.collections and not self.created_by_another}
        if name not in self.collections:
            return 404, None
        if rest == ["index"]:
            self.collections[name][body["field_name"]] = {"data_type": "keyword", "points": 0}
            return 200, DONE
        if not rest:
            return 200, described(self.collections[name])
        results: dict[str, Any] = {
            "query": {"points": []},
            "count": {"count": 3},
            "scroll": {"points": []},
        }
        return 200, [] if rest == ["points"] and method == "POST" else results.get(rest[-1], DONE)


def described(payload_schema: dict[str, Any]) -> dict[str, Any]:
    params = {"vectors": {"size": 4, "distance": "Cosine"}}
    hnsw = {"m": 0, "ef_construct": 100, "full_scan_threshold": 10000}
    optimizers = {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    }
    config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizers}
    return {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "config": config,
        "payload_schema": payload_schema,
    }


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path = urlsplit(self.path).path
        self.server.requests.append((self.command, path, body, self.headers.get("api-key")))
        if self.server.hangs.is_set():
            threading.Event().wait(3)
        status, result = self.server.answer(self.command, path, body)
        response_body = (
            {"status": "ok", "time": 0.0, "result": result}
            if status == 200
            else {"status": {"error": "no"}, "time": 0.0}
        )
        sent = json.dumps(response_body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_PUT = do_POST = do_DELETE = _do  # noqa: N815 - the names that the library looks for

    def log_message(self, format: str, *args: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def server() -> Iterator[Server]:
    opened = Server()
    thread = threading.Thread(target=opened.serve_forever, args=(0.02,))
    thread.start()
    yield opened
    opened.shutdown()
    opened.server_close()
    thread.join()


def open_at(url: str | None, **settings: Any) -> VectorIndex:
    plugins = load_plugins()
    options = {"url": url, "api_key": "k-1", "namespace": "here", **settings}
    context = Context(lambda: NOON, logging.getLogger("memservice.test"))
    opened: VectorIndex = plugins.open_provider(plugins.vector_index("qdrant"), options, context)
    return opened


def conditions(body: Any) -> list[Any]:
    clauses: list[Any] = body["filter"]["must"]
    assert "should" not in body["filter"]
    return clauses


TENANT = {"key": "space", "match": {"value": tenant_of(OURS)}}


def test_a_collection_is_made_for_tenants_with_an_index_for_every_field(server: Server) -> None:
    index = open_at(server.url, options={"replication_factor": 2, "on_disk": True})
    index.upsert(None, OURS, [row(1)])
    index.upsert(None, THEIRS, [row(1)])
    (collection,) = server.bodies("PUT", f"/collections/{NAME}")
    assert collection["vectors"] == {"size": 4, "distance": "Cosine", "on_disk": True}
    assert collection["hnsw_config"] == {"m": 0, "payload_m": 16}
    assert collection["replication_factor"] == 2
    indexes = {
        body["field_name"]: body["field_schema"]
        for body in server.bodies("PUT", f"/collections/{NAME}/index")
    }
    number, bounded = ({"type": "integer", "lookup": a, "range": not a} for a in (True, False))
    assert indexes == {
        "space": {"type": "keyword", "is_tenant": True},
        "key": bounded,
        "session": number,
        "author": number,
        "observer": number,
        "observed": number,
        "level": {"type": "keyword"},
        "at": bounded,
    }
    assert {key for _, _, _, key in server.requests} == {"k-1"}


def test_missing_indexes_are_created_by_the_next_process(server: Server) -> None:
    server.collections[NAME] = {"space": {"data_type": "keyword", "points": 0}}
    open_at(server.url).upsert(None, OURS, [row(1)])
    assert server.bodies("PUT", f"/collections/{NAME}") == []
    assert {body["field_name"] for body in server.bodies("PUT", f"/collections/{NAME}/index")} == {
        "key", "session", "author", "observer", "observed", "level", "at",
    }  # fmt: skip


def test_a_collection_created_concurrently_is_used(server: Server) -> None:
    server.created_by_another = True
    open_at(server.url).upsert(None, OURS, [row(1)])
    assert len(server.bodies("PUT", f"/collections/{NAME}/points")) == 1


def test_points_are_sent_in_batches_with_their_tenant(server: Server) -> None:
    index = open_at(server.url)
    index.upsert(
        None,
        OURS,
        [
            row(n, n / 10, session=7, observer=8, observed=9, level="explicit", at=NOON)
            for n in range(1, 451)
        ],
    )
    sent = server.bodies("PUT", f"/collections/{NAME}/points")
    assert [len(body["points"]) for body in sent] == [200, 200, 50]
    points = [point for body in sent for point in body["points"]]
    assert len({point["id"] for point in points}) == 450
    assert points[0]["payload"] == {
        "space": tenant_of(OURS),
        "key": 1,
        "uid": row(1).uid,
        "session": 7,
        "observer": 8,
        "observed": 9,
        "level": "explicit",
        "at": 1709208000123456,
    }
    index.delete(None, OURS, [450, 1])
    (deletion,) = server.bodies("POST", f"/collections/{NAME}/points/delete")
    assert deletion["points"] == [points[449]["id"], points[0]["id"]]
    index.upsert(None, THEIRS, [row(1)])
    assert (
        server.bodies("PUT", f"/collections/{NAME}/points")[-1]["points"][0]["id"]
        != points[0]["id"]
    )


def test_every_query_is_limited_to_its_tenant(server: Server) -> None:
    index = open_at(server.url)
    index.upsert(None, OURS, [row(1)])
    index.query(None, OURS, at_angle(0), 5, IndexFilter())
    index_filter = IndexFilter((1, 2), (3,), (4,), (5,), ('"; drop',), NOON, NOON + SECOND)
    index.query(None, OURS, at_angle(0), 5, index_filter)
    index.query(None, OURS, at_angle(0), 5, IndexFilter(), ids=[1, 9])
    index.keys(None, OURS, after=4, limit=10)
    index.count(None, OURS)
    index.drop(None, OURS)
    plain, filtered, by_ids = server.bodies("POST", f"/collections/{NAME}/points/query")
    assert conditions(plain) == [TENANT]
    assert conditions(filtered) == [
        TENANT,
        {"key": "session", "match": {"any": [1, 2]}},
        {"key": "author", "match": {"any": [3]}},
        {"key": "observer", "match": {"any": [4]}},
        {"key": "observed", "match": {"any": [5]}},
        {"key": "level", "match": {"any": ['"; drop']}},
        {"key": "at", "range": {"gte": 1709208000123456.0, "lte": 1709208001123456.0}},
    ]
    first, second = conditions(by_ids)
    assert (first, len(second["has_id"]), by_ids["params"]["exact"]) == (TENANT, 2, True)
    (scrolled,) = server.bodies("POST", f"/collections/{NAME}/points/scroll")
    assert conditions(scrolled) == [TENANT, {"key": "key", "range": {"gt": 4.0}}]
    assert (scrolled["order_by"], scrolled["limit"]) == ({"key": "key", "direction": "asc"}, 10)
    (counted,) = server.bodies("POST", f"/collections/{NAME}/points/count")
    assert (conditions(counted), counted["exact"]) == ([TENANT], True)
    (dropped,) = server.bodies("POST", f"/collections/{NAME}/points/delete")
    assert conditions(dropped) == [TENANT]


def test_a_filter_that_matches_nothing_sends_no_request(server: Server) -> None:
    index = open_at(server.url)
    assert index.query(None, OURS, at_angle(0), 5, IndexFilter(sessions=())) == []
    assert index.query(None, OURS, at_angle(0), 0, IndexFilter()) == []
    assert index.query(None, OURS, vector(0, 0, 0, 0), 5, IndexFilter()) == []
    assert index.query(None, OURS, at_angle(0), 5, IndexFilter(), ids=[]) == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("status", "words"),
    [(500, "500"), (503, "503"), (401, "VECTOR_STORE_API_KEY"), (403, "VECTOR_STORE_API_KEY")],
)
def test_an_error_of_the_server_is_reported(server: Server, status: int, words: str) -> None:
    index = open_at(server.url)
    server.fails_with = status
    for ask in (
        lambda: index.count(None, OURS),
        lambda: index.upsert(None, OURS, [row(1)]),
        lambda: index.drop(None, OURS),
    ):
        with pytest.raises(IndexUnavailable, match=words) as failed:
            ask()
        assert "k-1" not in str(failed.value)
    server.fails_with = None
    index.upsert(None, OURS, [row(1)])
    assert index.count(None, OURS) == 3


def test_a_server_that_hangs_is_abandoned_after_the_timeout(server: Server) -> None:
    index = open_at(server.url, options={"timeout_seconds": 1})
    server.hangs.set()
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        index.count(None, OURS)


def test_an_unreachable_server_and_a_missing_url_are_errors() -> None:
    index = open_at("http://127.0.0.1:9")
    with pytest.raises(IndexUnavailable, match=r"127\.0\.0\.1:9"):
        index.query(None, OURS, at_angle(0), 5, IndexFilter())
    with pytest.raises(ConfigurationError, match="VECTOR_STORE_URL"):
        open_at(None)
    with pytest.raises(ConfigurationError, match="VECTOR_STORE_URL"):
        open_at("http://[nowhere")
