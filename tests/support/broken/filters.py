"""A mistake in filters that text and vector indexes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from memservice.spi.index_filter import IndexFilter

if TYPE_CHECKING:
    pass


def empty_means_all(index_filter: IndexFilter) -> IndexFilter:
    """As `if index_filter.sessions:` does."""
    return replace(
        index_filter,
        **{name: None for name, value in asdict(index_filter).items() if value == ()},
    )
