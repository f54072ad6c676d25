"""The published client, unmodified, against a service on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.stores import store_of
from e2e.runs import Runs, scenarios
from e2e.server import Server, serving
from e2e.test_published_client import PACKAGE

pytestmark = [pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    with store_of("postgres", folder) as uri, serving(folder, DB_CONNECTION_URI=uri) as running:
        yield running


@pytest.mark.parametrize("face", ["sync", "async"])
def test_every_scenario(published_client: Path, server: Server, face: str) -> None:
    result = Runs(published_client, PACKAGE, server.url).result(face)
    assert sorted(result["scenarios"]) == scenarios(PACKAGE)
    assert {name: each["failure"] for name, each in result["scenarios"].items() if each["failure"] is not None} == {}
