"""Notes of generation 1 (metamessages) with texts of the service: summaries and
representations."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import LONG, SHORT, Metamessage, Session
from memservice.services.v1 import metamessages
from memservice.spi.storage import Transaction


def is_representation(label: str) -> bool:
    return label == metamessages.REPRESENTATION_LABEL


def is_summary(label: str) -> bool:
    return label.startswith(metamessages.SUMMARY_LABEL)


def remove_representations(tx: Transaction, owners: Collection[int], before: datetime) -> None:
    """Remove the representations of these users that are not newer than a time: a representation
    does not name its conclusions, and may have them in other words."""
    if owners:
        tx.rows.delete(Metamessage, _representations(owners, before))


def representations_left(tx: Transaction, owners: Collection[int], before: datetime) -> bool:
    """Whether there are notes that `remove_representations` removes."""
    if not owners:
        return False
    return bool(tx.rows.count(Metamessage, _representations(owners, before), limit=1))


def _representations(owners: Collection[int], before: datetime) -> Condition:
    own = equals(owner_key=tuple(sorted(owners)), label=metamessages.REPRESENTATION_LABEL)
    return all_of(own, Compare("created_at", "lte", before))


def remove_summaries(tx: Transaction, session: Session, first: int) -> None:
    """Remove the summaries that cover position `first` of a session."""
    labels = tuple(metamessages.SUMMARY_LABEL + kind for kind in (SHORT, LONG))
    notes = tx.rows.page(Metamessage, equals(session_key=session.key, label=labels))
    covered = tx.messages.positions(
        sorted({note.message_key for note in notes if note.message_key is not None})
    )
    earlier = {position.key for position in covered if position.seq < first}
    stale = tuple(note.key for note in notes if note.message_key not in earlier)
    if stale:
        tx.rows.delete(Metamessage, equals(key=stale))
