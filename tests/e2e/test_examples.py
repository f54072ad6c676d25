"""The programs in `examples/`, against a served process and a scripted model. What a user says in
one run is known in the next, in which nothing but memservice has it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from memservice.testing.badmodel import BadModel, bad_model
from memservice_mcp.command import mcp
from memservice_mcp.tools import DEFAULT
from support.clients.environments import client_python, node_packages
from support.clients.example_model import ASKED, TOLD, answer
from support.clients.fixtures import Servers
from support.clients.server import Server
from support.processes.command import MEMSERVICE

SECONDS = 240
WAIT_SECONDS = 60
KNOWN = f"You said: {TOLD}\n"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("served"),
]


@pytest.fixture(scope="module")
def server(servers: Servers) -> Server:
    """The service as it starts by default: the examples do not depend on the storage."""
    return servers.on("sqlite")


@pytest.fixture
def model() -> Iterator[BadModel]:
    with bad_model(answer=answer) as model:
        yield model


class Example:
    """A program of `examples/`, in a workspace of its own."""

    def __init__(self, command: list[str], folder: Path, server: Server, model: BadModel) -> None:
        self.command, self.folder, self.server, self.model = command, folder, server, model
        self.workspace = f"w-{uuid.uuid4().hex[:12]}"

    def say(self, text: str, *arguments: str) -> str:
        """What it answers in one run."""
        environment: Mapping[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "MEMSERVICE_URL": self.server.url,
            "MEMSERVICE_WORKSPACE": self.workspace,
            "OPENAI_BASE_URL": f"{self.model.url}/v1",
            "OPENAI_API_KEY": "none",
            "MODEL": "scripted",
            "NO_PROXY": "*",
        }
        result = subprocess.run(
            [*self.command, *arguments],
            input=f"{text}\n",
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        # `tox -e examples -- -rA` shows it.
        program = Path(self.command[-1]).name
        print(" ".join((program, *arguments)), f"< {text}", result.stdout, sep="\n", end="")
        return result.stdout

    def wait_for_conclusions(self) -> None:
        """Until the work in the background is done."""
        deadline = time.monotonic() + WAIT_SECONDS
        url = f"{self.server.url}/v3/workspaces/{self.workspace}/queue/status"
        while True:
            status = httpx.get(url).raise_for_status().json()
            if status["pending_work_units"] + status["in_progress_work_units"] == 0:
                return
            assert time.monotonic() < deadline, status
            time.sleep(0.1)


def requirements(folder: Path) -> list[str]:
    return (folder / "requirements.txt").read_text(encoding="utf-8").split()


def python_example(
    root: Path, name: str, program: str, tmp_path: Path, server: Server, model: BadModel
) -> Example:
    """An example in the environment of its `requirements.txt`; skips where that cannot be
    installed."""
    folder = root / "examples" / name
    packages = requirements(folder)
    try:
        # The support bot has the requirements of other tests, and shares their environment.
        python = client_python(
            "honcho-ai" if name == "support_bot" else f"example-{name}", packages
        )
    except RuntimeError as error:
        pytest.skip(f"needs {', '.join(packages)} from a package index: {error}"[:500])
    return Example([str(python), str(folder / program)], tmp_path, server, model)


@pytest.mark.client
def test_the_support_bot_knows_a_customer_in_the_next_conversation(
    root: Path, tmp_path: Path, server: Server, model: BadModel
) -> None:
    bot = python_example(root, "support_bot", "bot.py", tmp_path, server, model)
    assert bot.say(TOLD, "maria", "monday") == "Noted.\n"
    bot.wait_for_conclusions()
    assert bot.say(ASKED, "maria", "friday") == KNOWN
    assert bot.say(ASKED, "tom", "saturday") == "I do not know.\n"


@pytest.mark.heavy
@pytest.mark.client
def test_the_langgraph_agent_knows_a_user_in_the_next_thread(
    root: Path, tmp_path: Path, server: Server, model: BadModel
) -> None:
    agent = python_example(root, "langgraph", "agent.py", tmp_path, server, model)
    assert agent.say(TOLD, "maria", "monday") == "Noted.\n"
    agent.wait_for_conclusions()
    assert agent.say(ASKED, "maria", "friday") == KNOWN
    assert agent.say(ASKED, "tom", "saturday") == "I do not know.\n"


@pytest.mark.heavy
@pytest.mark.client
@pytest.mark.parametrize(
    ("name", "program"), [("openai_agents", "agent.py"), ("crewai", "crew.py")]
)
def test_an_agent_remembers_and_recalls_by_tools(
    root: Path, tmp_path: Path, server: Server, model: BadModel, name: str, program: str
) -> None:
    agent = python_example(root, name, program, tmp_path, server, model)
    _remembers_and_recalls(agent)


@pytest.mark.heavy
@pytest.mark.client
def test_the_agent_of_the_vercel_ai_sdk_remembers_and_recalls(
    root: Path, tmp_path: Path, server: Server, model: BadModel
) -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs Node.js and npm")
    source = root / "examples" / "vercel_ai_sdk"
    dependencies = json.loads((source / "package.json").read_text("utf-8"))["dependencies"]
    versions = [f"{name}@{version}" for name, version in dependencies.items()]
    try:
        packages = node_packages("example-vercel", versions)
    except RuntimeError as error:
        pytest.skip(f"needs {', '.join(versions)} from a package registry: {error}"[:500])
    shutil.copytree(source, tmp_path / "agent")
    (tmp_path / "agent" / "node_modules").symlink_to(packages / "node_modules")
    command = [str(packages / "node_modules" / ".bin" / "tsx"), "agent.ts"]
    _remembers_and_recalls(Example(command, tmp_path / "agent", server, model))


def _remembers_and_recalls(agent: Example) -> None:
    assert agent.say(TOLD, "maria") == "Noted.\n"
    assert agent.say(ASKED, "maria") == KNOWN
    assert agent.say(ASKED, "tom") == "I do not know.\n"
    used = {name for request in agent.model.requests for name in request.tools}
    assert used == {"remember", "recall"}


@pytest.mark.heavy
def test_the_configurations_for_claude_reach_the_memory(
    root: Path, server: Server, tmp_path: Path
) -> None:
    """Read as their client reads them, and used by the SDK's client; Claude itself does not run."""
    folder = root / "examples" / "claude"
    code = _configured(folder / ".mcp.json", server)
    desktop = _configured(folder / "claude_desktop_config.json", server)
    assert desktop["command"] == "memservice"
    started = StdioServerParameters(
        command=str(MEMSERVICE), args=desktop["args"], cwd=str(tmp_path), env=dict(os.environ)
    )
    text = f"{uuid.uuid4().hex} is the number of my ticket."

    async def main() -> None:
        async with Client(code["url"]) as client:
            await client.call_tool("remember", {"text": text})
        async with Client(started) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            memories = await client.call_tool("recall", {"query": text})
        assert text in str(memories.structured_content)
        instructions = (folder / "CLAUDE.md").read_text(encoding="utf-8")
        for name in ("recall", "ask", "remember", "forget"):
            assert name in tools
            assert f"`{name}`" in instructions

    asyncio.run(main())


def test_the_configurations_for_claude_name_what_exists(root: Path) -> None:
    folder = root / "examples" / "claude"
    urls, commands = (
        json.loads((folder / name).read_text(encoding="utf-8"))["mcpServers"]["memory"]
        for name in (".mcp.json", "claude_desktop_config.json")
    )
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/mcp/[\w-]+/[\w-]+", urls["url"])
    name, *words = commands["args"]
    assert (commands["command"], name) == ("memservice", mcp.name)
    mcp.make_context(name, words).close()
    instructions = (folder / "CLAUDE.md").read_text(encoding="utf-8")
    named = {tool.name for tool in DEFAULT} & set(re.findall(r"`(\w+)`", instructions))
    assert named == {"recall", "ask", "remember", "forget"}


def _configured(file: Path, server: Server) -> dict[str, Any]:
    """The entry of a client's configuration, for this server."""
    text = file.read_text(encoding="utf-8").replace("http://127.0.0.1:8000", server.url)
    entry: dict[str, Any] = json.loads(text)["mcpServers"]["memory"]
    return entry
