"""Runs the published commands, each in a process forked after the imports, which take longer than
most commands.

In the commands' environment: `python command_host.py`. Reads a line of JSON per command,
`{"words": […], "settings": {…}}`, and writes one, `{"code": …, "output": …, "said": …}`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from typing import IO, Any

from honcho_cli.main import app  # type: ignore[import-not-found]  # installed in the commands' own environment only

SECONDS = 60
PAUSES = "TEST_LONGEST_PAUSE_SECONDS"
"""A setting of one command: the most that it pauses between two tries."""


def _become(words: list[str], settings: dict[str, str], output: IO[str], errors: IO[str]) -> int:
    """Be the command, in a process of its own; its exit code."""
    signal.alarm(SECONDS)
    os.environ.update(settings)
    if PAUSES in settings:
        pause, longest = time.sleep, float(settings[PAUSES])
        time.sleep = lambda seconds: pause(min(float(seconds), longest))
    os.dup2(output.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    sys.argv = ["honcho", *words]
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # what an interpreter does with it
        traceback.print_exc()
        return 1
    return 0


def _run(words: list[str], settings: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            code = _become(words, settings, output, errors)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        errors.seek(0)
        return {"code": code, "output": output.read(), "said": errors.read()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_run(**json.loads(line))), flush=True)
