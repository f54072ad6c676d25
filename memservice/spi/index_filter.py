"""The filter of indexes: a fixed set of conditions. The service applies all other conditions to the
results."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from msgspec import Struct


class IndexFilter(Struct, frozen=True):
    """Conditions on indexed rows, ANDed; None = no condition. A tuple means any of its values, at
    most 1,000; an empty one matches nothing. Values are keys (`levels`: names). `since` and `until`
    are inclusive bounds on the row's `created_at`."""

    sessions: tuple[int, ...] | None = None
    authors: tuple[int, ...] | None = None
    observers: tuple[int, ...] | None = None
    observed: tuple[int, ...] | None = None
    levels: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERYTHING = IndexFilter()


class Indexed(Protocol):
    """The values of an indexed row that conditions use."""

    @property
    def session(self) -> int | None: ...
    @property
    def author(self) -> int | None: ...
    @property
    def observer(self) -> int | None: ...
    @property
    def observed(self) -> int | None: ...
    @property
    def level(self) -> str | None: ...
    @property
    def at(self) -> datetime | None: ...


def fits(row: Indexed, index_filter: IndexFilter) -> bool:
    """Whether the row satisfies every condition: the meaning of `IndexFilter`. A row without the
    value of a condition does not."""
    return (
        (index_filter.sessions is None or row.session in index_filter.sessions)
        and (index_filter.authors is None or row.author in index_filter.authors)
        and (index_filter.observers is None or row.observer in index_filter.observers)
        and (index_filter.observed is None or row.observed in index_filter.observed)
        and (index_filter.levels is None or row.level in index_filter.levels)
        and (index_filter.since is None or (row.at is not None and row.at >= index_filter.since))
        and (index_filter.until is None or (row.at is not None and row.at <= index_filter.until))
    )


def matches_nothing(index_filter: IndexFilter) -> bool:
    """Whether a condition has an empty tuple: then no row fits, and no query is needed."""
    return () in (
        index_filter.sessions,
        index_filter.authors,
        index_filter.observers,
        index_filter.observed,
        index_filter.levels,
    )
