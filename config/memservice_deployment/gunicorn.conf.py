"""gunicorn for those who run it under a supervision of their own, as `memservice serve` runs it:
processes, threads and time to drain are the settings' (WORKERS, THREADS, GRACEFUL_TIMEOUT_SECONDS,
HOST, PORT), which are read where gunicorn is started.

    memservice db upgrade
    gunicorn --config gunicorn.conf.py memservice.serving.wsgi:app

The background work is apart: `memservice worker`.
"""

import os
from contextlib import ExitStack
from typing import Any

from memservice.serving import gunicorn_config
from memservice.serving.gunicorn_config import *  # noqa: F403
from memservice.serving.metrics import shared_values_here
from memservice.settings import load_settings

_settings = load_settings()

bind = f"{_settings.server.host}:{_settings.server.port}"
workers = _settings.server.workers
threads = _settings.server.threads
graceful_timeout = int(_settings.server.graceful_timeout_seconds)

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

_values = ExitStack()


def on_starting(server: Any) -> None:
    """Before anything is loaded: where the processes share what they count, if metrics are on."""
    _values.enter_context(shared_values_here(_settings))
    gunicorn_config.on_starting(server)


def on_exit(server: Any) -> None:
    """The last of the master."""
    _values.close()
