"""What parents and children of one service share: when to replace a child that died, and what to do
when a parent is gone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
"""Seconds before a child that died is replaced; doubled each time one dies soon."""
STEADY_SECONDS = 60.0
"""A child that lived this long does not count as dying soon."""
PARENT_POLL_SECONDS = 1.0


class RestartPause:
    """The pause before the next replacement."""

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE

    def after(self, lived: float) -> float:
        """Seconds to wait after a child that lived so many seconds."""
        is_steady = lived > STEADY_SECONDS
        self._pause = FIRST_PAUSE if is_steady else min(self._pause * 2, MAX_PAUSE)
        return self._pause


def when_parent_ends(act: Callable[[], object]) -> None:
    """Call `act` once, from a thread, soon after the parent of this process ended."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_SECONDS)
        act()

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()
