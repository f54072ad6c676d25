"""Preparing the store before the server's processes use it, in a process that ends afterwards: its
modules and connections would stay in the memory of the supervisor."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence


def in_child(prepare: Callable[[], Sequence[str]]) -> Sequence[str] | None:
    """The lines that `prepare` returns in a child process. None if it raised there: then the child
    has reported the error. Call it while this process has one thread."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.close(read_end)
        lines = prepare()
        with os.fdopen(write_end, "w") as file:
            json.dump(lines, file)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        return None
    return list(json.loads(text))
