"""The last written client for Node of the second generation, unmodified, against a running server:
every method."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import Any

import pytest

from support.clients.environments import node_packages
from support.clients.older_generations import ADMIN, NODE_SDK
from support.clients.runs import CLIENTS
from support.clients.server import Server

# By default, the newest client of each generation runs.
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("served"),
]

DRIVER = CLIENTS / "node_sdk" / "driver.mjs"
SECONDS = 200


def scenarios() -> list[str]:
    return sorted(re.findall(r"^scenario\('(\w+)'", DRIVER.read_text("utf-8"), re.M))


@pytest.fixture(scope="module")
def result(keyed_server: Server) -> Any:
    """What the driver says after running all scenarios once."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(
            f"the client for Node is not tested: there is no {' and no '.join(missing)} here"
        )
    folder = node_packages("honcho-sdk-node-1.5.0", NODE_SDK)
    done = subprocess.run(
        ["node", str(DRIVER), keyed_server.url, str(folder), ADMIN],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_all_scenarios_ran_and_every_method_is_called(result: Any) -> None:
    assert result["client"] == "1.5.0"
    assert sorted(result["scenarios"]) == scenarios()
    assert result["uncalled"] == []
    assert result["methods"] > 40


@pytest.mark.parametrize("name", scenarios())
def test_scenario(result: Any, name: str) -> None:
    assert result["scenarios"][name] is None, result["scenarios"][name]
