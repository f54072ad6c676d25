"""Servers and the client's environment, for tests of several folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.clients.environments import client_python
from support.clients.server import Server, serving
from support.stores.stores import store_of

CLIENT = ("honcho-ai==2.7.0",)


@pytest.fixture(scope="session")
def published_client() -> Path:
    """The interpreter of an environment with the published client."""
    return client_python("honcho-ai", CLIENT)


class Servers:
    """Servers by storage and settings, each started when it is first asked for and kept to the end
    of the run."""

    def __init__(self, new_folder: Callable[[], Path], open_until_the_end: ExitStack) -> None:
        self._new_folder, self._open = new_folder, open_until_the_end
        self._running: dict[str, Server] = {}

    def on(self, storage: str, **settings: str) -> Server:
        name = repr((storage, settings))
        if name not in self._running:
            folder = self._new_folder()
            if storage != "sqlite":  # which is the default, in its folder
                settings["DB_CONNECTION_URI"] = self._open.enter_context(store_of(storage, folder))
            self._running[name] = self._open.enter_context(serving(folder, **settings))
        return self._running[name]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(lambda: tmp_path_factory.mktemp("served"), stack)


@pytest.fixture(scope="session")
def server(servers: Servers) -> Server:
    """The service as it starts by default, on a file of its own. Tests keep apart by workspace."""
    return servers.on("sqlite")
