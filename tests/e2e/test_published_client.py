"""The published client, unmodified, against a running server: every method, plain and asynchronous."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.client, pytest.mark.timeout(600)]

FOLDER = Path(__file__).parent / "published_client"

LOCAL = {"Peer.message", "Peer.conclusions_of"}
"""Methods that ask no server."""


def scenarios() -> list[str]:
    """Names of the scenarios, read from the files: the client that they import is not installed here."""
    return sorted(
        node.name
        for file in FOLDER.glob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AsyncFunctionDef) and any(isinstance(d, ast.Name) and d.id == "scenario" for d in node.decorator_list)
    )


class Runs:
    """Results of the scenarios by face of the client, each run once."""

    def __init__(self, python: Path, url: str, root: Path) -> None:
        self._python, self._url, self._root = python, url, root
        self._results: dict[str, dict[str, Any]] = {}

    def result(self, face: str) -> dict[str, Any]:
        if face not in self._results:
            done = subprocess.run(
                [str(self._python), "-W", "error::ResourceWarning", "-m", "e2e.published_client", self._url, face],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self._root / "tests"), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                timeout=400,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            self._results[face] = json.loads(done.stdout.splitlines()[-1])
        return self._results[face]


@pytest.fixture(scope="session")
def runs(published_client: Path, server: Server, root: Path) -> Runs:
    return Runs(published_client, server.url, root)


FACES = [pytest.param(face, marks=pytest.mark.xdist_group(f"client-{face}")) for face in ("sync", "async")]
"""Of the client. All tests of one face run in one process, which runs the client once."""


@pytest.mark.parametrize("face", FACES)
class TestPublishedClient:
    def test_all_scenarios_ran(self, runs: Runs, face: str) -> None:
        result = runs.result(face)
        assert result["client"] == "2.7.0"
        assert sorted(result["scenarios"]) == scenarios()

    def test_every_method_is_called(self, runs: Runs, face: str) -> None:
        assert set(runs.result(face)["uncalled"]) == LOCAL

    @pytest.mark.parametrize("name", scenarios())
    def test_scenario(self, runs: Runs, face: str, name: str, record_property: Any) -> None:
        result = runs.result(face)["scenarios"][name]
        record_property("notes", result["notes"])
        assert result["failure"] is None, result["failure"]
