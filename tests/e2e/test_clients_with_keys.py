"""The published clients against a server that asks for keys: what each key opens, and the class of error where it does not."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.command_line import Commands
from e2e.runs import E2E
from e2e.server import MEMSERVICE, Server, environment, serving

pytestmark = [pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600), pytest.mark.xdist_group("keys")]

SETTINGS = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "a-secret-of-the-tests-that-is-long-enough-to-sign-with"}
OWN, OTHER = "own-place", "other-place"
REFUSED = "AuthenticationError"
EXPECTED: dict[str, dict[str, str | None]] = {
    "admin": {"own": None, "chat": None, "scopes": None, "other": None, "every": None},
    "own": {"own": None, "chat": None, "scopes": None, "other": REFUSED, "every": REFUSED},
    "other": {"own": REFUSED, "chat": REFUSED, "scopes": REFUSED, "other": None, "every": REFUSED},
    "revoked": dict.fromkeys(("own", "chat", "scopes", "other", "every"), REFUSED),
    "nonsense": dict.fromkeys(("own", "chat", "scopes", "other", "every"), REFUSED),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("guarded"), **SETTINGS) as running:
        yield running


def command(server: Server, *words: str) -> str:
    done = subprocess.run(
        [str(MEMSERVICE), "keys", *words],
        cwd=server.folder,
        env=environment(**SETTINGS),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def keys(guarded: Server) -> dict[str, str]:
    """Keys by name, the first ones minted by the operator's command."""
    minted = {"admin": command(guarded, "create", "--admin"), "revoked": command(guarded, "create", "--workspace", OWN, "--label", "lost")}
    command(guarded, "revoke", "--token", minted["revoked"])
    for place in (OWN, OTHER):
        request = urllib.request.Request(
            f"{guarded.url}/v3/keys?workspace_id={place}", method="POST", headers={"Authorization": f"Bearer {minted['admin']}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            minted[place.partition("-")[0]] = json.load(answer)["key"]
    return {**minted, "nonsense": "nonsense"}


def outcomes(keys: dict[str, str], *words: str, **further: str) -> Any:
    done = subprocess.run(
        words,
        env={"PATH": os.environ["PATH"], **further},
        input=json.dumps(keys),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_python(published_client: Path, guarded: Server, keys: dict[str, str]) -> None:
    module = (str(published_client), "-m", "e2e.published_client.keyed", guarded.url)
    found = outcomes(keys, *module, OWN, OTHER, PYTHONPATH=str(E2E.parent), PYTHONDONTWRITEBYTECODE="1")
    assert {name: faces["sync"] for name, faces in found.items()} == EXPECTED
    assert {name: faces["async"] for name, faces in found.items()} == EXPECTED


def test_node(node_client: Path, guarded: Server, keys: dict[str, str]) -> None:
    driver = ("node", str(E2E / "node_client" / "keyed.mjs"), guarded.url, str(node_client))
    assert outcomes(keys, *driver, OWN, OTHER) == EXPECTED


def test_commands(commands: Path, guarded: Server, keys: dict[str, str], tmp_path: Path) -> None:
    honcho = Commands(commands, guarded.url, tmp_path, OWN, keys["admin"])
    try:
        honcho("peer", "create", "alice", HONCHO_API_KEY=keys["own"])
        assert OWN in [item["id"] for item in honcho("workspace", "list")]
        assert honcho("doctor")["passed"] == 5
        assert [item["id"] for item in honcho("peer", "list", HONCHO_API_KEY=keys["own"])] == ["alice"]
        for key in ("other", "revoked", "nonsense", ""):
            for words in (("peer", "list"), ("workspace", "list"), ("scope", "list")):
                refused = honcho.run(*words, HONCHO_API_KEY=keys.get(key, ""))
                assert (refused.code, refused.error["code"]) == (3, "AUTH_ERROR"), (key, words)
        narrow = honcho.run("doctor", HONCHO_API_KEY=keys["own"])
        assert (narrow.code, {check["check"] for check in narrow.output["checks"] if not check["ok"]}) == (1, {"API connectivity"})
    finally:
        honcho.close()
