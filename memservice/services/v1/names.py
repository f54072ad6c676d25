"""Names in the first generation: free text, and changeable; the id of the other generations is made
from it once."""

from __future__ import annotations

from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.values import name_problem, strip_nul
from memservice.services.validation import Argument

NEW_NAME_MAX = 100
NAME_MAX = 512
"""Of a name that something is renamed to, or that another generation gave."""


def wanted(name: str) -> str:
    """A name that something is looked for by, as it would be stored: of any length, for it may have
    been given elsewhere."""
    stored: str = strip_nul(name)
    return stored


def new_name(name: str, argument: Argument) -> str:
    """A name that something is created with, as it is stored."""
    stored: str = strip_nul(name)
    if not stored:
        raise InvalidInput(
            Problem(argument, "String should have at least 1 character", "string_too_short")
        )
    if len(stored) > NEW_NAME_MAX:
        raise InvalidInput(
            Problem(
                argument, f"String should have at most {NEW_NAME_MAX} characters", "string_too_long"
            )
        )
    return stored


def changed_name(name: str | None, argument: Argument = ("name",)) -> str | None:
    """A name that something is renamed to, as it is stored; None leaves the present one. It may be
    empty."""
    if name is None:
        return None
    stored: str = strip_nul(name)
    if len(stored) > NAME_MAX:
        raise InvalidInput(
            Problem(
                argument, f"String should have at most {NAME_MAX} characters", "string_too_long"
            )
        )
    return stored


def slug_for(name: str, uid: str, taken: bool) -> str:
    """The id for the other generations: the name, if it can be one and is free; else the uid."""
    return uid if taken or name_problem(name) is not None else name


def could_be_slug(name: str) -> bool:
    return name_problem(name) is None
