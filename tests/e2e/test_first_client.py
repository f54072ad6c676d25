"""The last published client of the first generation, unmodified, against a running server that asks
for keys: every method, both faces."""

from __future__ import annotations

import pytest

from support.clients.faces import faces
from support.clients.older_generations import ADMIN, first_python
from support.clients.runs import Runs, scenarios
from support.clients.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600)]

PACKAGE = "first_client"


@pytest.fixture(scope="module")
def runs(keyed_server: Server) -> Runs:
    return Runs(first_python(), PACKAGE, keyed_server.url, ADMIN)


@pytest.mark.parametrize("face", faces("first"))
class TestFirstClient:
    def test_all_scenarios_ran_and_every_method_is_called(self, runs: Runs, face: str) -> None:
        result = runs.result(face)
        assert result["client"] == "0.2.0"
        assert sorted(result["scenarios"]) == scenarios(PACKAGE)
        assert result["uncalled"] == []

    @pytest.mark.parametrize("name", scenarios(PACKAGE))
    def test_scenario(self, runs: Runs, face: str, name: str) -> None:
        failure = runs.result(face)["scenarios"][name]["failure"]
        assert failure is None, failure
