"""A client that disconnects while a language model writes its answer ends the call of the model."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from memservice.testing.model_server import Handler, Request, scripted
from support.clients.server import Server

pytestmark = pytest.mark.e2e

SECONDS = 20.0
"""Far less than `DIALECTIC_DEADLINE_SECONDS`."""
CHAT = "/v3/workspaces/w/peers/alice/chat"


def disconnect(client: socket.socket, handler: Handler, request: Request) -> None:
    """A model that never answers; the client disconnects when the model has the request."""
    client.close()
    handler.wait_to_be_left()


def test_the_call_of_the_model_ends(tmp_path: Path, subtests: pytest.Subtests) -> None:
    with scripted() as model:
        settings = {"LLM_OPENAI_BASE_URL": model.url, "LLM_MODEL": "m", "DERIVER_ENABLED": "false"}
        server = Server(tmp_path, "--no-worker", "--workers", "1", **settings)
        server.wait_until_healthy()
        for path in ("/v3/workspaces", "/v3/workspaces/w/peers"):
            body = {"id": "w" if path.endswith("workspaces") else "alice"}
            httpx.post(server.url + path, json=body, timeout=SECONDS).raise_for_status()
        address = urlsplit(server.url)
        for is_stream in ("false", "true"):
            with subtests.test(stream=is_stream):
                question = b'{"query": "What does alice keep?", "stream": %s}' % is_stream.encode()
                head = (
                    f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(question)}\r\n\r\n"
                )
                client = socket.create_connection((address.hostname or "", address.port or 0))
                model.then(partial(disconnect, client))
                client.sendall(head.encode() + question)
                assert model.left.wait(SECONDS)
        assert len(model.requests) == 2
        assert server.stop() == 0
