"""Positions of the remaining messages of a session: dense again after some were erased, with the
sums of tokens and the join and leave marks of members."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import PENDING, Member, Message, Session, Task
from memservice.runtime import Runtime
from memservice.services.tasks import outbox
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

BATCH_SIZE = 1_000
"""Maximum number of messages per transaction."""


class Progress(Struct, frozen=True):
    after: int
    """Position of the last message that is done, as it was before."""
    seq: int
    """Its new position."""
    tokens: int
    """Its new `tokens_through`."""


def repack(rt: Runtime, tx: Transaction, session: Session, first: int) -> None:
    """Close the gap at position `first` of a session whose row is locked, or sum the tokens from
    there again: now if few messages follow, else by a task. Only one task at a time changes the
    positions of a session."""
    task = outbox.repack(rt, session, first)
    waiting = tx.rows.get(Task, equals(unit=task.unit, state=PENDING))
    if waiting is None and session.message_count - first < BATCH_SIZE:
        progress: Progress | None = start(tx, session, first)
        while progress is not None:
            progress = step(tx, session, progress)
    else:
        tx.tasks.add([task])


def start(tx: Transaction, session: Session, first: int) -> Progress:
    """The progress before the gap at position `first`."""
    earlier = all_of(equals(session_key=session.key), Compare("seq", "lt", first))
    before = tx.rows.page(Message, earlier, (Order("seq", descending=True),), 1)
    if not before:
        return Progress(0, 0, 0)
    return Progress(before[0].seq, before[0].seq, before[0].tokens_through)


def progress_of(task: Task) -> Progress | None:
    """The progress that is stored with a task; None before its first step."""
    stored = task.payload.get("progress")
    return None if stored is None else Progress(**stored)


def with_progress(task: Task, progress: Progress) -> Task:
    return replace(task, payload={**task.payload, "progress": asdict(progress)})


def step(
    tx: Transaction, session: Session, progress: Progress, limit: int | None = None
) -> Progress | None:
    """Renumber the next messages of a session whose row is locked: at most `limit` (default:
    `BATCH_SIZE`). None after the last one: then the session has its new counts."""
    limit = limit or BATCH_SIZE
    span = tx.messages.span(session.key, progress.after, limit)
    seq, tokens = progress.seq + span.messages, progress.tokens + span.tokens
    if span.messages:
        if span.last != seq:
            _move_marks(tx, session, progress, span.last)
        # Also without a gap: a message may have other tokens.
        tx.messages.renumber(session.key, progress.after, limit, progress.seq, progress.tokens)
        progress = Progress(span.last, seq, tokens)
    if span.messages == limit:
        return progress
    for field in MARKS:
        beyond = all_of(equals(session_key=session.key), Compare(field, "gt", progress.seq))
        tx.rows.change(Member, beyond, **{field: progress.seq})
    # Also without a message after the gap: positions beyond the last one become free for others.
    tx.messages.revise(session.key, freed=seq - session.message_count)
    # Only these two: the row has a newer revision than `session`.
    tx.rows.change(Session, equals(key=session.key), message_count=seq, token_total=tokens)
    return None


JOINED, LEFT = MARKS = ("joined_seq", "left_seq")
"""The fields of a member with positions."""


def _move_marks(tx: Transaction, session: Session, progress: Progress, last: int) -> None:
    """Move the marks within a batch, in the transaction that moves its messages: nobody may read
    a message from before joining or after leaving, not even for a moment."""
    own = equals(session_key=session.key)
    for field in MARKS:
        within = all_of(own, Compare(field, "gt", progress.after), Compare(field, "lte", last))
        marks = {getattr(member, field) for member in tx.rows.page(Member, within)}
        # In rising order: a moved mark is below the ones that are not moved yet.
        for mark in sorted(marks):
            remaining = tx.messages.count(session.key, _between(progress.after, mark))
            here = all_of(own, equals(**{field: mark}))
            tx.rows.change(Member, here, **{field: progress.seq + remaining})


def _between(after: int, last: int) -> Condition:
    return all_of(Compare("seq", "gt", after), Compare("seq", "lte", last))
