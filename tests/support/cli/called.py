"""`memservice` as a call in the process of the test, which takes less than a fork."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from memservice.cli import main
from memservice.reasoning.apart import reasoner
from support.processes import preloaded
from support.processes.command import MEMSERVICE, environment

NEED_A_PROCESS = ("serve", "worker", "plugins", "init")
"""Commands that set signal handlers or logging, start children, import plugins, or look for their
own installation: `python -m pytest` has the root of the tree on its path, and a build leaves other
metadata there."""


def needs_a_process(arguments: Sequence[str], settings: Mapping[str, str]) -> bool:
    """Whether something of the run would remain in the process of the test, or is read when an
    interpreter starts."""
    return any(name in arguments for name in NEED_A_PROCESS) or any(
        name.startswith(preloaded.READ_AT_START) for name in settings
    )


def call(
    arguments: Sequence[str], folder: Path, settings: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """As `preloaded.run`. An exception that the command does not catch is raised."""
    status: object = 0
    environ = dict.fromkeys(os.environ) | environment(**settings) | {"COLUMNS": "80"}
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setattr(sys, "argv", [str(MEMSERVICE), *arguments])
        patch.setattr(reasoner, "_started", preloaded.start_reasoner)
        # Without handlers, warnings go to the standard error, as those of a command do.
        patch.setattr(logging.root, "handlers", [])
        with CliRunner().isolation(env=environ) as (output, errors, _):
            try:
                main()
            except SystemExit as end:
                status = end.code
            sys.stdout.flush()
            sys.stderr.flush()
            texts = [stream.getvalue().decode() for stream in (output, errors)]
    assert isinstance(status, int | None), status
    return subprocess.CompletedProcess(arguments, status or 0, *texts)
