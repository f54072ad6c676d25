"""One server and one client environment for the tests of a folder, in each test process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.environments import client_python
from e2e.server import Server, serving

CLIENT = ("honcho-ai==2.7.0",)


@pytest.fixture(scope="session")
def published_client() -> Path:
    """The interpreter of an environment with the published client."""
    return client_python("honcho-ai", CLIENT)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service as it starts by default, on a file of its own. Tests keep apart by workspace."""
    with serving(tmp_path_factory.mktemp("served")) as running:
        yield running
