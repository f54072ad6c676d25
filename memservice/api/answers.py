"""JSON responses."""

from __future__ import annotations

from typing import Any

from flask import Response

from memservice.domain.json_bytes import encode


def json_answer(value: Any, status: int = 200) -> Response:
    """A JSON response. Lone surrogates, which no store should contain, are replaced by a
    replacement character."""
    return Response(encode(value), status, mimetype="application/json")


def empty_answer(status: int = 204) -> Response:
    answer = Response(b"", status)
    del answer.headers["Content-Type"]
    return answer
