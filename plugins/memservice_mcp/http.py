"""One HTTP request, answered by the SDK.

The SDK serves ASGI, and this server is WSGI. A request and its response are complete texts here, so
the SDK's application runs in an event loop that exists for this request only, in the request's own
thread (docs/decisions/mcp.md). No thread is started, and the tools see the context of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from memservice_mcp.context import ToolContext
from memservice_mcp.server import server_of

_context: ContextVar[ToolContext] = ContextVar("memservice_mcp")

Headers = Sequence[tuple[str, str]]


def answer(
    selection: str, context: ToolContext, headers: Headers, body: bytes
) -> tuple[int, Headers, bytes]:
    """Status, headers and body of the response to a POST request with these headers and this body.
    `selection`: the setting `MCP_TOOLS`."""
    token = _context.set(context)
    try:
        return asyncio.run(_answer(_server(selection), headers, body))
    finally:
        _context.reset(token)


@cache
def _server(selection: str) -> Server[Any]:
    return server_of(selection, _context.get)


async def _answer(server: Server[Any], headers: Headers, body: bytes) -> tuple[int, Headers, bytes]:
    response = _Response()
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(_scope(headers), _Request(body).receive, response.send)
    return response.status, response.headers, bytes(response.body)


def _scope(headers: Headers) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in headers
        ],
        "client": None,
        "server": None,
    }


class _Request:
    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def receive(self) -> MutableMapping[str, Any]:
        """The whole body, once. The end of the connection is not known here, so waiting for it ends
        with the event loop."""
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Response:
    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[str, str]] = []
        self.body = bytearray()

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            self.headers = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message.get("headers", ())
            ]
        else:
            self.body += message.get("body", b"")
