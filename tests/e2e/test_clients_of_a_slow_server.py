"""The newest clients and answers that take a while: pieces as they are made, a broken answer, no
room, and callers that do not wait."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.test_streaming import PATIENCE, next_event, stream
from e2e.test_streaming import slow_server as slow_server
from support.clients.command_line import Commands
from support.clients.environments import scenario_environment
from support.clients.runs import CLIENTS
from support.clients.server import Server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("slow"),
]


def run(*words: str, **further: str) -> None:
    result = subprocess.run(
        words,
        env={"PATH": os.environ["PATH"]} | further,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(result.stdout) == "as expected"


# By default, test_streaming.py looks at what the server answers.
@pytest.mark.heavy
def test_the_python_client_retries_and_reports_the_server(
    published_client: Path, slow_server: Server, tmp_path: Path
) -> None:
    module = (
        str(published_client),
        "-m",
        "support.clients.published_client.slow",
        slow_server.url,
        str(tmp_path),
    )
    run(*module, **scenario_environment())


@pytest.mark.heavy
def test_the_node_client_retries_and_reports_the_server(
    node_client: Path, slow_server: Server, tmp_path: Path
) -> None:
    run(
        "node",
        str(CLIENTS / "node_client" / "slow.mjs"),
        slow_server.url,
        str(node_client),
        str(tmp_path),
    )


@contextmanager
def place_taken(server: Server, marker: Path) -> Iterator[None]:
    """While the one slot for slow answers is taken. That of an answer before is free a moment
    after it was read."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with stream(server, str(marker)) as answer:
            if answer.status == 200:
                next_event(answer)
                yield
                marker.touch()
                answer.read()
                return
        assert time.monotonic() < deadline, "the slot was never released"
        time.sleep(0.05)


@pytest.mark.heavy
def test_the_commands_retry_and_report_the_server(
    commands: Path, slow_server: Server, tmp_path: Path
) -> None:
    """A command tries again as often as its client does, and then says by its exit code that it was
    the server."""
    honcho = Commands(commands, slow_server.url, tmp_path, "w")
    try:
        with place_taken(slow_server, tmp_path / "heard"):
            refused = honcho.run(
                "peer", "chat", "x", "-p", "alice", TEST_LONGEST_PAUSE_SECONDS="0.1"
            )
    finally:
        honcho.close()
    assert (refused.code, refused.error["code"]) == (2, "SERVER_ERROR")
    assert "try again" in refused.error["message"]
