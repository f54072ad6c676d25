"""The published commands that set up and look after a server rather than ask it: what they find in
ours."""

from __future__ import annotations

import json
import os
import shlex
import socket
import stat
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.auth.jwt_signing import Signer
from memservice.domain.ids import new_uid
from support.clients.command_line import Commands
from support.clients.runs import CLIENTS
from support.clients.server import Server, serving

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("served"),
]

STAND_IN = CLIENTS / "docker_stand_in.py"


@pytest.fixture
def fresh(commands: Path, server: Server, tmp_path: Path) -> Iterator[Commands]:
    """Commands without any configuration except the address of the server."""
    host = Commands(commands, server.url, tmp_path, f"w-{uuid.uuid4().hex[:12]}", key="")
    yield host
    host.close()


def saved(home: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((home / "config.json").read_text(encoding="utf-8"))
    return config


@pytest.mark.heavy
def test_init_checks_the_server_and_saves_a_working_configuration(
    fresh: Commands, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "config.json").unlink()
    assert fresh("init", "--base-url", server.url, "--api-key", "any-key-1234", "--json") == {
        "apiKey": "***1234",
        "baseUrl": server.url,
    }
    assert saved(tmp_path) == {"apiKey": "any-key-1234", "environmentUrl": server.url}
    assert fresh("config", HONCHO_BASE_URL="", HONCHO_API_KEY="")["base_url"] == server.url
    # From now on the commands need no variables.
    workspace_id = f"w-{uuid.uuid4().hex[:12]}"
    assert fresh("workspace", "create", workspace_id, HONCHO_BASE_URL="", HONCHO_API_KEY="") == {
        "workspace_id": workspace_id
    }
    again = fresh("init", "--json", HONCHO_BASE_URL="", HONCHO_API_KEY="")
    assert again == {"apiKey": "***1234", "baseUrl": server.url}


@pytest.mark.heavy
def test_init_reports_an_unreachable_server(fresh: Commands) -> None:
    refused = fresh.run("init", "--base-url", "http://127.0.0.1:1", "--api-key", "k", "--json")
    assert (refused.code, refused.error["code"]) == (1, "CONNECTION_FAILED")


@pytest.mark.heavy
def test_init_distinguishes_valid_and_invalid_keys(commands: Path, tmp_path: Path) -> None:
    secret = "a secret of this test that is long enough"
    (home := tmp_path / "home").mkdir()
    (folder := tmp_path / "served").mkdir()
    with serving(folder, AUTH_USE_AUTH="true", AUTH_JWT_SECRET=secret) as guarded:
        host = Commands(commands, guarded.url, home, "w")
        try:
            refused = host.run("init", "--api-key", "not-a-key", "--json")
            assert (refused.code, refused.error["message"]) == (
                1,
                "Unauthorized — check your API key",
            )
            key = Signer(secret).sign(Claims(admin=True))
            assert host("init", "--api-key", key, "--json") == {
                "apiKey": f"***{key[-4:]}",
                "baseUrl": guarded.url,
            }
            assert saved(home)["apiKey"] == key
        finally:
            host.close()


@pytest.fixture
def docker(tmp_path: Path) -> str:
    """A PATH on which `docker` is the stand-in."""
    (folder := tmp_path / "bin").mkdir()
    program = folder / "docker"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(STAND_IN))} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def free_port() -> int:
    with socket.socket() as socket_:
        socket_.bind(("127.0.0.1", 0))
        return int(socket_.getsockname()[1])


@pytest.mark.heavy
def test_a_server_is_started_checked_and_stopped(fresh: Commands, docker: str) -> None:
    """`start`, `status` and `stop`: what they wait for and look at is the server's health."""
    port = str(free_port())
    workspace_id, url = f"w-{new_uid()}", f"http://127.0.0.1:{port}"
    missing = fresh.run("status", "--profile", "mine", "--json", PATH=docker)
    assert (missing.code, missing.error["code"]) == (1, "STACK_NOT_FOUND")
    keyless = fresh.run("start", "--profile", "mine", "--api-port", port, "--json", PATH=docker)
    assert (keyless.code, keyless.error["code"]) == (1, "MISSING_LLM_KEY")
    words = ("start", "--profile", "mine", "--api-port", port, "--json")
    started = fresh(*words, PATH=docker, LLM_OPENAI_API_KEY="nobody is asked with it")
    try:
        assert (started["status"], started["endpoints"]["api"], started["endpoints"]["docs"]) == (
            "running",
            url,
            f"{url}/docs",
        )
        assert fresh("status", "--profile", "mine", "--json", PATH=docker)["status"] == "running"
        assert fresh(*words, PATH=docker)["status"] == "running", "it runs already"
        assert fresh("workspace", "create", workspace_id, HONCHO_BASE_URL=url) == {
            "workspace_id": workspace_id
        }
    finally:
        stopped = fresh("stop", "--profile", "mine", "--json", PATH=docker)
    assert stopped["status"] == "stopped"
    status = fresh.run("status", "--profile", "mine", "--json", PATH=docker)
    assert (status.code, status.output["status"]) == (1, "stopped")


@pytest.mark.heavy
def test_install_finds_no_agent_in_an_empty_home(fresh: Commands) -> None:
    """It adds plugins to other programs and asks no server; here it only looks."""
    agents = fresh("install", "--list", "--json", PATH="")
    assert {agent["found"] for agent in agents} == {False}
