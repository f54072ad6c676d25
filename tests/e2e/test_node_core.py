"""The generated clients for Node of the second generation, unmodified, against a running server:
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
from support.clients.older_generations import ADMIN, NODE_CORES
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

DRIVER = CLIENTS / "node_core" / "driver.mjs"
SECONDS = 200
METHODS = {"1.8.0": 45, "2.2.0": 44}
"""How many each version has."""
VERSIONS = [pin.rpartition("@")[2] for pin in NODE_CORES]


def scenarios() -> list[str]:
    return sorted(re.findall(r"^scenario\('(\w+)'", DRIVER.read_text("utf-8"), re.M))


@pytest.fixture(scope="module")
def results(keyed_server: Server) -> dict[str, Any]:
    """By version, each filled when it is first asked for."""
    return {}


def result(results: dict[str, Any], server: Server, version: str) -> Any:
    """What the driver says after running all scenarios once."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(
            f"the clients for Node are not tested: there is no {' and no '.join(missing)} here"
        )
    if version not in results:
        folder = node_packages(f"honcho-core-node-{version}", (f"@honcho-ai/core@{version}",))
        done = subprocess.run(
            ["node", str(DRIVER), server.url, str(folder), ADMIN],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        results[version] = json.loads(done.stdout.splitlines()[-1])
    return results[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_all_scenarios_ran_and_every_method_is_called(
    results: dict[str, Any], keyed_server: Server, version: str
) -> None:
    outcome = result(results, keyed_server, version)
    assert outcome["client"] == version
    assert sorted(outcome["scenarios"]) == scenarios()
    assert (outcome["methods"], outcome["uncalled"]) == (METHODS[version], [])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", scenarios())
def test_scenario(results: dict[str, Any], keyed_server: Server, version: str, name: str) -> None:
    failure = result(results, keyed_server, version)["scenarios"][name]
    assert failure is None, failure
