"""Writing answers."""

from __future__ import annotations

import json
from typing import Any

from flask import Response

# Separators as the clients' own servers write them; keys keep the order in which the schemas list
# them.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_answer(value: Any, status: int = 200) -> Response:
    """A JSON answer. Texts that no store should hold (lone surrogates) are shown with a replacement
    character."""
    return Response(
        _ENCODER.encode(value).encode("utf-8", "replace"), status, mimetype="application/json"
    )


def empty_answer(status: int = 204) -> Response:
    answer = Response(b"", status)
    del answer.headers["Content-Type"]
    return answer
