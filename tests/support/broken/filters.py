"""A mistake in filters that text and vector indexes share."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from memservice.spi.index_filter import IndexFilter

if TYPE_CHECKING:
    pass


def empty_means_all(index_filter: IndexFilter) -> IndexFilter:
    """As `if index_filter.sessions:` does."""
    return replace(
        index_filter,
        **{
            each.name: None
            for each in fields(index_filter)
            if getattr(index_filter, each.name) == ()
        },
    )
