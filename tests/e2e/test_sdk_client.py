"""The last client library of the second generation, unmodified, on the core it was made for: every
method, both kinds of classes."""

from __future__ import annotations

import pytest

from support.clients.faces import faces
from support.clients.older_generations import ADMIN, core_python
from support.clients.runs import Runs, scenarios
from support.clients.server import Server

# By default, the newest client of each generation runs.
pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600)]

PACKAGE = "sdk_client"


@pytest.fixture(scope="module")
def runs(keyed_server: Server) -> Runs:
    return Runs(core_python("1.8.0"), PACKAGE, keyed_server.url, ADMIN)


@pytest.mark.parametrize("face", faces("sdk"))
class TestSdkClient:
    def test_all_scenarios_ran_and_every_method_is_called(self, runs: Runs, face: str) -> None:
        result = runs.result(face)
        assert result["client"] == "1.6.0"
        assert sorted(result["scenarios"]) == scenarios(PACKAGE)
        assert result["uncalled"] == []

    @pytest.mark.parametrize("name", scenarios(PACKAGE))
    def test_scenario(self, runs: Runs, face: str, name: str) -> None:
        failure = runs.result(face)["scenarios"][name]["failure"]
        assert failure is None, failure
