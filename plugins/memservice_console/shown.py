"""How values appear on a page. Everything that a template prints goes through `visible`: stored
text is data, and cannot change how the rest of the page reads."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup, escape

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, of terminals (ANSI) and of the direction of writing. Tabs and line breaks
stay."""


def visible(value: Any) -> Any:
    """The value as it is printed: control characters as visible signs, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _INVISIBLE.sub(_sign, value)
    return value


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\u27e8U+{code:04X}\u27e9"


def exact(value: str | None) -> Markup:
    """A text in a form's field, which is sent back unchanged."""
    return escape(value or "")


def moment(value: datetime | None, empty: str = "never") -> Markup | str:
    """A point in time: UTC, which the page's script turns into the reader's zone."""
    if value is None:
        return empty
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M UTC")
    )


def with_code(text: str) -> Markup:
    """A sentence of ours, with the parts between backticks as code."""
    parts = visible(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def duration(value: timedelta | None) -> str:
    """`3 s`, `12 min`, `5 h`, `2 d`."""
    if value is None:
        return ""
    seconds = max(0, round(value.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def number(value: float | None) -> str:
    """With a narrow space between thousands."""
    if value is None:
        return ""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return text.replace(",", "\u202f")


def money(value: float | None) -> str:
    """In the currency of LLM_PRICES, which the service does not know."""
    return f"{value or 0.0:,.4f}".replace(",", "\u202f")


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)


def bars(values: Sequence[float], width: int = 280, height: int = 48) -> Sequence[dict[str, float]]:
    """Rectangles of a bar chart, the highest as high as the chart. Zero is a line of one pixel."""
    top = max([*values, 1])
    step = width / max(len(values), 1)
    return [
        {
            "x": round(index * step, 2),
            "y": round(height - max(1.0, value / top * height), 2),
            "width": round(max(step - 2, 1), 2),
            "height": round(max(1.0, value / top * height), 2),
        }
        for index, value in enumerate(values)
    ]
