"""The fixtures of end-to-end tests, which run on every storage that several processes can share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.command_line import Commands
from e2e.fixtures import Servers
from e2e.fixtures import published_client as published_client
from e2e.fixtures import servers as servers
from e2e.older_generations import SECRET
from e2e.other_clients import commands as commands
from e2e.other_clients import node_client as node_client
from e2e.other_clients import older_client as older_client
from e2e.server import Server


@pytest.fixture(scope="session")
def server(shared_storage_name: str, servers: Servers) -> Server:
    """The service as it starts by default. Tests keep apart by workspace."""
    return servers.on(shared_storage_name)


@pytest.fixture(scope="session")
def keyed_server(shared_storage_name: str, servers: Servers) -> Server:
    """The service as an operator starts it who wants keys."""
    return servers.on(shared_storage_name, AUTH_USE_AUTH="true", AUTH_JWT_SECRET=SECRET)


@pytest.fixture(scope="module")
def honcho(commands: Path, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """The published commands, in a workspace of their own."""
    host = Commands(commands, server.url, tmp_path_factory.mktemp("home"), f"w-{uuid.uuid4().hex[:12]}")
    yield host
    host.close()
