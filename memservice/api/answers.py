"""JSON responses."""

from __future__ import annotations

import json
from typing import Any

from flask import Response

# Separators of the reference servers; keys keep the order of the schemas.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_answer(value: Any, status: int = 200) -> Response:
    """A JSON response. Lone surrogates, which no store should contain, are replaced by a
    replacement character."""
    return Response(
        _ENCODER.encode(value).encode("utf-8", "replace"), status, mimetype="application/json"
    )


def empty_answer(status: int = 204) -> Response:
    answer = Response(b"", status)
    del answer.headers["Content-Type"]
    return answer
