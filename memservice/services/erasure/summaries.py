"""Summaries that cover erased messages: removed, and made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memservice.domain.configuration import resolve
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import Message, Session, Summary, Task
from memservice.runtime import Runtime
from memservice.services.erasure import notes
from memservice.services.tasks import outbox
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction


def remove(tx: Transaction, session: Session, messages: Sequence[Message]) -> dict[str, int]:
    """Remove the summaries that cover one of these messages, which still exist. Returns the last
    position that each covered, by kind."""
    return remove_from(tx, session, min(message.seq for message in messages))


def remove_from(tx: Transaction, session: Session, first: int) -> dict[str, int]:
    """The same for summaries that cover a position or later ones."""
    stored = tx.summaries.of_session(session.key)
    covered = {
        position.key: position.seq
        for position in tx.messages.positions([item.message_key for item in stored.values()])
    }
    last = session.message_count
    stale = {
        kind: covered.get(item.message_key, last)
        for kind, item in stored.items()
        if covered.get(item.message_key, last) >= first
    }
    if stale:
        tx.rows.delete(Summary, equals(session_key=session.key, kind=tuple(stale)))
    notes.remove_summaries(tx, session, first)
    return stale


def make_again(rt: Runtime, tx: Transaction, session: Session, covered: Mapping[str, int]) -> None:
    """Add the tasks that write summaries of the remaining messages up to these positions, by
    kind. Call it before the messages get new positions."""
    tx.tasks.add(tasks_for(rt, tx, session, covered))


def tasks_for(
    rt: Runtime, tx: Transaction, session: Session, covered: Mapping[str, int]
) -> list[Task]:
    """The tasks that `make_again` adds."""
    workspace = tx.workspaces.by_key(session.workspace_key)
    if workspace is None or not covered:
        return []
    config = resolve(rt.defaults, session.configuration, workspace.configuration)
    if not config.summary or outbox.is_switched_off(session):
        return []
    tasks: list[Task] = []
    for kind, last in covered.items():
        earlier = all_of(equals(session_key=session.key), Compare("seq", "lte", last))
        newest = tx.rows.page(Message, earlier, (Order("seq", descending=True),), 1)
        if newest:
            tasks.append(outbox.summary(rt, newest[0], [kind], config))
    return tasks


def are_waiting(tx: Transaction, session: Session) -> bool:
    """Whether a task that writes summaries of the session is waiting."""
    return bool(tx.tasks.pending(outbox.summary_unit(session)))
