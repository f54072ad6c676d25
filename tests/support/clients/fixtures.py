"""Servers and the client's environment, for tests of several folders."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
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
    """Servers by storage and settings, each started when it is first asked for, and shared by the
    tests of the group `served`."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._open = ExitStack()
        self._running: dict[str, Server] = {}

    def on(self, storage: str, **settings: str) -> Server:
        name = repr((storage, settings))
        if name not in self._running:
            folder = self._new_folder()
            if storage != "sqlite":  # which is the default, in its folder
                settings["DB_CONNECTION_URI"] = self._open.enter_context(store_of(storage, folder))
            self._running[name] = self._open.enter_context(serving(folder, **settings))
        return self._running[name]

    def end(self) -> None:
        """Stop all. The next test that asks for one gets a new one."""
        self._running.clear()
        self._open.close()


@pytest.fixture(scope="session")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    opened = Servers(lambda: tmp_path_factory.mktemp("served"))
    request.config.stash[OPENED] = opened
    yield opened
    opened.end()


@pytest.fixture(scope="module")
def server(servers: Servers) -> Server:
    """The service as it starts by default, on a file of its own. Tests keep apart by workspace."""
    return servers.on("sqlite")


OPENED = pytest.StashKey[Servers]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Function, nextitem: pytest.Function | None
) -> Generator[None]:
    """End the servers before a module that needs none. Their workers look for work all the time,
    which takes more CPU in a run of ten minutes than all tests of the servers."""
    result = yield
    if (
        (opened := item.config.stash.get(OPENED, None))
        and (nextitem is None or nextitem.path != item.path)
        and (nextitem is None or "servers" not in nextitem.fixturenames)
    ):
        opened.end()
    return result
