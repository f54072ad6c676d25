"""How many messages of a session remain visible while peers are being erased.

Counting them reads the whole session, so a process counts once, and then only what was added since.
"""

from __future__ import annotations

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import Message, Session
from memservice.runtime import CountedMessages, Runtime
from memservice.services import visibility
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

MAX_SESSIONS = 1_000
"""Sessions whose numbers a process remembers."""


def visible_total(rt: Runtime, tx: Transaction, session: Session, erased: tuple[int, ...]) -> int:
    """Number of messages of a session without those of the peers with the keys `erased`."""
    visible = visibility.not_of(erased, "author_key")
    newest = _newest(tx, session, visible)
    if newest is None:
        return 0
    before = rt.visible_totals.get(session.key)
    if before is None or before.erased != erased or not _stands(tx, before):
        before = CountedMessages(erased, 0, 0, 0)
    total = before.total
    if newest.seq > before.seq:
        span = all_of(Compare("seq", "gt", before.seq), Compare("seq", "lte", newest.seq))
        total += tx.messages.count(session.key, all_of(span, visible))
    if len(rt.visible_totals) >= MAX_SESSIONS:
        rt.visible_totals.clear()
    rt.visible_totals[session.key] = CountedMessages(erased, newest.key, newest.seq, total)
    return total


def _stands(tx: Transaction, counted: CountedMessages) -> bool:
    """Whether the last counted message is where it was: then no gap before it was closed since."""
    positions = tx.messages.positions([counted.last], times=False)
    return any(position.seq == counted.seq for position in positions)


def _newest(tx: Transaction, session: Session, visible: Condition) -> Message | None:
    condition = all_of(equals(session_key=session.key), visible)
    messages = tx.rows.page(Message, condition, (Order("seq", descending=True),), 1)
    return messages[0] if messages else None
