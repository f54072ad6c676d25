"""Background work on rows that are erased: what waits is dropped, what is in progress stores
nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memservice.domain.filters import equals
from memservice.domain.records import (
    FAILED,
    PENDING,
    Conclusion,
    Lease,
    Message,
    Peer,
    Session,
    Task,
)
from memservice.services.tasks import kinds, outbox
from memservice.spi.storage import Transaction

_READERS = (kinds.REPRESENTATION, kinds.SUMMARY, kinds.DREAM, kinds.CARD, kinds.SCOPE_BACKFILL)
"""Work that writes what it concludes from texts, or copies of them."""


def interrupt_session(tx: Transaction, session: Session) -> None:
    """Take the leases of the work that reads the session's messages: it stores nothing, and starts
    again with the messages that remain. Call it before the session's row is locked, as a worker
    that stores results locks its lease first."""
    of_session = [str(session.workspace_key), str(session.key)]
    _interrupt(
        tx,
        lambda kind, about: (
            kind in (kinds.REPRESENTATION, kinds.SUMMARY) and about[:2] == of_session
        ),
    )


def interrupt_pairs(tx: Transaction, rows: Sequence[Conclusion] | Sequence[Task]) -> None:
    """The same for the work that reads the conclusions of the pairs of these rows."""
    pairs = {(str(row.workspace_key), str(row.observer_key), str(row.observed_key)) for row in rows}
    _interrupt(tx, lambda kind, about: kind in (kinds.DREAM, kinds.CARD) and tuple(about) in pairs)


def interrupt_peer(tx: Transaction, peer: Peer) -> None:
    """The same for the work that derives from, or concludes for or about, a peer."""
    workspace, key = str(peer.workspace_key), str(peer.key)
    of_peer = (kinds.REPRESENTATION, kinds.DREAM, kinds.CARD)
    _interrupt(
        tx,
        lambda kind, about: kind in of_peer and about[0] == workspace and key in about[1:],
    )


def interrupt_readers(tx: Transaction, workspace_key: int) -> None:
    """The same for all work that reads texts of a workspace. Call it after changes of texts are
    committed: a worker that took a lease during their transaction can have read them as they
    were."""
    workspace = [str(workspace_key)]
    _interrupt(tx, lambda kind, about: kind in _READERS and about[:1] == workspace)


def interrupt_embedding(tx: Transaction, workspace_key: int) -> None:
    """The same for the work that computes vectors of rows of a workspace."""
    _interrupt(tx, lambda kind, about: kind == kinds.EMBED and about[:1] == [str(workspace_key)])


def _interrupt(tx: Transaction, reads: Callable[[str, list[str]], bool]) -> None:
    units = []
    for lease in tx.tasks.leases():
        kind, *about = lease.unit.split(":")
        if reads(kind, about):
            units.append(lease.unit)
    if units:
        tx.rows.delete(Lease, equals(unit=tuple(units)))


def drop_tasks(tx: Transaction, session: Session, messages: Sequence[Message]) -> int:
    """Delete the tasks of these messages that may still run. Returns their number."""
    keys = tuple(message.key for message in messages)
    units = {outbox.summary_unit(session)}
    units |= {outbox.representation_unit(session, message.author_key) for message in messages}
    named = tuple(sorted(units))
    return sum(
        tx.rows.delete(Task, equals(unit=named, state=state, message_key=keys))
        for state in (PENDING, FAILED)
    )
