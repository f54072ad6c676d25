"""How a thread reports that it is going to wait for something outside of its process."""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Thread(threading.local):
    on_wait: Callable[[], None] | None = None


_thread = _Thread()


def on_wait(call: Callable[[], None] | None) -> None:
    """Let `about_to_wait` call this from now on, in this thread; None: nothing."""
    _thread.on_wait = call


def about_to_wait() -> None:
    """Call it before this thread waits for another program, or for another transaction, longer than
    a query takes. A server then begins another request at once, and not after 10 to 20 ms; a worker
    lets another unit compute, and not after 100 ms. Does nothing in other threads."""
    if _thread.on_wait is not None:
        _thread.on_wait()
