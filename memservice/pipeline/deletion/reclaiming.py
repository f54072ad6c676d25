"""Removes the remains of erased rows from the files of a storage, in short steps."""

from __future__ import annotations

import time

from memservice.runtime import Runtime

PAUSE_SECONDS = 0.02
"""Pause between two steps, for other writers."""
SECONDS = 0.25
"""About the time of one call."""


def step(rt: Runtime) -> bool:
    """Do some of the work. True if there is more."""
    ends = time.monotonic() + SECONDS
    while rt.storage.reclaim(erasure=True):
        if time.monotonic() >= ends:
            return True
        time.sleep(PAUSE_SECONDS)
    return False
