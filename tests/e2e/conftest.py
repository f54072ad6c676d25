"""The fixtures of end-to-end tests, which run on every storage that several processes can share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clients.command_line import Commands
from support.clients.fixtures import Servers
from support.clients.fixtures import published_client as published_client
from support.clients.fixtures import pytest_runtest_teardown as pytest_runtest_teardown
from support.clients.fixtures import servers as servers
from support.clients.older_generations import SECRET
from support.clients.other_clients import commands as commands
from support.clients.other_clients import node_client as node_client
from support.clients.other_clients import older_client as older_client
from support.clients.server import Server


@pytest.fixture(scope="module")
def server(shared_storage_name: str, servers: Servers) -> Server:
    """The service as it starts by default. Tests keep apart by workspace."""
    return servers.on(shared_storage_name)


@pytest.fixture(scope="module")
def keyed_server(shared_storage_name: str, servers: Servers) -> Server:
    """The service with authentication, as an operator starts it."""
    return servers.on(shared_storage_name, AUTH_USE_AUTH="true", AUTH_JWT_SECRET=SECRET)


@pytest.fixture(scope="module")
def honcho(
    commands: Path, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Commands]:
    """The published commands, in a workspace of their own."""
    host = Commands(
        commands, server.url, tmp_path_factory.mktemp("home"), f"w-{uuid.uuid4().hex[:12]}"
    )
    yield host
    host.close()
