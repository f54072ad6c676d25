"""The SDK's own client against a served process."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from memservice.cli import cli
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError
from memservice.settings import load_settings
from memservice_mcp import forwarding
from support.clients.older_generations import ADMIN, SECRET
from support.clients.server import Server
from support.processes.command import MEMSERVICE, environment

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("served")]

Talk = Callable[[Client], Coroutine[Any, Any, None]]
FIRST_ANSWER_SECONDS = 60.0
"""The first request of each process of a server imports the SDK, which takes long on a busy
machine."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", FIRST_ANSWER_SECONDS)


@pytest.fixture
def workspace() -> str:
    return f"w-{uuid.uuid4().hex[:12]}"


async def use(client: Client) -> None:
    """One round through the tools, resources and the prompt."""
    assert "recall" in {tool.name for tool in (await client.list_tools()).tools}

    async def call(tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    stored = await call("remember", text="Alice keeps bees.")
    memories = await call("recall", query="bees")
    assert [item["id"] for item in memories["conclusions"]] == [stored["id"]]
    assert "bees" in (await call("ask", question="What does Alice keep?"))["answer"]
    assert "bees" in (await call("about"))["representation"]
    assert "bees" in (await call("get_context"))["representation"]
    assert [item["id"] for item in (await call("list_peers"))["peers"]] == ["alice"]
    assert (await call("list_sessions"))["total"] == 0
    assert (await call("status"))["peer"] == "alice"
    await call("forget", id=stored["id"], reason="She sold them.")
    assert (await call("recall", query="bees"))["conclusions"] == []

    refused = await client.call_tool("recall", {"query": "bees", "limit": 0})
    assert refused.is_error
    (card,) = (await client.list_resources()).resources
    assert (await client.read_resource(card.uri)).contents
    assert (await client.get_prompt("use_memory")).messages


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdks_client_uses_every_tool_over_http(
    server: Server, workspace: str, mode: Any
) -> None:
    """With the newest version of the protocol, and with those that begin with a handshake."""

    async def main() -> None:
        async with Client(f"{server.url}/mcp/{workspace}/alice", mode=mode) as client:
            await use(client)

    asyncio.run(main())


def test_an_api_key_is_the_bearer_token(keyed_server: Server, workspace: str) -> None:
    async def be_refused(client: Client) -> None:
        refused = await client.call_tool("recall", {"query": "bees"})
        assert refused.is_error
        assert "not permissioned" in str(refused.content)

    async def main(key: str, talk: Talk) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=FIRST_ANSWER_SECONDS) as http:
            url = f"{keyed_server.url}/mcp/{workspace}/alice"
            async with Client(streamable_http_client(url, http_client=http)) as client:
                await talk(client)

    asyncio.run(main(ADMIN, use))
    asyncio.run(main(jwt.encode({"w": "other"}, SECRET, algorithm="HS256"), be_refused))


def command(folder: Path, *options: str, **settings: str) -> Client:
    """`memservice mcp`, started by the client."""
    return Client(
        StdioServerParameters(
            command=str(MEMSERVICE),
            args=["mcp", *options],
            env=environment(**settings),
            cwd=folder,
        )
    )


def test_the_sdks_client_uses_every_tool_over_stdio_on_a_store(tmp_path: Path) -> None:
    stored = {"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/memory.db"}

    async def main() -> None:
        async with command(tmp_path, "--peer", "alice", MCP_WORKSPACE="home", **stored) as client:
            await use(client)

    asyncio.run(main())
    runtime = open_runtime(load_settings(environ=stored))
    with runtime.storage.read() as tx:
        assert tx.workspaces.locate("home", peer_id="alice").peer is not None
    runtime.close()


def test_a_server_is_used_with_the_key_the_workspace_and_the_peer_of_the_call(
    keyed_server: Server, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the next test, but the client is in this process."""
    instructions = []

    async def serve(server: Any) -> None:
        async with Client(server) as client:
            await use(client)
            instructions.append(client.instructions or "")

    monkeypatch.setattr(forwarding, "serve", serve)
    options = ("--url", keyed_server.url, "--workspace", workspace, "--peer", "alice")
    result = CliRunner().invoke(cli, ["mcp", *options], env={"MEMSERVICE_API_KEY": ADMIN})
    assert result.exit_code == 0, result.exception
    assert "long-term memory" in instructions[0]


@pytest.mark.heavy
def test_the_sdks_client_uses_every_tool_over_stdio_on_a_server(
    keyed_server: Server, workspace: str, tmp_path: Path
) -> None:
    options = ("--url", keyed_server.url, "--workspace", workspace, "--peer", "alice")

    async def main() -> None:
        async with command(tmp_path, *options, MEMSERVICE_API_KEY=ADMIN) as client:
            await use(client)
            assert "long-term memory" in (client.instructions or "")

    asyncio.run(main())
    assert not list(tmp_path.iterdir()), "a store was created"


def refusal(*options: str) -> str:
    result = CliRunner().invoke(cli, ["mcp", *options])
    assert isinstance(result.exception, ConfigurationError), result.output
    return str(result.exception)


def test_a_server_that_cannot_be_used_is_explained(keyed_server: Server) -> None:
    url = keyed_server.url
    assert "status 401: the API key is missing or not valid" in refusal("--url", url)
    key = "not-a-secret-for-logs"
    text = refusal("--url", url, "--key", key)
    assert "status 401" in text
    assert key not in text
    assert "status 404: it has no /mcp" in refusal("--url", f"{url}/elsewhere", "--key", key)
    assert "does not answer (ConnectError)" in refusal("--url", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--url", "memory.example.org"), "give the server's URL"),
        (("--url", "ftp://memory.example.org"), "give the server's URL"),
        (("--url", "http://[::1"), "give the server's URL"),
        (("--url", "http://127.0.0.1:1", "--peer", "ann"), "needs --workspace"),
        (("--url", "http://127.0.0.1:1", "--key", "a\nb"), "the key must be plain ASCII"),
    ],
)
def test_wrong_options_are_explained(options: tuple[str, ...], text: str) -> None:
    assert text in refusal(*options)
