"""A stand-in for a Qdrant server, for tests: it passes the plugin's requests, over a socket, to the
client's own in-process engine.

Features of the server alone (payload indexes, tenants) are recorded and have no effect.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from qdrant_client import QdrantClient, models

DONE = {"operation_id": 1, "status": "completed"}


class QdrantStandIn:
    """Listens at a port that stays its own: stopped and started, with what it held or empty."""

    def __init__(self) -> None:
        self._engine = QdrantClient(":memory:")
        self._schemas: dict[str, dict[str, Any]] = {}
        self._alone = threading.Lock()  # the engine is not made for threads
        self._server: _Server | None = None
        self._port = 0
        self.queries = 0
        """How many searches it has answered."""
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def points(self) -> int:
        """How many it holds, of all collections."""
        with self._alone:
            return sum(
                self._engine.count(each.name).count
                for each in self._engine.get_collections().collections
            )

    def start(self, *, empty: bool = False) -> None:
        if empty:
            self._engine, self._schemas = QdrantClient(":memory:"), {}
        self._server = _Server(self._port, self)
        self._port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        """From now on connections are refused, and those that are open are cut."""
        if self._server is not None:
            self._server.shutdown()
            self._server.cut()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and `result`."""
        with self._alone:
            return self._answer(method, path.strip("/").split("/")[1:], body)

    def _answer(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        engine = self._engine
        if not path:
            return 200, engine.get_collections().model_dump()
        name, what = path[0], (method, *path[1:])
        there = engine.collection_exists(name)
        if what == ("PUT",):
            if there:
                return 409, None
            self._schemas[name] = {}
            return 200, engine.create_collection(
                name, vectors_config=models.VectorParams(**body["vectors"])
            )
        if what == ("GET", "exists"):
            return 200, {"exists": there}
        if not there:
            return 404, None
        if what == ("GET",):
            return 200, json.loads(engine.get_collection(name).model_dump_json()) | {
                "payload_schema": self._schemas[name]
            }
        if what == ("PUT", "index"):
            schema = body["field_schema"]
            self._schemas[name][body["field_name"]] = {
                "data_type": schema["type"],
                "params": schema,
                "points": 0,
            }
            return 200, DONE
        return self._of_points(name, what, body)

    def _of_points(self, name: str, what: tuple[str, ...], body: Any) -> tuple[int, Any]:
        engine = self._engine
        narrowed = models.Filter(**body["filter"]) if body.get("filter") else None
        if what == ("PUT", "points"):
            engine.upsert(name, [models.PointStruct(**point) for point in body["points"]])
            return 200, DONE
        if what == ("POST", "points", "delete"):
            engine.delete(
                name,
                models.FilterSelector(filter=narrowed)
                if narrowed
                else models.PointIdsList(points=body["points"]),
            )
            return 200, DONE
        if what == ("POST", "points"):
            records = engine.retrieve(
                name,
                body["ids"],
                with_payload=body["with_payload"],
                with_vectors=body["with_vector"],
            )
            return 200, [record.model_dump() for record in records]
        if what == ("POST", "points", "count"):
            return 200, engine.count(name, narrowed).model_dump()
        if what == ("POST", "points", "scroll"):
            order = models.OrderBy(**body["order_by"])
            records, _ = engine.scroll(
                name, narrowed, body["limit"], order, with_payload=body["with_payload"]
            )
            return 200, {"points": [record.model_dump() for record in records]}
        if what == ("POST", "points", "query"):
            self.queries += 1
            result = engine.query_points(
                name,
                body["query"]["nearest"],
                query_filter=narrowed,
                limit=body["limit"],
                with_payload=body["with_payload"],
            )
            return 200, {"points": [point.model_dump() for point in result.points]}
        raise NotImplementedError(what)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, stand_in: QdrantStandIn) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.stand_in = stand_in
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        for request in list(self._open):
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut is no news; anything else the client sees as no answer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        status, result = self.server.stand_in.answer(self.command, urlsplit(self.path).path, body)
        answer = (
            {"status": "ok", "time": 0.0, "result": result}
            if status == 200
            else {"status": {"error": "no"}, "time": 0.0}
        )
        sent = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_PUT = do_POST = do_DELETE = _do  # noqa: N815  # the names that the library looks for

    def log_message(self, format: str, *args: object) -> None:
        """Not on the terminal."""
