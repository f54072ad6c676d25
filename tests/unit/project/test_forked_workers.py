"""Processes of a test run that are forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
SCRIPT = """
import os, sys
import execnet
from support.processes.workers import fork_workers

sys.modules["imported_before"] = os
fork_workers(1)
group = execnet.Group()
look = "import os, sys; channel.send((os.getppid(), 'imported_before' in sys.modules))"
for _ in range(2):
    parent, has_modules = group.makegateway("popen").remote_exec(look).receive(20)
    print(parent == os.getpid(), has_modules)
group.terminate(5)
"""


@pytest.mark.slow
def test_a_fork_has_the_modules_and_its_replacement_is_a_new_interpreter() -> None:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["True True", "True False"]
    assert result.stderr == ""
