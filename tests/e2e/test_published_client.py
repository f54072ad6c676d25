"""The published client, unmodified, against a running server: every method and parameter. Its
asynchronous face runs on PostgreSQL by default: see `test_published_client_on_indexes.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.clients.faces import faces
from support.clients.runs import Runs, scenarios
from support.clients.server import Server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
]

PACKAGE = "published_client"
LOCAL = {"Peer.message", "Peer.conclusions_of"}
"""Methods that ask no server."""


def ungiven(result: dict[str, Any]) -> set[str]:
    """Parameters of the client's methods that a run gave to none of its calls."""
    return {name for name in result["ungiven"] if name.partition("(")[0] not in LOCAL}


@pytest.fixture(scope="module")
def runs(published_client: Path, server: Server) -> Runs:
    return Runs(published_client, PACKAGE, server.url)


@pytest.mark.parametrize("face", faces("client"))
class TestPublishedClient:
    def test_all_scenarios_ran(self, runs: Runs, face: str) -> None:
        result = runs.result(face)
        assert result["client"] == "2.7.0"
        assert sorted(result["scenarios"]) == scenarios(PACKAGE)

    def test_every_method_is_called(self, runs: Runs, face: str) -> None:
        assert set(runs.result(face)["uncalled"]) == LOCAL

    def test_every_parameter_is_given(self, runs: Runs, face: str) -> None:
        assert ungiven(runs.result(face)) == set()

    @pytest.mark.parametrize("name", scenarios(PACKAGE))
    def test_scenario(self, runs: Runs, face: str, name: str, record_property: Any) -> None:
        result = runs.result(face)["scenarios"][name]
        record_property("notes", result["notes"])
        assert result["failure"] is None, result["failure"]
