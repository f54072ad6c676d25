"""How many random examples a property test tries."""

from __future__ import annotations

from hypothesis import settings

_OF_DEFAULT_PROFILE = 50


def examples(by_default: int) -> int:
    """The number of examples in the profile that runs, given the one in the default profile."""
    return max(5, by_default * settings().max_examples // _OF_DEFAULT_PROFILE)
