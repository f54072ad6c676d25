"""The published client of many versions ago, unmodified, against a running server: every method and
parameter, plain and asynchronous."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.clients.faces import faces
from support.clients.runs import Runs, scenarios
from support.clients.server import Server

# By default, the newest client of each generation runs.
pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600)]

PACKAGE = "older_client"
LOCAL = {"Peer.message", "Peer.conclusions_of"}
"""Methods that ask no server."""


@pytest.fixture(scope="module")
def runs(older_client: Path, server: Server) -> Runs:
    return Runs(older_client, PACKAGE, server.url)


@pytest.mark.parametrize("face", faces("older"))
class TestOlderClient:
    def test_all_scenarios_ran(self, runs: Runs, face: str) -> None:
        result = runs.result(face)
        assert result["client"] == "2.1.0"
        assert sorted(result["scenarios"]) == scenarios(PACKAGE)

    def test_every_method_is_called(self, runs: Runs, face: str) -> None:
        assert set(runs.result(face)["uncalled"]) == LOCAL

    def test_every_parameter_is_given(self, runs: Runs, face: str) -> None:
        assert {
            name for name in runs.result(face)["ungiven"] if name.partition("(")[0] not in LOCAL
        } == set()

    @pytest.mark.parametrize("name", scenarios(PACKAGE))
    def test_scenario(self, runs: Runs, face: str, name: str, record_property: Any) -> None:
        result = runs.result(face)["scenarios"][name]
        record_property("notes", result["notes"])
        assert result["failure"] is None, result["failure"]
