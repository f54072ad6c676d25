"""Preparing the store before the server's processes use it, in a process that ends afterwards: its
modules and connections would stay in the memory of the supervisor."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence


class Preparation:
    """`prepare`, called in a child process. Make it while this process has one thread."""

    def __init__(self, prepare: Callable[[], Sequence[str]]) -> None:
        self._read_end, write_end = os.pipe()
        self._child = os.fork()
        if not self._child:
            os.close(self._read_end)
            lines = prepare()
            with os.fdopen(write_end, "w") as file:
                json.dump(lines, file)
            os._exit(0)
        os.close(write_end)

    def lines(self) -> Sequence[str] | None:
        """Wait for the lines that `prepare` returns. None if it raised: then the child has reported
        the error."""
        with os.fdopen(self._read_end) as file:
            text = file.read()
        _, status = os.waitpid(self._child, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            return None
        return list(json.loads(text))
