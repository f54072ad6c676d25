"""Memory that the C library keeps for later, given back to the system.

glibc gives back the end of its heap only. Between allocations that stay, for instance of a cache
that was just filled, it keeps whatever the filling took.
"""

from __future__ import annotations

import ctypes
import threading
import time

EVERY_SECONDS = 15.0


def give_back() -> None:
    """Give back whole pages that are not allocated. Does nothing without glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


def give_back_regularly() -> None:
    """Do so every `EVERY_SECONDS`, from a thread, as long as this process runs."""

    def repeat() -> None:
        while True:
            time.sleep(EVERY_SECONDS)
            give_back()

    threading.Thread(target=repeat, name="free-memory", daemon=True).start()
