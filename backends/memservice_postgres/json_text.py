"""JSON on its way to the database and back."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from psycopg.types.json import Json

from memservice.domain.json_bytes import decode

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Raises ValueError for NaN and infinities."""

read = decode


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Json):
        return value.obj
    raise TypeError(f"{type(value).__name__} is not a type of a column")


encode_rows = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
).encode
"""Encode rows, converted for the driver, as one JSON text."""
