"""What was known at a time: which conclusions, messages and summaries a read `as_of` that time may
use.

The time of recording counts (`Conclusion.created_at`, `Message.stored_at`), not the time at which
something was said: a conversation that was imported on 5 March was not known on 3 March. What was
deleted since is never returned.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import Condition, all_of, equals, matches
from memservice.domain.filters.ast import Any_, Compare, Not
from memservice.domain.records import LIVE, SUPERSEDED, Conclusion, Message, Session
from memservice.domain.times import parse_iso
from memservice.runtime import Runtime
from memservice.services.paging import Page, Paging, read_page
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

ARGUMENT = "as_of"
FORMS = "a time with a zone, such as 2026-03-03T12:00:00Z, or a date, such as 2026-03-03"

MAX_MERGED = 2_000
"""Rows of each state that a listing reads at most to merge them."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONE = re.compile(r"(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2}){0,2})$")


def parse(rt: Runtime, text: str | None) -> datetime | None:
    """The time that a caller wrote; None for none. A date is the end of that day in UTC; today is
    now. Raises `InvalidInput` for a time in the future, one without a zone, and any other text."""
    if text is None:
        return None
    now = rt.clock()
    try:
        time = parse_iso(text)
    except ValueError:
        raise _refused(f"Write {FORMS}") from None
    if _DAY.fullmatch(text):
        if time.date() == now.date():
            return now
        if time.date() < now.date():
            return time + timedelta(days=1, microseconds=-1)
    elif not _ZONE.search(text):
        raise _refused(f"The time has no zone: write {FORMS}")
    if time > now:
        raise _refused("The time is in the future: write a time that has passed")
    return time


def _refused(message: str) -> InvalidInput:
    return InvalidInput.at(ARGUMENT, message=message)


def recorded(moment: datetime) -> Condition:
    """Conclusions that were recorded at or before a time."""
    return Compare("created_at", "lte", moment)


def standing(tx: Transaction, workspace_key: int, moment: datetime) -> Condition:
    """Conclusions that were recorded at or before a time, and not superseded then. A superseded one
    of which the time is not known does not match."""
    return all_of(_recorded_without_lapse(tx, workspace_key, moment), Any_(_states(moment)))


def _recorded_without_lapse(tx: Transaction, workspace_key: int, moment: datetime) -> Condition:
    lapsed = _lapsed(tx, workspace_key, moment)
    return all_of(recorded(moment), *([Not(equals(key=lapsed))] if lapsed else []))


def _states(moment: datetime) -> tuple[Condition, Condition]:
    superseded_later = Compare("superseded_at", "gt", moment)
    return equals(state=LIVE), all_of(equals(state=SUPERSEDED), superseded_later)


def standing_page(
    tx: Transaction,
    workspace_key: int,
    moment: datetime,
    matching: Condition,
    paging: Paging,
    order: Sequence[Order],
) -> Page[Conclusion]:
    """A page of the conclusions that stood at a time and match. `order`: by `created_at` and then
    `key`. Pages up to the row `MAX_MERGED` are read by an index, one query for each state."""
    own = all_of(
        equals(workspace_key=workspace_key),
        _recorded_without_lapse(tx, workspace_key, moment),
        matching,
    )
    states = _states(moment)

    def count() -> int:
        return sum(tx.rows.count(Conclusion, all_of(state, own)) for state in states)

    def rows() -> list[Conclusion]:
        end = paging.offset + paging.size
        if end > MAX_MERGED:
            both = all_of(own, Any_(states))
            return tx.rows.page(Conclusion, both, order, paging.size, paging.offset)
        parts = [tx.rows.page(Conclusion, all_of(state, own), order, end) for state in states]
        merged = heapq.merge(
            *parts, key=lambda row: (row.created_at, row.key), reverse=order[0].descending
        )
        return list(islice(merged, paging.offset, end))

    return read_page(paging, rows, count)


def _lapsed(tx: Transaction, workspace_key: int, moment: datetime) -> tuple[int, ...]:
    """Keys of the conclusions that were superseded at a time and restored later. Reads those that
    were restored since, which are few."""
    restored = all_of(
        equals(workspace_key=workspace_key), Compare("restored_at", "gt", moment), recorded(moment)
    )
    return tuple(
        row.key
        for row in tx.rows.page(Conclusion, restored)
        if any(start <= moment < end for start, end in row.lapses)
    )


def superseded(moment: datetime | None) -> Condition:
    """Conclusions that are superseded, or that were at a time."""
    rows = equals(state=SUPERSEDED)
    return rows if moment is None else all_of(rows, Not(Compare("superseded_at", "gt", moment)))


def messages(moment: datetime) -> Condition:
    """Messages that were stored at or before a time. Of those without a time of storage, the time
    of the message counts."""
    return Any_(
        (
            Compare("stored_at", "lte", moment),
            all_of(equals(stored_at=None), Compare("created_at", "lte", moment)),
        )
    )


def extent(tx: Transaction, session: Session, moment: datetime | None) -> tuple[int, int]:
    """How many messages a session had at a time, and how many tokens they have together."""
    if moment is None:
        return session.message_count, session.token_total
    newest = tx.messages.page(session.key, messages(moment), reverse=True, limit=1)
    return (newest[0].seq, newest[0].tokens_through) if newest else (0, 0)


def only_stored(rows: Sequence[Message], moment: datetime | None) -> Sequence[Message]:
    """Those of these messages that were stored at or before a time."""
    if moment is None:
        return rows
    condition = messages(moment)
    return [row for row in rows if matches(row, condition)]
