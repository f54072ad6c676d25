"""The generated clients of the second generation, unmodified, against a running server that asks
for keys: every method, both faces."""

from __future__ import annotations

from typing import Any

import pytest

from support.clients.core_client.versions import BETWEEN, NEWEST, PARTS
from support.clients.older_generations import ADMIN, core_python
from support.clients.runs import Runs, scenarios
from support.clients.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600)]

PACKAGE = "core_client"


def names(version: str) -> list[str]:
    return sorted(name for part in PARTS[version] for name in scenarios(PACKAGE, part))


def result(server: Server, version: str, face: str) -> dict[str, Any]:
    return Runs(core_python(version), PACKAGE, server.url, ADMIN, version).result(face)


def marks(version: str, face: str) -> list[pytest.MarkDecorator]:
    """The requests of both faces are the same, so by default the plain one of the newest version
    runs. What only older versions send is tested through the routes of the second generation."""
    if (version, face) == (NEWEST, "sync"):
        return [pytest.mark.xdist_group("served")]
    return [pytest.mark.xdist_group(f"core-{version}"), pytest.mark.heavy]


FACES = [
    pytest.param(version, face, marks=marks(version, face), id=f"{version}-{face}")
    for version in PARTS
    for face in ("sync", "async")
]
EACH = [
    pytest.param(
        version,
        face,
        name,
        marks=marks(version, face),
        id=f"{version}-{face}-{name}",
    )
    for version in PARTS
    for face in ("sync", "async")
    for name in names(version)
]


@pytest.mark.parametrize(("version", "face"), FACES)
def test_all_scenarios_ran_and_every_method_is_called(
    keyed_server: Server, version: str, face: str
) -> None:
    outcome = result(keyed_server, version, face)
    assert outcome["client"] == version
    assert sorted(outcome["scenarios"]) == names(version)
    assert outcome["uncalled"] == [] or version in BETWEEN


@pytest.mark.parametrize(("version", "face", "name"), EACH)
def test_scenario(keyed_server: Server, version: str, face: str, name: str) -> None:
    failure = result(keyed_server, version, face)["scenarios"][name]["failure"]
    assert failure is None, failure
