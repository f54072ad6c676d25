"""A language-model server on loopback between memservice and the provider.

It records every request, so that a run can grade the input of the model. It answers repeated
requests from recordings and forwards the others. Without a provider it gives fixed answers: no tool
calls, empty lists for JSON, `READY` for text.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from memservice_bench.client import trusted_certificates

UPSTREAM_TIMEOUT = 180.0
TEXT = "READY"


class Call(Struct, frozen=True):
    """One request of the server to its model."""

    prompt: str
    """All texts of the request, with white space collapsed."""
    tokens: int
    """Input and output tokens by the provider's count; 0 if it has none."""


class Upstream(Struct, frozen=True):
    base_url: str
    api_key: str | None = None


class Reply(Struct, frozen=True):
    status: int
    content_type: str
    body: bytes


class ModelProxy:
    """Serves until `close`. `calls` grows with each request; read it with `since`."""

    def __init__(
        self, upstream: Upstream | None, recordings: Path | None, *, replay_only: bool = False
    ) -> None:
        self._upstream = upstream
        self._recordings = recordings
        self._replay_only = replay_only
        self._calls: list[Call] = []
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                reply = proxy.reply(self.path, raw)
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.content_type)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:
                """Write nothing: prompts and paths must not reach the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._calls)

    def since(self, start: int) -> list[Call]:
        """Calls after the first `start`."""
        with self._lock:
            return self._calls[start:]

    @property
    def tokens(self) -> int:
        with self._lock:
            return sum(call.tokens for call in self._calls)

    def reply(self, path: str, raw: bytes) -> Reply:
        reply = self._recorded(path, raw)
        if reply is None and self._replay_only:
            reply = _error(502, "this request is not among the recordings")
        elif reply is None and self._upstream is not None:
            reply = self._forward(self._upstream, path, raw)
            if reply.status == 200:
                self._record(path, raw, reply)
        elif reply is None:
            reply = scripted(json.loads(raw))
        with self._lock:
            self._calls.append(Call(shown(json.loads(raw)), _usage(reply.body)))
        return reply

    def _file(self, path: str, raw: bytes) -> Path | None:
        if self._recordings is None:
            return None
        digest = hashlib.sha256(path.encode() + b"\n" + raw).hexdigest()
        return self._recordings / f"{digest}.json"

    def _recorded(self, path: str, raw: bytes) -> Reply | None:
        file = self._file(path, raw)
        if file is None or not file.is_file():
            return None
        data = json.loads(file.read_text("utf-8"))
        return Reply(200, data["content_type"], data["body"].encode())

    def _record(self, path: str, raw: bytes, reply: Reply) -> None:
        file = self._file(path, raw)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            data = {"content_type": reply.content_type, "body": reply.body.decode("utf-8")}
            file.write_text(json.dumps(data), "utf-8")

    def _forward(self, upstream: Upstream, path: str, raw: bytes) -> Reply:
        headers = {"Content-Type": "application/json"}
        if upstream.api_key:
            headers["Authorization"] = f"Bearer {upstream.api_key}"
        url = upstream.base_url.rstrip("/") + path.removeprefix("/v1")
        try:
            response = httpx.post(
                url,
                content=raw,
                headers=headers,
                timeout=UPSTREAM_TIMEOUT,
                verify=trusted_certificates(),
            )
        except httpx.HTTPError as error:
            return _error(502, f"the provider did not answer: {type(error).__name__}")
        return Reply(
            response.status_code,
            response.headers.get("Content-Type", "application/json"),
            response.content,
        )


def shown(request: Any) -> str:
    """All texts in a request, in order, white space folded."""
    texts: list[str] = []
    pending = [request]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, Mapping):
            pending.extend(reversed(list(value.values())))
        elif isinstance(value, list):
            pending.extend(reversed(value))
    return " ".join(" ".join(texts).split())


def scripted(request: Mapping[str, Any]) -> Reply:
    """The answer of a model that does nothing clever, as an OpenAI chat completion."""
    form = request.get("response_format") or {}
    schema = (form.get("json_schema") or {}).get("schema")
    if schema is not None:
        text = json.dumps(least(schema))
    else:
        text = "{}" if form.get("type") == "json_object" else TEXT
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    if request.get("stream"):
        pieces: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
        ]
        lines = [f"data: {json.dumps(piece)}\n\n" for piece in pieces] + ["data: [DONE]\n\n"]
        return Reply(200, "text/event-stream", "".join(lines).encode())
    message = {"role": "assistant", "content": text}
    body = {
        "id": "bench",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    return Reply(200, "application/json", json.dumps(body).encode())


def least(schema: Mapping[str, Any]) -> Any:
    """The smallest value that fits a JSON Schema of the kind that memservice sends."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return least(schema["anyOf"][0])
    kind = schema.get("type", "null")
    if isinstance(kind, list):
        kind = "null" if "null" in kind else kind[0]
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: least(properties[name]) for name in schema.get("required", properties)}
    simple: dict[str, Any] = {
        "array": [],
        "string": "",
        "integer": 0,
        "number": 0,
        "boolean": False,
        "null": None,
    }
    return simple[kind]


def _usage(body: bytes) -> int:
    """Tokens of an answer; of a stream, those of its last piece that counts any."""
    for line in reversed(body.decode("utf-8", "replace").splitlines()):
        try:
            usage = json.loads(line.removeprefix("data: ")).get("usage")
        except (ValueError, AttributeError):
            continue  # a line of another kind, or of an indented document
        if usage:
            return int(usage.get("total_tokens", 0))
    return 0


def _error(status: int, message: str) -> Reply:
    return Reply(status, "application/json", json.dumps({"error": {"message": message}}).encode())
