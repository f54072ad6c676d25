"""Gaps in the positions of a session, opened for messages that were erased here and that an import
brings back: the reverse of `erasure.positions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.runtime import Runtime
from memservice.services.erasure import summaries
from memservice.services.tasks import outbox
from memservice.spi.storage import Transaction

BATCH_SIZE = 1_000
"""Maximum number of messages per transaction."""
HOLD = timedelta(hours=1)
"""Time in which an import must fill the gaps. Then a task closes those that remain, also if the
process of the import was killed."""
JOINED, LEFT = "joined_seq", "left_seq"


@dataclass(frozen=True, slots=True)
class Gap:
    after: int
    """Position of the message before it; 0: there is none."""
    after_uid: str | None
    """Uid of that message."""
    messages: int
    """Number of messages for which it has room."""
    tokens: int
    """Sum of their tokens."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A joining or leaving within the messages of a gap, or next to them."""

    after: int
    """`after` of the gap."""
    included: int
    """Number of messages of the gap before it."""


@dataclass(frozen=True, slots=True)
class Begun:
    task: r.Task
    """It closes what remains of the gaps."""
    count: int
    """Number of messages of the session before."""
    summaries: frozenset[str]
    """Kinds of summary that were removed, because they lack what comes back."""


Marks = Mapping[tuple[int, str], Mark]
"""By key of a peer and name of the field (`JOINED` or `LEFT`)."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Messages that move by the same distance."""

    after: int
    last: int
    by: int
    tokens: int


def begin(rt: Runtime, session: r.Session, gaps: Sequence[Gap]) -> Begun:
    """Make a session as long as it will be with these gaps, which are in rising order, so that new
    messages come after them.

    A task closes what remains of the gaps. Until it is removed (`close`) or due, nothing else
    changes positions of the session. Raises Conflict if messages were erased meanwhile, or their
    positions are being closed.
    """
    return rt.storage.write(lambda tx: _begin(rt, tx, session, gaps))


def make_room(
    rt: Runtime, session: r.Session, gaps: Sequence[Gap], marks: Marks, count: int
) -> None:
    """Move the messages of a session that had `count`, and the marks of its members, so that the
    positions in the gaps are free. The newest messages move first, in short transactions; their
    order is the same at every moment. `marks`: where members joined and left in the file."""
    for step in _steps(gaps, count):
        rt.storage.write(lambda tx, step=step: _move(tx, session, gaps, marks, step))  # type: ignore[misc]


def require_open(tx: Transaction, task: r.Task) -> None:
    """Raises Conflict if the task that closes the gaps may have run."""
    if tx.rows.get(r.Task, equals(key=task.key, state=r.PENDING), lock=True) is None:
        raise Conflict(
            "the import took too long to bring back what was erased here: import the file again"
        )


def close(rt: Runtime, tasks: Sequence[r.Task], *, filled: bool) -> None:
    """Remove the tasks of gaps that were filled; without `filled`, let them run now."""
    condition = equals(key=tuple(task.key for task in tasks), state=r.PENDING)
    if filled:
        rt.storage.write(lambda tx: tx.rows.delete(r.Task, condition))
    else:
        rt.storage.write(lambda tx: tx.rows.change(r.Task, condition, not_before=r.IMMEDIATELY))


def _begin(rt: Runtime, tx: Transaction, session: r.Session, gaps: Sequence[Gap]) -> Begun:
    locked = tx.sessions.by_key(session.key, lock=True)
    if locked is None or locked.state == r.DELETING:
        raise Conflict(f"the session {session.slug!r} was deleted while the import ran")
    task = outbox.repack(rt, locked, gaps[0].after + 1)
    if tx.rows.get(r.Task, equals(unit=task.unit, state=(r.PENDING, r.FAILED))) is not None:
        raise Conflict(
            f"the positions of messages in the session {session.slug!r} are being closed after an "
            "erasure: import the file again when a worker has done it"
        )
    here = {
        message.uid: message.seq
        for message in _messages(tx, session, [gap.after_uid for gap in gaps])
    }
    if any(gap.after_uid and here.get(gap.after_uid) != gap.after for gap in gaps):
        raise Conflict(
            f"messages of the session {session.slug!r} were erased while the import ran: import "
            "the file again"
        )
    (task,) = tx.tasks.add([replace(task, not_before=rt.clock() + HOLD)])
    removed = summaries.remove_from(tx, locked, gaps[0].after + 1)
    tx.sessions.save(
        replace(
            locked,
            message_count=locked.message_count + sum(gap.messages for gap in gaps),
            token_total=locked.token_total + sum(gap.tokens for gap in gaps),
        )
    )
    return Begun(task, locked.message_count, frozenset(removed))


def _messages(tx: Transaction, session: r.Session, uids: Sequence[str | None]) -> list[r.Message]:
    found: list[r.Message] = []
    known = [uid for uid in uids if uid is not None]
    for start in range(0, len(known), BATCH_SIZE):
        part = equals(session_key=session.key, uid=tuple(known[start : start + BATCH_SIZE]))
        found += tx.rows.page(r.Message, part)
    return found


def _steps(gaps: Sequence[Gap], count: int) -> list[_Step]:
    """The steps for a session of `count` messages, the newest messages first. The last one is for
    the marks at the message before the first gap."""
    steps: list[_Step] = []
    last = count
    for number in range(len(gaps), 0, -1):
        by = sum(gap.messages for gap in gaps[:number])
        tokens = sum(gap.tokens for gap in gaps[:number])
        while last > gaps[number - 1].after:
            after = max(gaps[number - 1].after, last - BATCH_SIZE)
            steps.append(_Step(after, last, by, tokens))
            last = after
    return [*steps, _Step(gaps[0].after - 1, gaps[0].after, 0, 0)]


def _move(
    tx: Transaction, session: r.Session, gaps: Sequence[Gap], marks: Marks, step: _Step
) -> None:
    tx.sessions.by_key(session.key, lock=True)
    if step.by:
        tx.messages.move_up(session.key, step.after, step.last, step.by, step.tokens)
    rooms = {gap.after: gap.messages for gap in gaps}
    # In the transaction that moves the messages: nobody may read a message from before joining or
    # after leaving, not even for a moment.
    for name in (JOINED, LEFT):
        within = all_of(
            equals(session_key=session.key),
            Compare(name, "gt", step.after),
            Compare(name, "lte", step.last),
        )
        moved: dict[int, list[int]] = {}
        for member in tx.rows.page(r.Member, within):
            mark = getattr(member, name)
            known = marks.get((member.peer_key, name))
            if known is not None and known.after == mark:
                included = known.included
            else:
                # Nobody sees messages that come back without a sign that they were present.
                included = rooms.get(mark, 0) if name == JOINED else 0
            moved.setdefault(mark + step.by + included, []).append(member.key)
        for mark, keys in moved.items():
            tx.rows.change(r.Member, equals(key=tuple(keys)), **{name: mark})
