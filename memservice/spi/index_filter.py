"""The closed record by which an index may be narrowed. What does not fit is filtered by the service afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions on indexed rows, ANDed; None = no condition. Each tuple means any of, at most 1,000 values; an empty one matches
    nothing. Values are keys (`levels`: names). `since` and `until` are inclusive bounds on the row's `created_at`."""

    sessions: tuple[int, ...] | None = None
    authors: tuple[int, ...] | None = None
    observers: tuple[int, ...] | None = None
    observed: tuple[int, ...] | None = None
    levels: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERYTHING = Where()


class Facts(Protocol):
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


def fits(row: Facts, where: Where) -> bool:
    """Does the row fit? The meaning of `Where`: a row without the value that a condition asks for does not fit."""
    return (
        (where.sessions is None or row.session in where.sessions)
        and (where.authors is None or row.author in where.authors)
        and (where.observers is None or row.observer in where.observers)
        and (where.observed is None or row.observed in where.observed)
        and (where.levels is None or row.level in where.levels)
        and (where.since is None or (row.at is not None and row.at >= where.since))
        and (where.until is None or (row.at is not None and row.at <= where.until))
    )


def admits_nothing(where: Where) -> bool:
    """Is one of the any-of conditions empty? Then no row fits, and no index need be asked."""
    return () in (where.sessions, where.authors, where.observers, where.observed, where.levels)
