"""Gaps in the positions of a session, opened for messages that were erased here and that an import
brings back: the reverse of `erasure.positions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.runtime import Runtime
from memservice.services.erasure import summaries
from memservice.services.erasure.positions import JOINED, MARKS
from memservice.services.tasks import outbox
from memservice.spi.storage import Transaction

BATCH_SIZE = 1_000
"""Maximum number of messages per transaction."""
HOLD = timedelta(minutes=5)
"""Time after which a task closes the gaps, unless the import says that it goes on (`hold`)."""
RENEWAL = timedelta(minutes=1)
"""How often an import says so."""
_STEPS = 50
"""Maximum number of steps per transaction."""
_OPENED = 100
"""Maximum number of sessions per transaction."""


class Gap(Struct, frozen=True):
    after: int
    """Position of the message before it; 0: there is none."""
    after_uid: str | None
    """Uid of that message."""
    messages: int
    """Number of messages for which it has room."""
    tokens: int
    """Sum of their tokens."""


class Mark(Struct, frozen=True):
    """A joining or leaving within the messages of a gap, or next to them."""

    after: int
    """`after` of the gap."""
    included: int
    """Number of messages of the gap before it."""


class Begun(Struct, frozen=True):
    task: r.Task
    """It closes what remains of the gaps."""
    count: int
    """Number of messages of the session before."""
    summaries: Mapping[str, r.Task]
    """By kind of a summary that was removed, because it lacks what comes back: the task that writes
    it again."""

    @property
    def tasks(self) -> list[r.Task]:
        return [self.task, *self.summaries.values()]


Marks = Mapping[tuple[int, str], Mark]
"""By key of a peer and name of the field (`positions.MARKS`)."""


class _Step(Struct, frozen=True):
    """Messages that move by the same distance."""

    after: int
    last: int
    by: int
    tokens: int


def begin(rt: Runtime, session: r.Session, gaps: Sequence[Gap]) -> Begun:
    """Make a session as long as it will be with these gaps, which are in rising order, so that new
    messages come after them.

    A task closes what remains of the gaps after `HOLD`. Until it is due, nothing else changes
    positions of the session. Raises Conflict if messages were erased meanwhile, or their positions
    are being closed.
    """
    return rt.storage.write(lambda tx: _begin(rt, tx, session, gaps))


def make_room(
    rt: Runtime, session: r.Session, gaps: Sequence[Gap], marks: Marks, begun: Begun
) -> None:
    """Move the messages of a session and the marks of its members, so that the positions in the
    gaps are free. The newest messages move first, in short transactions; their order is the same at
    every moment. `marks`: where members joined and left in the file. Raises Conflict if the gaps
    may have been closed."""
    sizes = {gap.after: gap.messages for gap in gaps}
    for steps in _batches(_steps(gaps, begun.count)):
        rt.storage.write(partial(_move, session, sizes, marks, steps, begun))


def hold(rt: Runtime, opened: Sequence[Begun]) -> None:
    """Keep the gaps open for another `HOLD`."""
    _change(rt, opened, rt.clock() + HOLD)


def require_open(tx: Transaction, begun: Begun) -> None:
    """Raises Conflict if the task that closes the gaps may have run."""
    if tx.rows.get(r.Task, equals(key=begun.task.key, state=r.PENDING), lock=True) is None:
        raise Conflict(
            "the import was interrupted for too long while it brought back what was erased here: "
            "import the file again"
        )


def close(rt: Runtime, opened: Sequence[Begun]) -> None:
    """The import failed: let the tasks close the gaps and write the summaries now."""
    _change(rt, opened, r.IMMEDIATELY)


def finish(rt: Runtime, opened: Sequence[Begun]) -> None:
    """The gaps are filled: remove the tasks that close them, and those for summaries that the
    import has stored. Call it when all rows are stored."""
    for start in range(0, len(opened), _OPENED):
        part = opened[start : start + _OPENED]
        rt.storage.write(lambda tx, part=part: _finish(tx, part))  # type: ignore[misc]


def _finish(tx: Transaction, opened: Sequence[Begun]) -> None:
    done: list[int] = []
    due: list[int] = []
    for begun in opened:
        done.append(begun.task.key)
        if begun.summaries:
            stored = tx.summaries.of_session(begun.task.session_key or 0)
            for kind, task in begun.summaries.items():
                (done if kind in stored else due).append(task.key)
    tx.rows.delete(r.Task, equals(key=tuple(done), state=r.PENDING))
    tx.rows.change(r.Task, equals(key=tuple(due), state=r.PENDING), not_before=r.IMMEDIATELY)


def _change(rt: Runtime, opened: Sequence[Begun], not_before: datetime) -> None:
    for start in range(0, len(opened), _OPENED):
        part = opened[start : start + _OPENED]
        keys = tuple(task.key for begun in part for task in begun.tasks)
        condition = equals(key=keys, state=r.PENDING)
        rt.storage.write(
            lambda tx, condition=condition: tx.rows.change(  # type: ignore[misc]
                r.Task, condition, not_before=not_before
            )
        )


def _begin(rt: Runtime, tx: Transaction, session: r.Session, gaps: Sequence[Gap]) -> Begun:
    locked = tx.sessions.by_key(session.key, lock=True)
    if locked is None or locked.state == r.DELETING:
        raise Conflict(f"the session {session.slug!r} was deleted while the import ran")
    task = outbox.repack(rt, locked, gaps[0].after + 1)
    if tx.rows.get(r.Task, equals(unit=task.unit, state=(r.PENDING, r.FAILED))) is not None:
        raise Conflict(
            f"positions of messages in the session {session.slug!r} still have gaps, after an "
            "erasure or an interrupted import: import the file again when a worker has closed "
            "them, at most five minutes after an interruption"
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
    covered = summaries.remove_from(tx, locked, gaps[0].after + 1)
    again = summaries.tasks_for(rt, tx, locked, covered)
    delayed = [replace(later, not_before=rt.clock() + HOLD) for later in (task, *again)]
    task, *again = tx.tasks.add(delayed)
    added = sum(gap.messages for gap in gaps)
    tx.sessions.save(
        replace(
            locked,
            message_count=locked.message_count + added,
            free_positions=locked.free_positions + added,
            token_total=locked.token_total + sum(gap.tokens for gap in gaps),
        )
    )
    kinds = {later.payload["kinds"][0]: later for later in again}
    return Begun(task, locked.message_count, kinds)


def _messages(tx: Transaction, session: r.Session, uids: Sequence[str | None]) -> list[r.Message]:
    messages: list[r.Message] = []
    requested = [uid for uid in uids if uid is not None]
    for start in range(0, len(requested), BATCH_SIZE):
        part = equals(session_key=session.key, uid=tuple(requested[start : start + BATCH_SIZE]))
        messages += tx.rows.page(r.Message, part)
    return messages


def _steps(gaps: Sequence[Gap], count: int) -> list[_Step]:
    """The steps for a session of `count` messages, the newest messages first. The last one is for
    the marks at the message before the first gap."""
    steps: list[_Step] = []
    last = count
    by, tokens = sum(gap.messages for gap in gaps), sum(gap.tokens for gap in gaps)
    for gap in reversed(gaps):
        while last > gap.after:
            after = max(gap.after, last - BATCH_SIZE)
            steps.append(_Step(after, last, by, tokens))
            last = after
        by, tokens = by - gap.messages, tokens - gap.tokens
    return [*steps, _Step(gaps[0].after - 1, gaps[0].after, 0, 0)]


def _batches(steps: Sequence[_Step]) -> Iterator[list[_Step]]:
    """The steps in batches of about `BATCH_SIZE` messages and at most `_STEPS` steps."""
    batch: list[_Step] = []
    messages = 0
    for step in steps:
        batch.append(step)
        messages += step.last - step.after
        if messages >= BATCH_SIZE or len(batch) == _STEPS:
            yield batch
            batch, messages = [], 0
    if batch:
        yield batch


def _move(
    session: r.Session,
    sizes: Mapping[int, int],
    marks: Marks,
    steps: Sequence[_Step],
    begun: Begun,
    tx: Transaction,
) -> None:
    tx.sessions.by_key(session.key, lock=True)
    require_open(tx, begun)
    for step in steps:
        if step.by:
            tx.messages.move_up(session.key, step.after, step.last, step.by, step.tokens)
        _move_marks(tx, session, sizes, marks, step)


def _move_marks(
    tx: Transaction, session: r.Session, sizes: Mapping[int, int], marks: Marks, step: _Step
) -> None:
    """Move the marks at the messages of a step. `sizes`: number of messages of each gap, by
    `after`."""
    # In the transaction that moves the messages: nobody may read a message from before joining or
    # after leaving, not even for a moment.
    for name in MARKS:
        within = all_of(
            equals(session_key=session.key),
            Compare(name, "gt", step.after),
            Compare(name, "lte", step.last),
        )
        keys_by_mark: dict[int, list[int]] = {}
        for member in tx.rows.page(r.Member, within):
            mark = getattr(member, name)
            mark_in_file = marks.get((member.peer_key, name))
            if mark_in_file is not None and mark_in_file.after == mark:
                included = mark_in_file.included
            else:
                # Nobody sees messages that come back without a sign that they were present.
                included = sizes.get(mark, 0) if name == JOINED else 0
            keys_by_mark.setdefault(mark + step.by + included, []).append(member.key)
        for mark, keys in keys_by_mark.items():
            tx.rows.change(r.Member, equals(key=tuple(keys)), **{name: mark})
