"""Every list, page by page and in both directions, for the scenarios of several published
clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


async def second_pages(
    door: Callable[..., Any],
    expected: Sequence[str],
    what: str,
    name: Callable[[Any], str] = lambda item: item.id,
) -> None:
    """The second page of two, in both directions, of a list that has these items."""
    assert len(expected) >= 3, what
    for order, options in (
        (expected, {}),
        (expected, {"reverse": False}),
        (expected[::-1], {"reverse": True}),
    ):
        page = await door(page=2, size=2, **options)
        assert (page.total, page.page, page.size, page.pages) == (
            len(expected),
            2,
            2,
            -(-len(expected) // 2),
        ), what
        assert [name(item) for item in page.items] == [*order[2:4]], f"{what}, {options}"
