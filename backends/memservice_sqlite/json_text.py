"""JSON as SQLite stores it: compact text, always encoded the same way, so that conditions can
search for a part of it."""

from __future__ import annotations

import json
from typing import Any

from memservice.domain.json_bytes import decode

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Raises ValueError for NaN and infinities."""

read = decode


def write(value: Any) -> str:
    return (
        encode(value)
        if value
        else "[]"
        if isinstance(value, list)
        else "{}"
        if isinstance(value, dict)
        else encode(value)
    )
