"""Error responses: status and body of the domain's and the framework's errors.

Every body is `{"detail": "<text>"}`, except for 422: `{"detail": [{"loc", "msg", "type"}, …]}` with
all problems.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import ClientDisconnected, HTTPException, MethodNotAllowed

from memservice.api.answers import json_answer
from memservice.domain import errors
from memservice.domain.failures import error_types, redacted_traceback

log = logging.getLogger("memservice.api")

STATUS: Mapping[type[errors.MemserviceError], int] = {
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Refused: 400,
    errors.Unauthorised: 401,
    errors.Disabled: 405,
    errors.TooLarge: 413,
    errors.UnsupportedMedia: 415,
    errors.InvalidInput: 422,
    errors.Unavailable: 503,
    errors.SchemaVersionError: 503,
    errors.Damaged: 500,
    errors.AnswerFailed: 502,
    errors.AnswerUnavailable: 503,
    errors.AnswerTimedOut: 504,
}
"""Error → status. Any other error concerns the operator, not the caller: 500."""

UNAVAILABLE = "The store cannot be used at the moment: try again"
"""The cause, with hosts, paths and users, is only logged."""
DAMAGED = "The store is damaged: trying again does not help. The operator must repair it"
UNEXPECTED = "An unexpected error occurred"
INCOMPLETE_BODY = "The request's body was incomplete, or did not arrive in time: send it again"
TEXTS = {404: "Not Found", 405: "Method Not Allowed", 408: INCOMPLETE_BODY}
"""Texts of the framework's errors."""


def register(app: Flask) -> None:
    app.register_error_handler(errors.MemserviceError, from_domain)
    app.register_error_handler(Exception, from_unexpected)


def from_domain(error: errors.MemserviceError) -> Response:
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), None)
    if status is None:
        return from_unexpected(error)
    if isinstance(error, errors.InvalidInput):
        return json_answer(
            {
                "detail": [
                    {"loc": list(p.loc), "msg": p.message, "type": p.kind} for p in error.problems
                ]
            },
            status,
        )
    if isinstance(error, (errors.Unavailable, errors.SchemaVersionError)):
        return _from_unavailable(error, status)
    if isinstance(error, errors.Damaged):
        return _from_damaged(error, status)
    if isinstance(error, errors.AnswerFailed):
        return _from_failed_answer(error, status)
    answer = json_answer({"detail": str(error)}, status)
    if isinstance(error, errors.Conflict):
        # older clients would send it two more times, with pauses
        answer.headers["x-should-retry"] = "false"
    return answer


def _from_failed_answer(error: errors.AnswerFailed, status: int) -> Response:
    """A retry costs the same again, so the response recommends one only if the provider does."""
    answer = json_answer({"detail": str(error)}, status)
    if isinstance(error, errors.AnswerUnavailable):
        answer.headers["Retry-After"] = str(error.retry_after)
    else:
        answer.headers["x-should-retry"] = "false"
    return answer


def _from_damaged(error: errors.Damaged, status: int) -> Response:
    """Without `Retry-After`. The storage has logged instructions for the operator once."""
    answer = json_answer({"detail": DAMAGED}, status)
    answer.headers["x-should-retry"] = "false"
    log.warning("%s %s: %s", request.method, request.endpoint, error)
    return answer


def _from_unavailable(
    error: errors.Unavailable | errors.SchemaVersionError, status: int
) -> Response:
    """503 with `Retry-After`: if the schema is newer, a server of the newer release can answer."""
    answer = json_answer(
        {"detail": str(error) if isinstance(error, errors.Busy) else UNAVAILABLE}, status
    )
    answer.headers["Retry-After"] = str(getattr(error, "retry_after", 1))
    log.warning(
        "%s %s: unavailable: %s: %s",
        request.method,
        request.endpoint,
        " from ".join(error_types(error)),
        error,
    )
    return answer


def from_unexpected(error: Exception) -> Response:
    """500. The log contains the types and the code locations of the error and its causes, not their
    texts, which can quote users' texts."""
    rule = request.url_rule.rule if request.url_rule is not None else "(no route)"
    log.error(
        "%s %s failed: %s\n%s",
        request.method,
        rule,
        " from ".join(error_types(error)),
        redacted_traceback(error),
    )
    if isinstance(error, errors.MemserviceError):
        log.error("%s", error)  # written for the operator, without secrets
    return json_answer({"detail": UNEXPECTED}, 500)


def _too_large() -> str:
    return (
        f"The request's body is too large: at most {request.max_content_length} bytes are read here"
    )


def from_framework(error: HTTPException) -> Response:
    """Errors of routing and of reading the request."""
    ready = error.get_response()
    # The client of an incomplete body has disconnected, or is too slow and still reads the
    # response.
    status = 408 if isinstance(error, ClientDisconnected) else error.code or 500
    if status < 400:
        return Response(ready.get_data(), status, headers=ready.headers)
    headers: dict[str, Any] = {}
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        headers["Allow"] = ", ".join(sorted(error.valid_methods))
    answer = json_answer(
        {"detail": _too_large() if status == 413 else TEXTS.get(status, error.name)}, status
    )
    answer.headers.update(headers)
    return answer
