"""The closed record by which an index may be narrowed. What does not fit is filtered by the service afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
