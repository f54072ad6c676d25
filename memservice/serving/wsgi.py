"""The application for gunicorn, which loads it once in each of its processes, after forking."""

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask
from gunicorn.errors import AppImportError
from gunicorn.http.errors import ParseException

from memservice.api.routing import EXTENSION
from memservice.app import create_app
from memservice.domain.errors import MemserviceError
from memservice.serving import free_memory, start_pipe
from memservice.serving.logs import set_up_logging
from memservice.settings import load_settings
from memservice.worker.schema import wait_for_schema

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class _Body:
    """A request's body. Converts gunicorn's own error for malformed chunks to the usual error of a
    stream."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int = -1) -> bytes:
        try:
            data: bytes = self._body.read(size)
        except ParseException as error:
            raise OSError("the request's body is incomplete") from error
        return data


def _load() -> Flask:
    start_pipe.wait()
    settings = load_settings()
    set_up_logging(settings)
    flask_app = create_app(settings)
    # Opened now, so that the first request does not have to wait for it.
    wait_for_schema(flask_app.extensions[EXTENSION].runtime, threading.Event())
    flask_app.extensions[EXTENSION].announce()
    free_memory.give_back_regularly()
    serve = flask_app.wsgi_app

    def with_body(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        environ["wsgi.input"] = _Body(environ["wsgi.input"])
        return serve(environ, start_response)

    flask_app.wsgi_app = with_body  # type: ignore[method-assign]  # as Flask says to add one around it
    return flask_app


try:
    app = _load()
except MemserviceError as error:
    # gunicorn prints only the message of this error, and the traceback of any other.
    raise AppImportError(f"memservice: {error}") from error
