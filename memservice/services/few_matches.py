"""Where the few messages of a session are that match a caller's filter.

A page that is not full is known to be so only after all messages were tested. A process remembers
the positions of such matches, by the same rule as totals (`matching_totals`), and tests only what
was added since.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence

from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import ACTIVE, Message, Session
from memservice.runtime import FewMatches, Runtime
from memservice.services.matching_totals import MAX_TOTALS, name_of, stands
from memservice.services.paging import Page, Paging
from memservice.spi.storage import Transaction

MAX_MATCHES = 100
"""Matches whose positions are remembered: the largest page."""


def page_of_few(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    filters: object,
    condition: Condition,
    paging: Paging,
) -> Page[Message] | None:
    """The page of a filter whose few matches this process remembers; else None. `session`: its row
    as `tx` has read it, or as it was shortly before."""
    few = rt.matches.few.get(name_of(session, filters))
    if few is None or not stands(few, session):
        return None
    seqs = few.seqs
    if few.through < session.message_count:
        added = _added(rt, tx, session, filters, condition, few)
        if added is None:
            return None
        seqs = added
    first = slice(paging.offset, paging.offset + paging.size)
    chosen = tuple((seqs[::-1] if paging.reverse else seqs)[first])
    items: Sequence[Message] = ()
    if chosen:
        # A message may have changed since the session was read.
        still_matching = all_of(equals(seq=chosen), condition)
        items = tx.messages.page(session.key, still_matching, paging.reverse, len(chosen))
    if len(items) < len(chosen):
        return None
    return Page(items, len(seqs), paging.page, paging.size)


def remember(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    filters: object,
    seqs: Sequence[int],
    counted_at: float | None = None,
) -> bool:
    """Remember that the messages at these positions are all that match, unless there are too many
    or the session has changed since its row was read. Returns whether they are all."""
    if session.state != ACTIVE or len(seqs) > MAX_MATCHES:
        return False
    # Both numbers only rise, so what was read between two equal readings is of one state.
    now = tx.sessions.by_key(session.key)
    state = session.message_count, session.revision
    if now is None or (now.message_count, now.revision) != state:
        return False
    if len(rt.matches.few) >= MAX_TOTALS:
        rt.matches.few.clear()
    at = time.monotonic() if counted_at is None else counted_at
    few = FewMatches(array("q", sorted(seqs)), *state, at)
    rt.matches.few[name_of(session, filters)] = few
    return True


def _added(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    filters: object,
    condition: Condition,
    few: FewMatches,
) -> Sequence[int] | None:
    """The positions with those of matches that were added; None if this is not known."""
    later = all_of(Compare("seq", "gt", few.through), condition)
    added = tx.messages.page(session.key, later, limit=MAX_MATCHES + 1)
    seqs = [*few.seqs, *(message.seq for message in added)]
    return seqs if remember(rt, tx, session, filters, seqs, few.counted_at) else None
