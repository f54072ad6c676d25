"""gunicorn's configuration under `memservice serve`. Variable options are on its command line."""

import logging
from collections.abc import Callable
from typing import Any

import gunicorn.http.message
import gunicorn.util
from gunicorn.errors import HaltServer

from memservice.serving import clients
from memservice.serving.forks import importing
from memservice.serving.preloading import preload

worker_class = "memservice.serving.clients.BufferingWorker"
"""gthread, except that its threads get complete requests and wait only a limited time for slow
clients."""
gunicorn.util.write_error = clients.write_error
preload_app = False
"""Each process opens its own connections: only the listening socket may be shared across a fork."""
keepalive = 75
max_requests = 0
accesslog = None
errorlog = "-"
loglevel = "warning"
control_socket_disable = True
forwarder_headers = ""
"""Empty, so that gunicorn does not take a path prefix from a header, which any client behind a
proxy could send."""
# A query for a session's context can name a thousand sessions. gunicorn allows lines of up to 8190
# bytes, or of any length.
limit_request_line = gunicorn.http.message.MAX_REQUEST_LINE = 2**20
limit_request_field_size = 65535


def on_starting(server: Any) -> None:
    with importing():
        preload()
    server.reap_workers = halting_once(server.reap_workers)


def halting_once(reap_workers: Callable[[], None]) -> Callable[[], None]:
    """gunicorn's own function, without its fault: if two processes cannot start, it raises
    `HaltServer` a second time while it stops for the first, and ends with a traceback."""
    is_halting = False

    def reap() -> None:
        nonlocal is_halting
        try:
            reap_workers()
        except HaltServer:
            if not is_halting:
                is_halting = True
                raise

    return reap


def worker_exit(server: Any, worker: Any) -> None:
    """Close the store, and write the last log lines. After the last process has closed a SQLite
    file, it is complete and has no log."""
    from memservice.api.routing import EXTENSION

    app = getattr(worker, "wsgi", None)
    if app is not None:  # missing if the start failed
        app.extensions[EXTENSION].close()
    for handler in logging.getLogger().handlers:
        handler.flush()
