"""`IndexFilter` as a filter of Qdrant, and the payload of points."""

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
    """The name of the space's tenant. A tenant is a workspace, which has one space in a
    collection."""
    return f"{space.workspace_key}/{space.key}"


def micros(at: datetime) -> int:
    """Whole microseconds since 1970. Bounds are sent as doubles, which represent them exactly until
    the year 2255."""
    return (at - _EPOCH) // _MICROSECOND


def payload_of(space: Space, row: VectorRow) -> dict[str, Any]:
    """The payload of the row's point. Missing attributes are omitted: a condition on them is
    false."""
    payload = {
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
    return {name: value for name, value in payload.items() if value is not None}


def of_space(
    space: Space, index_filter: IndexFilter = EVERYTHING, *more_conditions: models.Condition
) -> models.Filter:
    """A filter for the points of this space that match `index_filter` and `more_conditions`. No
    any-of condition may be empty. The tenant's condition always comes first."""
    must: list[models.Condition] = [
        models.FieldCondition(key=TENANT, match=models.MatchValue(value=tenant_of(space)))
    ]
    any_of: tuple[tuple[str, Sequence[int] | Sequence[str] | None], ...] = (
        ("session", index_filter.sessions),
        ("author", index_filter.authors),
        ("observer", index_filter.observers),
        ("observed", index_filter.observed),
        ("level", index_filter.levels),
    )
    must += [
        models.FieldCondition(key=name, match=models.MatchAny(any=list(values)))  # type: ignore[arg-type]  # of one type each
        for name, values in any_of
        if values is not None
    ]
    if index_filter.since is not None or index_filter.until is not None:
        since, until = (
            None if bound is None else float(micros(bound))
            for bound in (index_filter.since, index_filter.until)
        )
        must.append(models.FieldCondition(key="at", range=models.Range(gte=since, lte=until)))
    return models.Filter(must=[*must, *more_conditions])
