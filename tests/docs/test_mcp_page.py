"""The page on MCP is true: its example runs as printed, its table is that of the tools."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memservice.settings import Settings
from memservice_mcp.blueprint import PEER_HEADER, WORKSPACE_HEADERS
from memservice_mcp.command import mcp
from memservice_mcp.tools import DEFAULT, operations
from memservice_mcp.tools.memories import MAX_LIMIT
from memservice_mcp.tools.shared import MAX_ITEM
from support.clients.server import Server
from support.docs.blocks import blocks, table

PRINTED_URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def page(root: Path) -> Path:
    return root / "docs" / "mcp.md"


@pytest.mark.e2e
@pytest.mark.xdist_group("served")
def test_the_example_runs_as_printed(page: Path, server: Server, tmp_path: Path) -> None:
    (example,) = blocks(page, "python")
    (printed,) = blocks(page, "text")
    assert example.text.count(PRINTED_URL) == 1
    result = subprocess.run(
        [sys.executable, "-c", example.text.replace(PRINTED_URL, server.url)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == printed.text


def test_the_table_has_every_tool_with_its_arguments(page: Path) -> None:
    assert {row[0]: re.findall(r"\w+", row[1]) for row in table(page, "tools")} == {
        tool.name: list(tool.arguments.model_fields) for tool in DEFAULT
    }


def test_the_tools_for_each_operation_are_listed(page: Path) -> None:
    assert [name for row in table(page, "operations") for name in re.findall(r"\w+", row[1])] == [
        tool.name for tool in operations.TOOLS
    ]


def test_urls_lead_to_the_route(page: Path) -> None:
    urls = [
        word for block in blocks(page, "sh") for word in shlex.split(block.text) if "://" in word
    ]
    for block in blocks(page, "json"):
        for server in json.loads(block.text)["mcpServers"].values():
            urls += [server["url"]] if "url" in server else []
    assert len(urls) >= 3
    for url in urls:
        assert re.fullmatch(r"/mcp(/\w+){0,2}", urlsplit(url).path)


def test_commands_have_the_options(page: Path) -> None:
    servers = [
        server
        for block in blocks(page, "json")
        for server in json.loads(block.text)["mcpServers"].values()
        if "command" in server
    ]
    assert len(servers) == 2
    for server in servers:
        assert server["command"] == "memservice"
        name, *options = server["args"]
        assert name == mcp.name
        mcp.make_context(name, options)
        variables = {parameter.envvar for parameter in mcp.params} | {"DB_CONNECTION_URI"}
        assert server["env"].keys() <= variables


def test_names_and_numbers_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    defaults = Settings().mcp
    assert f"`{WORKSPACE_HEADERS[0]}` | `{PEER_HEADER}`" in text
    assert f"`MCP_WORKSPACE` (`{defaults.workspace}`) | `MCP_PEER` (`{defaults.peer}`)" in text
    numbers = f"{MAX_LIMIT} conclusions and {MAX_LIMIT} messages of {MAX_ITEM:,} characters"
    assert numbers in text
