"""A server of Chat Completions on loopback: it answers with a text, or with nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "small-model"
USAGE = {"prompt_tokens": 210, "completion_tokens": 18, "total_tokens": 228}


class ModelServer:
    def __init__(self, text: str) -> None:
        self.text = text
        """The content of each answer; an empty one makes the task fail."""
        handler = type("_Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def settings(self, task: str) -> Mapping[str, str]:
        """Environment variables that let `task` (such as `SUMMARY`) use this model."""
        prefix = f"{task}_MODEL_CONFIG__"
        return {
            f"{prefix}TRANSPORT": "openai",
            f"{prefix}MODEL": MODEL,
            f"{prefix}OVERRIDES__BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1",
            f"{prefix}OVERRIDES__API_KEY": "unused",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: ModelServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        message = {"role": "assistant", "content": self.owner.text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "1", "object": "chat.completion", "model": MODEL, "usage": USAGE}
        body = json.dumps({**answer, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests read the requests' effects, not a log."""


@contextmanager
def serving_model(text: str) -> Iterator[ModelServer]:
    server = ModelServer(text)
    try:
        yield server
    finally:
        server.close()
