"""How JSON lies in SQLite: compact text, always written the same way, so that conditions can look
for a piece of it."""

from __future__ import annotations

import json
from typing import Any

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Raises ValueError for NaN and infinities."""

_decode = json.JSONDecoder().raw_decode


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


def read(text: str) -> Any:
    """Five times as fast as `json.loads`, which looks for blanks, byte order marks and rubbish at
    the end."""
    return _decode(text)[0]
