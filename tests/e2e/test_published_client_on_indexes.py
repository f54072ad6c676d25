"""The published client, unmodified, against a service on PostgreSQL whose vectors are in a server of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backends import redis_vectors
from backends.vector_stores import QDRANT
from e2e.fixtures import Servers
from e2e.runs import Runs, scenarios
from e2e.server import Server
from e2e.test_published_client import PACKAGE
from redis_server import VARIABLE as REDIS

pytestmark = [pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600)]


@pytest.fixture(params=["redis", "qdrant"])
def server(request: pytest.FixtureRequest, servers: Servers) -> Server:
    url = redis_vectors.real_url() if request.param == "redis" else os.environ.get(QDRANT)
    if not url:
        wanted = f"{REDIS} to one of version 8.0 or newer" if request.param == "redis" else QDRANT
        pytest.skip(f"the published client where the vectors are in {request.param}: set {wanted}")
    settings = {"VECTOR_STORE_TYPE": request.param, "VECTOR_STORE_URL": url, "VECTOR_STORE_NAMESPACE": redis_vectors.namespace()}
    return servers.on("postgres", **settings)


@pytest.mark.parametrize("face", ["sync", "async"])
def test_every_scenario(published_client: Path, server: Server, face: str) -> None:
    result = Runs(published_client, PACKAGE, server.url).result(face)
    assert sorted(result["scenarios"]) == scenarios(PACKAGE)
    assert {name: each["failure"] for name, each in result["scenarios"].items() if each["failure"] is not None} == {}
