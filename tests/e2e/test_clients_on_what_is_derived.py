"""The newest clients and conclusions that rest on others: levels, sources and counts come through,
lists and filters walk along them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.clients.derived import seeded
from support.clients.environments import scenario_environment
from support.clients.runs import CLIENTS
from support.clients.server import Server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("served"),
]


@pytest.fixture(scope="module")
def seeds(server: Server) -> dict[str, Any]:
    return seeded(server)


def look(seeds: dict[str, Any], *words: str, **further: str) -> None:
    result = subprocess.run(
        words,
        env={"PATH": os.environ["PATH"]} | further,
        input=json.dumps(seeds),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(result.stdout) == "as expected"


# By default, tests/api/test_dreams.py and test_conclusions.py read them through the routes.
@pytest.mark.heavy
def test_the_python_client_reads_derived_conclusions(
    published_client: Path, server: Server, seeds: dict[str, Any]
) -> None:
    module = (str(published_client), "-m", "support.clients.published_client.derived", server.url)
    look(seeds, *module, **scenario_environment())


@pytest.mark.heavy
def test_the_node_client_reads_derived_conclusions(
    node_client: Path, server: Server, seeds: dict[str, Any]
) -> None:
    look(seeds, "node", str(CLIENTS / "node_client" / "derived.mjs"), server.url, str(node_client))
