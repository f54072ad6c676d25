"""The application as gunicorn loads it, once in each of its processes, after forking."""

import threading

from flask import Flask
from gunicorn.errors import AppImportError

from memservice.api.routing import EXTENSION
from memservice.app import create_app
from memservice.domain.errors import MemserviceError
from memservice.serving.logs import set_up_logging
from memservice.serving.schema import wait_for_schema
from memservice.settings import load_settings


def _load() -> Flask:
    settings = load_settings()
    set_up_logging(settings)
    made = create_app(settings)
    # Opened now rather than by the first request, which would have to wait for it.
    wait_for_schema(made.extensions[EXTENSION].runtime, threading.Event())
    return made


try:
    app = _load()
except MemserviceError as error:
    # gunicorn prints this one's text alone; of any other it prints the traceback.
    raise AppImportError(f"memservice: {error}") from error
