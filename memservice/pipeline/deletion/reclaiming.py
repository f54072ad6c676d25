"""Removes the remains of erased rows from the files of a storage, in short steps."""

from __future__ import annotations

import time

from memservice.runtime import Runtime

PAUSE_SECONDS = 0.02
"""Pause, for other writers, after about as much work: a step takes from a tenth of it on."""
SECONDS = 0.25
"""About the time of one call."""


def step(rt: Runtime) -> bool:
    """Do some of the work. True if there is more."""
    resumed = time.monotonic()
    ends = resumed + SECONDS
    while rt.storage.reclaim(erasure=True):
        now = time.monotonic()
        if now >= ends:
            return True
        if now - resumed >= PAUSE_SECONDS:
            time.sleep(PAUSE_SECONDS)
            resumed = time.monotonic()
    return False
