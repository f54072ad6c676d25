"""Notes of generation 1 (metamessages) with texts of the service: summaries and
representations."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import LONG, SHORT, Conclusion, Metamessage, Session
from memservice.services.v1 import metamessages
from memservice.spi.storage import Transaction

BATCH_SIZE = 500


def is_representation(label: str) -> bool:
    return label == metamessages.REPRESENTATION_LABEL


def is_summary(label: str) -> bool:
    return label.startswith(metamessages.SUMMARY_LABEL)


def remove_quoting(tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Remove the representations that quote one of these conclusions. Each note is of the user
    whom it is about."""
    texts: dict[int, set[str]] = {}
    for row in erased:
        for owner_key in (row.observer_key, row.observed_key):
            texts.setdefault(owner_key, set()).add(row.content)
    for owner_key, quotations in texts.items():
        own = equals(owner_key=owner_key, label=metamessages.REPRESENTATION_LABEL)
        after = 0
        while notes := tx.rows.page(
            Metamessage, all_of(own, Compare("key", "gt", after)), limit=BATCH_SIZE
        ):
            after = notes[-1].key
            quoting = tuple(
                note.key for note in notes if any(text in note.content for text in quotations)
            )
            if quoting:
                tx.rows.delete(Metamessage, equals(key=quoting))


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
