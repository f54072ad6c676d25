"""The published clients against a server that asks for keys: what each key opens, and the class of
error where it does not."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from support.clients.command_line import Commands
from support.clients.environments import scenario_environment
from support.clients.older_generations import SECRET
from support.clients.runs import CLIENTS
from support.clients.server import Server
from support.processes import preloaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("served"),
]

OWN, OTHER = "own-workspace", "other-workspace"
REFUSED = "AuthenticationError"
EXPECTED: dict[str, dict[str, str | None]] = {
    "admin": {"own": None, "chat": None, "scopes": None, "other": None, "every": None},
    "own": {"own": None, "chat": None, "scopes": None, "other": REFUSED, "every": REFUSED},
    "other": {"own": REFUSED, "chat": REFUSED, "scopes": REFUSED, "other": None, "every": REFUSED},
    "revoked": dict.fromkeys(("own", "chat", "scopes", "other", "every"), REFUSED),
    "nonsense": dict.fromkeys(("own", "chat", "scopes", "other", "every"), REFUSED),
}


def command(server: Server, *words: str) -> str:
    settings = {
        "AUTH_USE_AUTH": "true",
        "AUTH_JWT_SECRET": SECRET,
        "DB_CONNECTION_URI": server.uri,
    }
    result = preloaded.run(["keys", *words], server.folder, settings)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


@pytest.fixture(scope="module")
def keys(keyed_server: Server) -> dict[str, str]:
    """Keys by name, the first ones minted by the operator's command."""
    minted = {
        "admin": command(keyed_server, "create", "--admin"),
        "revoked": command(keyed_server, "create", "--workspace", OWN, "--label", "lost"),
    }
    command(keyed_server, "revoke", "--token", minted["revoked"])
    for workspace_id in (OWN, OTHER):
        request = urllib.request.Request(
            f"{keyed_server.url}/v3/keys?workspace_id={workspace_id}",
            method="POST",
            headers={"Authorization": f"Bearer {minted['admin']}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            minted[workspace_id.partition("-")[0]] = json.load(answer)["key"]
    return {**minted, "nonsense": "nonsense"}


def outcomes(keys: dict[str, str], *words: str, **further: str) -> Any:
    result = subprocess.run(
        words,
        env={"PATH": os.environ["PATH"]} | further,
        input=json.dumps(keys),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


def test_the_python_client_works_with_keys(
    published_client: Path, keyed_server: Server, keys: dict[str, str]
) -> None:
    module = (
        str(published_client),
        "-m",
        "support.clients.published_client.keyed",
        keyed_server.url,
    )
    result = outcomes(keys, *module, OWN, OTHER, **scenario_environment())
    assert {name: faces["sync"] for name, faces in result.items()} == EXPECTED
    assert {name: faces["async"] for name, faces in result.items()} == EXPECTED


@pytest.mark.heavy
def test_the_node_client_works_with_keys(
    node_client: Path, keyed_server: Server, keys: dict[str, str]
) -> None:
    driver = (
        "node",
        str(CLIENTS / "node_client" / "keyed.mjs"),
        keyed_server.url,
        str(node_client),
    )
    assert outcomes(keys, *driver, OWN, OTHER) == EXPECTED


@pytest.mark.heavy
def test_the_commands_work_with_keys(
    commands: Path, keyed_server: Server, keys: dict[str, str], tmp_path: Path
) -> None:
    honcho = Commands(commands, keyed_server.url, tmp_path, OWN, keys["admin"])
    try:
        honcho("peer", "create", "alice", HONCHO_API_KEY=keys["own"])
        assert OWN in [item["id"] for item in honcho("workspace", "list")]
        assert honcho("doctor")["passed"] == 5
        assert [item["id"] for item in honcho("peer", "list", HONCHO_API_KEY=keys["own"])] == [
            "alice"
        ]
        for key in ("other", "revoked", "nonsense", ""):
            for words in (("peer", "list"), ("workspace", "list"), ("scope", "list")):
                refused = honcho.run(*words, HONCHO_API_KEY=keys.get(key, ""))
                assert (refused.code, refused.error["code"]) == (3, "AUTH_ERROR"), (key, words)
        narrow = honcho.run("doctor", HONCHO_API_KEY=keys["own"])
        assert (
            narrow.code,
            {check["check"] for check in narrow.output["checks"] if not check["ok"]},
        ) == (1, {"API connectivity"})
    finally:
        honcho.close()
