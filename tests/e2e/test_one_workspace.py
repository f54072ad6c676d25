"""The tests of shared resources through a published client of each generation, unmodified, on one
workspace: what one client writes, all three read.

tests/api/test_three_generations.py runs the same tests through the routes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.api.all_generations import GENERATIONS, GenerationClient
from support.api.shared_resources import SharedResources
from support.api.shared_resources import talk as talk
from support.clients.older_generations import ADMIN, core_python, first_python
from support.clients.one_workspace.clients import Clients, Process, processes
from support.clients.server import Server

pytestmark = [
    # By default, tests/api/test_three_generations.py runs these through the routes.
    pytest.mark.heavy,
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("served"),
]


@pytest.fixture(scope="module")
def running(keyed_server: Server, published_client: Path) -> Iterator[dict[str, Process]]:
    pythons = {"first": first_python(), "second": core_python("1.8.0"), "newest": published_client}
    with processes(pythons, keyed_server.url, ADMIN) as running:
        yield running


@pytest.fixture
def all_generations(keyed_server: Server, running: dict[str, Process]) -> Iterator[Clients]:
    clients = Clients(keyed_server.url, ADMIN, f"w-{uuid.uuid4().hex[:12]}", running)
    yield clients
    clients.close()


@pytest.fixture(params=GENERATIONS)
def writer(request: pytest.FixtureRequest, all_generations: Clients) -> GenerationClient:
    """The client whose resources the others read."""
    return all_generations.clients[request.param]


class TestSharedResources(SharedResources):
    """Every resource that all three clients support."""
