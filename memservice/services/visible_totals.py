"""How many messages of a session remain visible while peers are being erased.

The session's row tells how many messages are stored, so only those of the erased peers are counted:
they become fewer. A process counts them once, and then only what was added since.
"""

from __future__ import annotations

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import DELETING, Message, Session, Task
from memservice.runtime import CountedMessages, Runtime
from memservice.services import visibility
from memservice.services.tasks import kinds
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

MAX_SESSIONS = 1_000
"""Sessions whose numbers a process remembers."""


def visible_total(rt: Runtime, tx: Transaction, session: Session, erased: tuple[int, ...]) -> int:
    """Number of messages of a session without those of the peers with the keys `erased`. `tx`: a
    consistent transaction."""
    visible = visibility.not_of(erased, "author_key")
    newest = _newest(tx, session, visible)
    if newest is None:
        return 0
    before = rt.visible_totals.get(session.key)
    gap = _newest_gap(tx, session)
    is_same = before is not None and (before.erased, before.gap) == (erased, gap)
    if before is None or not is_same or not _stands(tx, before):
        total = _counted(tx, session, erased)
    else:
        total = before.total
        if newest.seq > before.seq:
            added = all_of(Compare("seq", "gt", before.seq), visible)
            total += tx.messages.count(session.key, added)
    if len(rt.visible_totals) >= MAX_SESSIONS:
        rt.visible_totals.clear()
    rt.visible_totals[session.key] = CountedMessages(erased, newest.key, newest.seq, total, gap)
    return total


def _counted(tx: Transaction, session: Session, erased: tuple[int, ...]) -> int:
    now = tx.sessions.by_key(session.key)  # `session` may be older than the transaction
    if now is None:
        return 0
    if now.state == DELETING:  # a copy that is still being made has a count before its messages
        return tx.messages.count(session.key, visibility.not_of(erased, "author_key"))
    # Without positions in the condition, an index that has the authors is enough.
    hidden = tx.messages.count(session.key, equals(author_key=erased))
    return now.message_count - now.free_positions - hidden


def _stands(tx: Transaction, counted: CountedMessages) -> bool:
    """Whether the last counted message is where it was: then no gap before it was closed since. A
    gap that is not closed yet has a task (`_newest_gap`)."""
    positions = tx.messages.positions([counted.last], times=False)
    return any(position.seq == counted.seq for position in positions)


def _newest_gap(tx: Transaction, session: Session) -> int:
    """Key of the newest task that closes a gap in a long session, done or not; 0 without one."""
    own = equals(workspace_key=session.workspace_key, kind=kinds.REPACK, session_key=session.key)
    tasks = tx.rows.page(Task, own, (Order("key", descending=True),), 1)
    return tasks[0].key if tasks else 0


def _newest(tx: Transaction, session: Session, visible: Condition) -> Message | None:
    condition = all_of(equals(session_key=session.key), visible)
    messages = tx.rows.page(Message, condition, (Order("seq", descending=True),), 1)
    return messages[0] if messages else None
