"""gunicorn's configuration under `memservice serve`. What varies comes on its command line."""

import gc
from typing import Any

import gunicorn.http.message
import gunicorn.util

from memservice.serving import clients

worker_class = "memservice.serving.clients.PatientWorker"
"""gthread, whose threads get whole requests and wait for a slow client no longer than they have
to."""
gunicorn.util.write_error = clients.write_error
preload_app = False
"""Each process opens its own connections: nothing but the listening socket may be shared across a
fork."""
keepalive = 75
max_requests = 0
accesslog = None
errorlog = "-"
loglevel = "warning"
control_socket_disable = True
forwarder_headers = ""
"""None: gunicorn would take a path's beginning from a header that anybody behind a proxy may
send."""
# A thousand session names may stand in the query of a session's context. gunicorn knows lines of up
# to 8190 bytes, or without any bound.
limit_request_line = gunicorn.http.message.MAX_REQUEST_LINE = 2**20
limit_request_field_size = 65535


def on_starting(server: Any) -> None:
    """Load code and tables that never change before forking, so that the processes share them in
    memory; open nothing."""
    import memservice.app  # noqa: F401
    from memservice.domain import tokens

    tokens.count("")
    gc.freeze()


def worker_exit(server: Any, worker: Any) -> None:
    """Close the store: a SQLite file is whole, without a log beside it, once the last process has
    let go of it."""
    from memservice.api.routing import EXTENSION

    app = getattr(worker, "wsgi", None)
    if app is not None:  # it is missing where the start failed
        app.extensions[EXTENSION].close()
