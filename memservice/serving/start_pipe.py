"""The pipe on which the processes of the server wait until the supervisor has opened the store. So
one that cannot be opened is reported once, and not by each of them."""

from __future__ import annotations

import os

VARIABLE = "_MEMSERVICE_START_PIPE"
"""The descriptor of the pipe's read end, in the environment of the server."""


class StartPipe:
    """Held by the supervisor. Nothing is ever written: the processes wait for the end of the pipe,
    which comes also when the supervisor dies."""

    def __init__(self) -> None:
        self.read_end, write_end = os.pipe()
        self._ends = [self.read_end, write_end]

    def environment(self) -> dict[str, str]:
        return {VARIABLE: str(self.read_end)}

    def keep_read_end(self) -> None:
        """In a process that was forked from the supervisor: close the other end, which would keep
        the pipe open."""
        os.close(self._ends.pop())

    def close(self) -> None:
        """Let every process of the server go on, also one that starts later."""
        while self._ends:
            os.close(self._ends.pop())


def wait() -> None:
    """Wait in a process of the server until the supervisor has closed its end. Without a
    supervisor, return at once."""
    descriptor = os.environ.get(VARIABLE)
    if descriptor is not None:
        os.read(int(descriptor), 1)
