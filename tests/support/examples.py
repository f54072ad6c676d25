"""How many random examples a property test tries."""

from __future__ import annotations

from hypothesis import settings


def examples(per_fifty: int) -> int:
    """The number of examples in the profile that runs, given the number in a profile of 50: tests
    whose examples are expensive take fewer, and those whose examples are cheap take more."""
    return max(5, per_fifty * settings().max_examples // 50)
