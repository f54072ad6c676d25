"""Scenarios of a published Python client: found in its folder here, run in the client's
environment."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path
from typing import Any

from support.clients.environments import scenario_environment

CLIENTS = Path(__file__).parent
SECONDS = 400


def scenarios(package: str, files: str = "*") -> list[str]:
    """Names of the scenarios, read from the files: the client that they import is not installed
    here."""
    return sorted(
        node.name
        for file in (CLIENTS / package).glob(f"{files}.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AsyncFunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "scenario" for d in node.decorator_list)
    )


RESULTS: dict[tuple[str, ...], dict[str, Any]] = {}
"""By what was run, and where. Kept here, for fixtures come and go as tests change from server to
server."""


class Runs:
    """Results of a package's scenarios by face of the client, each run once against a server."""

    def __init__(self, python: Path, package: str, url: str, *further: str) -> None:
        self._python, self._package, self._url, self._further = python, package, url, further

    def result(self, face: str) -> dict[str, Any]:
        """What `harness.report` says of the face `sync` or `async`."""
        run = (self._package, self._url, face, *self._further)
        if run not in RESULTS:
            done = subprocess.run(
                [
                    *(str(self._python), "-W", "error::ResourceWarning"),
                    *("-m", f"support.clients.{self._package}", self._url, face, *self._further),
                ],
                env=scenario_environment(),
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            RESULTS[run] = json.loads(done.stdout.splitlines()[-1])
        return RESULTS[run]
