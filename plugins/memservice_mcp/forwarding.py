"""The server over stdin and stdout, on the tools of another server's `/mcp`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import memservice
from memservice.domain.errors import ConfigurationError
from memservice_mcp.blueprint import INSTALL
from memservice_mcp.stdio import serve

TIMEOUT = httpx2.Timeout(10, read=300)
"""Seconds. An answer of a language model can take minutes."""
CAUSES = {
    401: "the API key is missing or not valid: set MEMSERVICE_API_KEY",
    404: "it has no /mcp: is the URL right, and is MCP_ENABLED on?",
    405: f"it cannot serve /mcp: {INSTALL} on that server",
    421: "it does not know itself by this name: its operator can add it to ALLOWED_HOSTS",
}
"""What a response to the first request means, by its status."""


def run(url: str, key: str | None, workspace: str | None, peer: str | None) -> None:
    """Serve until stdin ends. Raises `ConfigurationError`, which never contains the key, for a URL,
    a key or a server that cannot be used."""
    address = address_of(url, workspace, peer)
    headers = {} if key is None else {"Authorization": f"Bearer {_checked(key)}"}
    asyncio.run(_run(address, headers))


async def _run(address: str, headers: dict[str, str]) -> None:
    # Redirects are not followed: they could send the key to any other server.
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT) as http:
        await _probe(http, address)
        async with Client(streamable_http_client(address, http_client=http)) as client:
            await serve(_server(client, address))


async def _probe(http: httpx2.AsyncClient, address: str) -> None:
    """Raises `ConfigurationError` for a server without MCP."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    try:
        response = await http.post(address, json=ping, headers=accept)
    except (httpx2.TransportError, httpx2.InvalidURL, UnicodeError) as error:
        raise ConfigurationError(
            f"{address} does not answer ({type(error).__name__}): is the URL right, and is the "
            "server running?"
        ) from None
    if response.status_code != 200:
        status = response.status_code
        cause = CAUSES.get(status, "is the URL right?")
        raise ConfigurationError(f"{address} answered with status {status}: {cause}")


def address_of(url: str, workspace: str | None, peer: str | None) -> str:
    """The URL of `/mcp`. Raises `ConfigurationError`."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        raise ConfigurationError("give the server's URL, for instance https://memory.example.org")
    if peer is not None and workspace is None:
        raise ConfigurationError("--peer with --url needs --workspace")
    base = url.rstrip("/").removesuffix("/mcp")
    names = (quote(name, safe="") for name in (workspace, peer) if name is not None)
    return "/".join((base, "mcp", *names))


def _checked(key: str) -> str:
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        raise ConfigurationError(
            "the key must be plain ASCII, without surrounding spaces and without line breaks"
        )
    return key


def _server(client: Client, address: str) -> Server[Any]:
    async def list_tools(_: Any, params: Any) -> types.ListToolsResult:
        async with _reachable(address):
            return await client.list_tools(cursor=_cursor(params))

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        async with _reachable(address):
            return await client.call_tool(params.name, params.arguments)

    async def list_resources(_: Any, params: Any) -> types.ListResourcesResult:
        async with _reachable(address):
            return await client.list_resources(cursor=_cursor(params))

    async def list_templates(_: Any, params: Any) -> types.ListResourceTemplatesResult:
        async with _reachable(address):
            return await client.list_resource_templates(cursor=_cursor(params))

    async def read_resource(
        _: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async with _reachable(address):
            return await client.read_resource(params.uri)

    async def list_prompts(_: Any, params: Any) -> types.ListPromptsResult:
        async with _reachable(address):
            return await client.list_prompts(cursor=_cursor(params))

    async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        async with _reachable(address):
            return await client.get_prompt(params.name, params.arguments)

    return Server(
        "memservice",
        version=memservice.__version__,
        title="memservice",
        instructions=client.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _cursor(params: types.PaginatedRequestParams | None) -> str | None:
    return None if params is None else params.cursor


@asynccontextmanager
async def _reachable(address: str) -> AsyncIterator[None]:
    """Tells the assistant if the server is away; it may be back for the next call."""
    try:
        yield
    except httpx2.TransportError as error:
        raise MCPError(
            code=types.INTERNAL_ERROR,
            message=f"{address} does not answer ({type(error).__name__}): try again later",
        ) from None
