"""Processing around every request: host check, preflights, redirects of trailing slashes, request
ids, and one log line."""

from __future__ import annotations

import logging
import random
import re
import time
from typing import Any
from urllib.parse import quote

from flask import Flask, Response, g, request
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import RequestRedirect

from memservice.api import hosts
from memservice.api.answers import json_answer
from memservice.api.cors import Cors
from memservice.api.hosts import Hosts
from memservice.api.routing import EXTENSION
from memservice.telemetry.context import set_request_id
from memservice.telemetry.metrics import Metrics

log = logging.getLogger("memservice.requests")

REQUEST_ID = "X-Request-Id"
_LINE = "method=%(method)s path=%(path)s status=%(status)d ms=%(ms).1f request_id=%(request_id)s"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def register(app: Flask, cors: Cors, host_names: Hosts) -> None:
    metrics = app.extensions[EXTENSION].metrics

    def before() -> Response | None:
        g.started = time.perf_counter()
        g.request_id = _request_id()
        set_request_id(g.request_id)
        if (refusal := host_names.refusal(request.environ.get("HTTP_HOST"))) is not None:
            return json_answer({"detail": refusal}, hosts.STATUS)
        if request.method == "OPTIONS" and (answer := cors.preflight(request)) is not None:
            return answer
        if isinstance(request.routing_exception, NotFound):
            return _without_slash(app)
        return None

    def after(answer: Response) -> Response:
        headers = answer.headers
        headers[REQUEST_ID] = number = g.get("request_id") or _request_id()
        if answer.is_streamed:
            g.is_streamed = True
            answer.call_on_close(_clear_request_id)
        origin = request.headers.get("Origin")
        if origin is not None:
            cors.mark(request, headers)
        started = g.get("started")
        if started is not None:
            _write_line(answer, number, started)
            if metrics is not None:
                _measure(metrics, answer, started)
        return answer

    def teardown(error: BaseException | None) -> None:
        if not g.get("is_streamed"):
            _clear_request_id()

    app.before_request(before)
    app.after_request(after)
    app.teardown_request(teardown)


def _clear_request_id() -> None:
    """Clear the request id at the end of the response: the thread serves other requests
    afterwards."""
    set_request_id(None)


def _measure(metrics: Metrics, answer: Response, started: float) -> None:
    method, rule, status = (
        request.method,
        request.url_rule.rule if request.url_rule else None,
        answer.status_code,
    )

    def count() -> None:
        metrics.answered(method, rule, status, time.perf_counter() - started)

    if answer.is_streamed:
        answer.call_on_close(count)
    else:
        count()


def _request_id() -> str:
    """The caller's request id, if it is valid; else a new one."""
    header = request.headers.get(REQUEST_ID)
    if header is not None and _REQUEST_ID.fullmatch(header):
        return header
    return f"{random.getrandbits(64):016x}"


def _without_slash(app: Flask) -> Response | None:
    """307 to the path without its trailing slashes, if there is a route."""
    path = request.path
    bare = path.rstrip("/")
    if bare == path or not bare:
        return None
    adapter = app.create_url_adapter(request)
    assert adapter is not None
    try:
        adapter.match(bare)
    except MethodNotAllowed:
        pass  # there is a route; the redirected request gets the 405
    except (NotFound, RequestRedirect):
        return None
    query = request.query_string.decode("latin-1")
    location = quote(request.root_path + bare) + (f"?{query}" if query else "")
    return Response(b"", 307, headers={"Location": location})


def _write_line(answer: Response, number: str, started: float) -> None:
    """Write one log line, without bodies, without the query string (it can contain users' texts),
    and without line breaks."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields: dict[str, Any] = {
        "method": request.method if request.method.isalpha() else "?",
        "path": quote(request.path),
        "status": answer.status_code,
        "ms": round((time.perf_counter() - started) * 1000, 1),
        "request_id": number,
    }
    # `log.info` would look for its caller in the stack, for each request.
    record = log.makeRecord(log.name, logging.INFO, __name__, 0, _LINE, (fields,), None)
    record.request = fields
    log.handle(record)
