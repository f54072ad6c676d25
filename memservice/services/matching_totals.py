"""How many messages of a session match a caller's filter.

Counting them tests every message of the session, so a process counts once, and then only what was
added since. The session's revision tells whether a message that was counted before has changed: a
change of the store that does not raise it makes totals wrong.
"""

from __future__ import annotations

import time
from hashlib import blake2b

from memservice.domain.filters import Condition, all_of
from memservice.domain.filters.ast import Compare
from memservice.domain.records import ACTIVE, Session
from memservice.runtime import CountedMatches, FewMatches, Runtime
from memservice.spi.storage import Transaction

MAX_TOTALS = 5_000
"""Totals that a process remembers: 1 to 2 MB."""
SECONDS = 600.0
"""How long added messages are counted to a total before all are counted again. No process hears
that the store was replaced by an older copy, in which a revision may have had other messages."""


def matching_total(
    rt: Runtime, tx: Transaction, session: Session, filters: object, condition: Condition
) -> int:
    """Number of messages of a session that match the condition that `filters` stand for. `session`:
    its row as `tx` has read it, or as it was shortly before."""
    if session.state != ACTIVE:  # a copy that is still being made has a count before its messages
        return tx.messages.count(session.key, condition)
    name = name_of(session, filters)
    before = rt.matches.totals.get(name)
    if before is None or not stands(before, session):
        after = _counted(tx, session, condition)
    elif before.through == session.message_count:
        return before.total
    else:
        after = _with_added(tx, session, condition, before)
    if after is None:
        return 0
    if len(rt.matches.totals) >= MAX_TOTALS:
        rt.matches.totals.clear()
    rt.matches.totals[name] = after
    return after.total


def name_of(session: Session, filters: object) -> tuple[str, bytes]:
    """The name under which a process remembers what matches a filter in a session."""
    # The uid, since a store that was emptied gives its keys again.
    # The text of the filter, since parsed conditions on 1 and on true are equal.
    return session.uid, blake2b(repr(filters).encode(), digest_size=16).digest()


def stands(before: CountedMatches | FewMatches, session: Session) -> bool:
    """Whether the messages that were counted are the first ones of the session now."""
    return (
        before.revision == session.revision
        and before.through <= session.message_count
        and time.monotonic() < before.counted_at + SECONDS
    )


def _counted(tx: Transaction, session: Session, condition: Condition) -> CountedMatches | None:
    """All matching messages; None if the session no longer exists."""
    now = time.monotonic()
    counted = tx.messages.counted(session.key, condition)
    return None if counted is None else CountedMatches(*counted, now)


def _with_added(
    tx: Transaction, session: Session, condition: Condition, before: CountedMatches
) -> CountedMatches | None:
    """What was counted, with what was added since."""
    added = tx.messages.counted(
        session.key, all_of(Compare("seq", "gt", before.through), condition)
    )
    if added is None:
        return None
    if added.revision != before.revision:  # a message changed since `session` was read
        return _counted(tx, session, condition)
    return CountedMatches(
        before.total + added.total, added.through, added.revision, before.counted_at
    )
