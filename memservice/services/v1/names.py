"""Names in generation 1: free text, and changeable. The id for the other generations is derived
from the name once."""

from __future__ import annotations

from memservice.domain.errors import InvalidInput, Problem
from memservice.domain.values import name_problem, strip_nul
from memservice.services.validation import Argument

NEW_NAME_MAX = 100
NAME_MAX = 512
"""Maximum length of a changed name, and of a name from another generation."""


def lookup_name(name: str) -> str:
    """The stored form of a name for a look-up, of any length, since another generation may have
    created it."""
    clean_name: str = strip_nul(name)
    return clean_name


def new_name(name: str, argument: Argument) -> str:
    """The stored form of the name of a new resource. Raises InvalidInput."""
    clean_name: str = strip_nul(name)
    if not clean_name:
        raise InvalidInput(
            Problem(argument, "String should have at least 1 character", "string_too_short")
        )
    if len(clean_name) > NEW_NAME_MAX:
        raise InvalidInput(
            Problem(
                argument, f"String should have at most {NEW_NAME_MAX} characters", "string_too_long"
            )
        )
    return clean_name


def changed_name(name: str | None, argument: Argument = ("name",)) -> str | None:
    """The stored form of a changed name; None: unchanged. It may be empty."""
    if name is None:
        return None
    clean_name: str = strip_nul(name)
    if len(clean_name) > NAME_MAX:
        raise InvalidInput(
            Problem(
                argument, f"String should have at most {NAME_MAX} characters", "string_too_long"
            )
        )
    return clean_name


def slug_for(name: str, uid: str, exists: bool) -> str:
    """The id for the other generations: the name, if it is a valid and free id; else the uid."""
    return uid if exists or name_problem(name) is not None else name


def is_valid_slug(name: str) -> bool:
    return name_problem(name) is None
