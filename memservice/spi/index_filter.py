"""The closed record by which an index may be narrowed. What does not fit is filtered by the service
afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """Conditions on indexed rows, ANDed; None = no condition. Each tuple means any of, at most
    1,000 values; an empty one matches nothing. Values are keys (`levels`: names). `since` and
    `until` are inclusive bounds on the row's `created_at`."""

    sessions: tuple[int, ...] | None = None
    authors: tuple[int, ...] | None = None
    observers: tuple[int, ...] | None = None
    observed: tuple[int, ...] | None = None
    levels: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERYTHING = IndexFilter()


class Indexed(Protocol):
    """What a condition may ask of an indexed row."""

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
    """Does the row fit? The meaning of `IndexFilter`: a row without the value that a condition asks
    for does not fit."""
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
    """Is one of the any-of conditions empty? Then no row fits, and no index need be asked."""
    return () in (
        index_filter.sessions,
        index_filter.authors,
        index_filter.observers,
        index_filter.observed,
        index_filter.levels,
    )
