"""What a log may say of an error that nobody foresaw: its types and its places, not its text, which
may quote what users wrote."""

from __future__ import annotations

import traceback

MAX_CHAIN = 10


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and len(found) < MAX_CHAIN:
        found.append(step)
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)
    return found


def error_types(error: BaseException) -> list[str]:
    """The types of an error and its causes."""
    return [f"{type(step).__module__}.{type(step).__qualname__}" for step in _chain(error)]


def redacted_traceback(error: BaseException) -> str:
    """Where they were raised, without their texts."""
    return "".join(
        line for step in _chain(error) for line in traceback.format_tb(step.__traceback__)
    ).rstrip()
