"""The published client in a process of its own, as a program beside the browser uses it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2]
MODULE = "support.clients.published_client.calls"


class ClientProcess:
    """Makes the calls that `MODULE` describes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answer(self, call: str, key: str, workspace: str, **arguments: Any) -> dict[str, Any]:
        """`{"result": …}`, or `{"error": CLASS}` if the client raised an exception."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"call": call, "key": key, "workspace": workspace, **arguments}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __call__(self, call: str, key: str, workspace: str, **arguments: Any) -> Any:
        answer = self.answer(call, key, workspace, **arguments)
        assert "error" not in answer, answer
        return answer["result"]


@contextmanager
def client_process(python: Path, url: str) -> Iterator[ClientProcess]:
    """`python`: the interpreter of the client's environment."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(TESTS),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = subprocess.Popen(
        [str(python), "-m", MODULE, url],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield ClientProcess(process)
        finally:
            process.terminate()
