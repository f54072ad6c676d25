"""Services in folders of their own, which a test may end in any way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memservice.testing import failpoints
from support.processes.gate import FOLDER, Gates
from support.processes.processes import Service, python_path

Serve = Callable[..., Service]


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path / "gates")


@pytest.fixture
def serve(tmp_path: Path, gates: Gates) -> Iterator[Serve]:
    """Start a service in which our gates are a plugin."""
    site = failpoints.announce(tmp_path / "site", gate="support.processes.gate")
    started: list[Service] = []

    def start(*options: str, **settings: str) -> Service:
        folder = tmp_path / "served"
        folder.mkdir(exist_ok=True)
        environ = {"PYTHONPATH": python_path(site), FOLDER: str(gates.folder), **settings}
        service = Service(folder, "--workers", "1", "--threads", "8", *options, **environ)
        started.append(service)
        return service

    yield start
    for service in started:
        service.end()
