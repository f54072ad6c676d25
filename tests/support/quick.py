"""What the quick profile does not even collect."""

from __future__ import annotations

from collections.abc import Iterable

MARKER_EXPRESSION = "not heavy and not slow"
"""Selects the tests of the quick profile (scripts/test)."""


def is_quick(expression: str, arguments: Iterable[str]) -> bool:
    """Whether a run is one of the quick profile. One that names tests is not: they are to be found,
    and deselected with a reason."""
    return expression == MARKER_EXPRESSION and not any("::" in argument for argument in arguments)


def leaves_out(test: object) -> bool:
    """Whether a function or class is marked as slow or heavy."""
    marks = getattr(test, "pytestmark", [])
    names = {mark.name for mark in (marks if isinstance(marks, list) else [marks])}
    return not names.isdisjoint({"heavy", "slow"})
