"""`IndexFilter` in the server's words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from qdrant_client import models

from memservice.domain.records import Space
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.vectors import VectorRow
from memservice_qdrant.collections import TENANT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def tenant_of(space: Space) -> str:
    """The tenant is a workspace; within a collection it has one space."""
    return f"{space.workspace_key}/{space.key}"


def micros(at: datetime) -> int:
    """Whole microseconds, which the doubles that bounds are sent as hold exactly until the year
    2255."""
    return (at - _EPOCH) // _MICROSECOND


def payload_of(space: Space, row: VectorRow) -> dict[str, Any]:
    """What a point carries besides its vector; what the row does not have is left out, and no
    condition on it holds."""
    found = {
        TENANT: tenant_of(space),
        "key": row.key,
        "uid": row.uid,
        "session": row.session,
        "author": row.author,
        "observer": row.observer,
        "observed": row.observed,
        "level": row.level,
        "at": None if row.at is None else micros(row.at),
    }
    return {name: value for name, value in found.items() if value is not None}


def of_space(
    space: Space, index_filter: IndexFilter = EVERYTHING, *further: models.Condition
) -> models.Filter:
    """The points of this space that fit `index_filter` (no any-of of which is empty), and
    `further`. The tenant's condition always comes first."""
    must: list[models.Condition] = [
        models.FieldCondition(key=TENANT, match=models.MatchValue(value=tenant_of(space)))
    ]
    several: tuple[tuple[str, Sequence[int] | Sequence[str] | None], ...] = (
        ("session", index_filter.sessions),
        ("author", index_filter.authors),
        ("observer", index_filter.observers),
        ("observed", index_filter.observed),
        ("level", index_filter.levels),
    )
    must += [
        models.FieldCondition(key=name, match=models.MatchAny(any=list(values)))  # type: ignore[arg-type]  # of one type each
        for name, values in several
        if values is not None
    ]
    if index_filter.since is not None or index_filter.until is not None:
        since, until = (
            None if bound is None else float(micros(bound))
            for bound in (index_filter.since, index_filter.until)
        )
        must.append(models.FieldCondition(key="at", range=models.Range(gte=since, lte=until)))
    return models.Filter(must=[*must, *further])
