"""`memservice workspaces`, `peers`, `sessions`, `search`, `show` and `ask`: on the store and over
HTTP."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from integration.cli.conftest import Run
from support.api.auth_client import SECRET
from support.clients.server import Server, serving
from support.processes.processes import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.xdist_group("look")]

AUTH = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": SECRET}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one workspace, all of whose work is done."""
    with serving(tmp_path_factory.mktemp("looked-at"), "--workers", "1") as started:
        with httpx.Client(base_url=f"{started.url}/v3/workspaces", timeout=30) as http:
            http.post("", json={"id": "acme", "metadata": {"plan": "gold"}})
            messages = [
                {"peer_id": "alice", "content": "I own a tortoise named Balthazar."},
                {"peer_id": "bob", "content": "My sister\nteaches \x1b[31mphysics in Lyon."},
            ]
            assert http.post("/acme/sessions/talk/messages", json={"messages": messages}).is_success
            http.put("/acme/peers/alice/card", json={"peer_card": ["Owns a tortoise"]})
            eventually(
                lambda: (
                    http.get("/acme/queue/status").json()["completed_work_units"]
                    == http.get("/acme/queue/status").json()["total_work_units"]
                    and http.post("/acme/conclusions/list", json={}).json()["total"] > 0
                )
            )
        yield started


def store(server: Server) -> dict[str, str]:
    return {"DB_CONNECTION_URI": server.uri}


COMMANDS = (
    ("workspaces",),
    ("peers",),
    ("peers", "-w", "acme", "--session", "talk"),
    ("sessions", "-w", "acme"),
    ("sessions", "--peer", "alice"),
    ("search", "-w", "acme", "tortoise"),
    ("search", "--peer", "alice", "tortoise"),
    ("search", "--explain", "tortoise"),
    ("search", "--session", "talk", "--limit", "1", "physics"),
    ("show", "workspace"),
    ("show", "peer", "alice"),
    ("show", "-w", "acme", "session", "talk"),
    ("ask", "-w", "acme", "alice", "What pet does alice have?"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_store_and_the_server_give_the_same(
    memservice: Run, server: Server, command: tuple[str, ...]
) -> None:
    local = memservice(*command, "--json", **store(server))
    assert local.returncode == 0, local.stderr
    assert local.stderr == ""
    remote = memservice(*command, "--json", MEMSERVICE_URL=server.url)
    assert remote.returncode == 0, remote.stderr
    assert json.loads(local.stdout) == json.loads(remote.stdout)
    table = memservice(*command, **store(server))
    assert table.returncode == 0, table.stderr
    assert "\x1b" not in table.stdout


def test_what_is_shown(memservice: Run, server: Server) -> None:
    def json_of(*command: str) -> Any:
        return json.loads(memservice(*command, "--json", **store(server)).stdout)

    assert [item["id"] for item in json_of("workspaces")] == ["acme"]
    assert {item["id"] for item in json_of("peers")} == {"alice", "bob"}
    assert json_of("search", "tortoise")[0]["content"].startswith("I own a tortoise")
    assert json_of("search", "--explain", "tortoise")[0]["explanation"]["text"]["rank"] == 1
    heads, first, *_ = memservice("search", "--explain", "tortoise", **store(server)).stdout.split(
        "\n"
    )
    assert heads.split()[:4] == ["MESSAGE", "SCORE", "TEXT", "RANK"]
    assert first.split()[2] == "1"
    shown = json_of("show", "peer", "alice")
    assert shown["peer_card"] == ["Owns a tortoise"]
    assert "Balthazar" in shown["conclusions"][0]["content"]
    assert [one["peer_id"] for one in json_of("show", "session", "talk")["messages"]] == [
        "alice",
        "bob",
    ]
    assert json_of("show", "workspace")["peers"] == 2
    assert "Balthazar" in json_of("ask", "alice", "What is the name of the tortoise?")["content"]
    table = memservice("peers", "--limit", "1", **store(server))
    assert table.stdout.splitlines()[0].split() == ["ID", "CREATED", "AT", "METADATA"]
    assert "1 of 2; --limit shows more" in table.stderr


def test_unknown_names_create_nothing(memservice: Run, server: Server) -> None:
    def counts() -> list[int]:
        with closing(
            sqlite3.connect(f"file:{server.folder}/memservice.db?mode=ro", uri=True)
        ) as db:
            tables = ("workspaces", "peers", "sessions", "members", "conclusions", "collections")
            return [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]

    before = counts()
    for command, problem in (
        (("show", "peer", "carol"), "the workspace acme has no peer carol"),
        (("show", "session", "none"), "`memservice sessions -w acme` lists them"),
        (("ask", "carol", "Who?"), "carol"),
        (("peers", "-w", "none"), "There is no workspace none; there are 1: acme"),
        (("search", "-w", "none", "x"), "There is no workspace none"),
        (("search", "--peer", "alice", "--session", "talk", "x"), "either --peer or --session"),
        (("show", "peer"), "memservice show peer ID"),
        (("show", "planet", "x"), "'workspace', 'peer', 'session'"),
    ):
        result = memservice(*command, **store(server))
        assert result.returncode != 0, command
        assert problem in result.stderr
    for command in (("search", "--peer", "carol", "x"), ("sessions", "--peer", "carol")):
        memservice(*command, **store(server))
    assert counts() == before


def test_no_store_is_created(memservice: Run, tmp_path: Path) -> None:
    for command in COMMANDS:
        result = memservice(*command)
        assert result.returncode == 1
        assert "There is no file" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_several_workspaces_have_to_be_named(memservice: Run, server: Server) -> None:
    memservice("db", "upgrade")
    assert "there is no workspace yet" in memservice("peers").stderr
    assert memservice("export", "-w", "acme", "acme.gz", **store(server)).returncode == 0
    for name in ("a", "b"):
        assert memservice("import", "--as", name, "acme.gz").returncode == 0
    assert "Name the workspace with --workspace; there are 2: a, b" in memservice("peers").stderr


def test_a_server_with_keys(memservice: Run, tmp_path: Path) -> None:
    (folder := tmp_path / "guarded").mkdir()
    here = {**AUTH, "DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}
    with serving(folder, "--workers", "1", "--no-worker", **AUTH) as guarded:
        key = memservice("keys", "create", "--workspace", "mine", **here).stdout.strip()
        with httpx.Client(base_url=guarded.url) as http:
            response = http.post(
                "/v3/workspaces", json={"id": "mine"}, headers={"Authorization": f"Bearer {key}"}
            )
            assert response.status_code == 201
        there = {"MEMSERVICE_URL": guarded.url}
        result = memservice("peers", "-w", "mine", MEMSERVICE_API_KEY=key, **there)
        assert result.returncode == 0, result.stderr
        refused = memservice("peers", "-w", "mine", **there)
        assert refused.returncode == 1
        assert "set MEMSERVICE_API_KEY" in refused.stderr
        other = memservice("peers", "-w", "other", MEMSERVICE_API_KEY=key, **there)
        assert other.returncode == 1
    away = memservice("workspaces", "--url", "http://127.0.0.1:1")
    assert "does not answer (ConnectError)" in away.stderr
    # On the store, the operator needs no key.
    assert memservice("peers", "-w", "mine", **here).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(memservice: Run, shell: str) -> None:
    """The variable that click reads is no setting."""
    script = memservice(_MEMSERVICE_COMPLETE=f"{shell}_source")
    assert "_MEMSERVICE_COMPLETE" in script.stdout
    words = memservice(
        _MEMSERVICE_COMPLETE="bash_complete", COMP_WORDS="memservice sho", COMP_CWORD="1"
    )
    assert words.stdout.splitlines() == ["plain,show"]
