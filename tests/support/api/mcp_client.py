"""The tools of `/mcp`, called through the application in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-11-25",
}


@dataclass(frozen=True)
class McpClient:
    client: FlaskClient
    path: str = "/mcp"
    token: str | None = None

    def post(self, body: Any, **headers: str) -> TestResponse:
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return self.client.post(self.path, json=body, headers={**HEADERS, **headers})

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **headers: str) -> Any:
        """The JSON-RPC response to one request."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {})}
        answer = self.post(body, **headers)
        assert answer.status_code == 200, f"{answer.status_code}: {answer.text[:500]}"
        return answer.get_json()

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured result of a tool."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result["isError"], result["content"]
        return result["structuredContent"]

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a tool's error."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert result["isError"], result
        assert "structuredContent" not in result
        (content,) = result["content"]
        text: str = content["text"]
        return text
