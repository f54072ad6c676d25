"""What a log may contain of an unexpected error: its types and its traceback, but not its text,
which may quote users."""

from __future__ import annotations

import traceback

MAX_CHAIN = 10


def _chain(error: BaseException) -> list[BaseException]:
    errors: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and len(errors) < MAX_CHAIN:
        errors.append(step)
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)
    return errors


def error_types(error: BaseException) -> list[str]:
    """The types of an error and its causes, at most 10."""
    return [f"{type(step).__module__}.{type(step).__qualname__}" for step in _chain(error)]


def redacted_traceback(error: BaseException) -> str:
    """The traceback of an error and its causes, without their texts."""
    return "".join(
        line for step in _chain(error) for line in traceback.format_tb(step.__traceback__)
    ).rstrip()
