"""The application as gunicorn loads it, once in each of its processes, after forking."""

import threading

from memservice.api.routing import EXTENSION
from memservice.app import create_app
from memservice.serving.logs import set_up_logging
from memservice.serving.schema import wait_for_schema
from memservice.settings import load_settings

_settings = load_settings()
set_up_logging(_settings)
app = create_app(_settings)
# Opened now rather than by the first request, which would have to wait for it.
wait_for_schema(app.extensions[EXTENSION].runtime, threading.Event())
