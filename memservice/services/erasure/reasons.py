"""Reasons of supersession that may quote an erased conclusion: a model that wrote one later could
read every conclusion of the pair. What a caller gave as a reason stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from memservice.domain.filters import equals
from memservice.domain.records import SUPERSEDED, Conclusion
from memservice.services import supersession
from memservice.services.erasure.erased import Erased
from memservice.services.supersession import BY_CALLER, FIXED_REASONS, REASON
from memservice.spi.storage import Transaction


def remove_later(tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Remove the reasons that were written after one of these conclusions, which are erased
    already, was stored."""
    since: dict[int, datetime] = {}
    for row in erased:
        stored = since.setdefault(row.collection_key, row.created_at)
        since[row.collection_key] = min(stored, row.created_at)
    for collection_key, first in since.items():
        remove_since(tx, collection_key, first)


def remove_since(tx: Transaction, collection_key: int, since: datetime) -> None:
    """Remove the reasons of a pair that were written from a time on."""
    _remove(tx, _written(tx, [collection_key], since, None))


def remove_left(tx: Transaction, erased: Erased, before: datetime) -> None:
    """The same for conclusions that were erased before, and reasons that were written before a
    time."""
    _remove(tx, _written(tx, erased.collections, erased.since, before))


def are_left(tx: Transaction, erased: Erased, before: datetime) -> bool:
    """Whether `remove_left` removes a reason."""
    return next(_written(tx, erased.collections, erased.since, before), None) is not None


def _remove(tx: Transaction, rows: Iterable[Conclusion]) -> None:
    for row in rows:
        internal = supersession.without_reason(row)
        tx.rows.change(Conclusion, equals(key=row.key), internal=internal)


def _written(
    tx: Transaction, collections: Iterable[int], since: datetime | None, before: datetime | None
) -> Iterator[Conclusion]:
    """Superseded conclusions of these pairs with a reason that somebody wrote from `since` on, and
    before `before` (None: at any time)."""
    for collection_key in sorted(collections):
        superseded = equals(collection_key=collection_key, state=SUPERSEDED)
        rows = [
            row
            for row in tx.rows.page(Conclusion, superseded)
            if row.internal.get(REASON) not in (None, *FIXED_REASONS)
            and not row.internal.get(BY_CALLER)
        ]
        keys = tuple({row.superseded_by for row in rows if row.superseded_by is not None})
        page = tx.rows.page(Conclusion, equals(key=keys)) if keys else []
        stored = {row.key: row.created_at for row in page}
        for row in rows:
            # `superseded_at` can be the time of a message, long before it was stored.
            times = (row.superseded_at, stored.get(row.superseded_by or 0))
            written = max((time for time in times if time is not None), default=row.created_at)
            if (since is None or written >= since) and (before is None or written < before):
                yield row
