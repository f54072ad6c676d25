"""The environment of the server's and the worker's processes."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import pytest

from memservice.serving.supervisor import Plan, Supervisor


@pytest.mark.parametrize(("own", "expected"), [({}, "2"), ({"MALLOC_ARENA_MAX": "8"}, "8")])
def test_processes_use_few_arenas_unless_the_operator_says_otherwise(
    own: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: dict[str, Any] = {}

    def start(command: list[str], **options: Any) -> None:
        started.update(options["env"])

    monkeypatch.setattr(subprocess, "Popen", start)
    with socket.socket() as listener:
        plan = Plan(1, 2, 1.0, with_worker=False, environment=own, server_environment={})
        Supervisor(listener, plan)._spawn([sys.executable], {})
    assert started["MALLOC_ARENA_MAX"] == expected
    assert started["OPENBLAS_NUM_THREADS"] == "1"
