"""The published client for Node, unmodified, against a running server: every method, parameter and
option."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.clients.runs import CLIENTS
from support.clients.server import Server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("served"),
]

FOLDER = CLIENTS / "node_client"
SECONDS = 200


def scenarios() -> list[str]:
    return sorted(
        name
        for file in FOLDER.glob("*.mjs")
        for name in re.findall(r"^scenario\('(\w+)'", file.read_text("utf-8"), re.M)
    )


@pytest.fixture(scope="module")
def result(node_client: Path, server: Server) -> dict[str, Any]:
    """What the driver says after running all scenarios once."""
    done = subprocess.run(
        ["node", str(FOLDER / "driver.mjs"), server.url, str(node_client)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def test_all_scenarios_ran(result: dict[str, Any]) -> None:
    assert result["client"] == "2.5.0"
    assert sorted(result["scenarios"]) == scenarios()


def test_every_method_is_called(result: dict[str, Any]) -> None:
    assert result["uncalled"] == []


def test_every_parameter_is_given(result: dict[str, Any]) -> None:
    assert result["ungiven"] == []


@pytest.mark.parametrize("name", scenarios())
def test_scenario(result: dict[str, Any], name: str) -> None:
    failure = result["scenarios"][name]["failure"]
    assert failure is None, failure
