"""Tasks as operators see them: which there are, why some failed, and what is to become of them.

What a task is about is told by names; its payload, which may hold what users wrote, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Any_, Compare, Condition, Not
from memservice.domain.records import (
    DONE,
    FAILED,
    HELD,
    IMMEDIATELY,
    NEVER,
    PENDING,
    Peer,
    Session,
    Task,
    Workspace,
)
from memservice.runtime import Runtime
from memservice.services import workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.paging import Listing, Page, Paging, page_after, read_page
from memservice.services.tasks.kinds import DELETE_VECTORS, ERASE, WEBHOOK
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

STATES = (PENDING, DONE, FAILED, HELD)
BATCH_SIZE = 500
"""Tasks that are changed in one transaction."""
CANCELLED = "Cancelled: by an operator"
_OPTIONAL: Condition = Not(equals(kind=(ERASE, DELETE_VECTORS)))
"""Work that an operator may call off. Erasing what a caller deleted is none of it."""
CLAIM_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """A task, with the names of what it is about."""

    task: Task
    working: bool
    """Is its unit being worked on?"""
    workspace: str | None = None
    session: str | None = None
    observer: str | None = None
    observed: str | None = None

    @property
    def next_try_at(self) -> datetime | None:
        """When a pending task is due; None for other tasks, and for one that is due at once."""
        at = self.task.not_before
        return at if self.task.state == PENDING and IMMEDIATELY < at < NEVER else None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Tasks that have all of these; None for any."""

    workspace: str | None = None
    kind: str | None = None
    state: str | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """The background work of all workspaces."""

    due: int
    """Pending tasks that are due now."""
    timers: int
    """Pending tasks that become due later."""
    failed: int
    oldest: timedelta | None
    """How long the oldest due task has been due; None: nothing is due."""


@dataclass(frozen=True, slots=True)
class Retried:
    retried: int
    """How many tasks are to be tried again."""


def page(rt: Runtime, principal: Principal, which: JobFilter, paging: Paging) -> Page[Job]:
    """Newest first. Raises `NotFound` for a workspace that there is not."""
    _require(principal, which, Permission.VIEW)
    with rt.storage.read() as tx:
        condition = _condition(tx, which)
        return _page(rt, tx, condition, paging, "created_at")


def browse(
    rt: Runtime, principal: Principal, which: JobFilter, after: str | None = None
) -> Listing[Job]:
    """As `page`, continuing after a task."""
    _require(principal, which, Permission.VIEW)
    with rt.storage.read() as tx:
        listing = page_after(tx, Task, _condition(tx, which), after)
        return Listing(_described(rt, tx, listing.items), listing.after)


def failures(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    paging: Paging,
    *,
    retrying: bool = False,
) -> Page[Job]:
    """The workspace's tasks that failed permanently, and dreams that are held for review
    (`services.dream_changes`), the latest first. Undelivered events
    are the dead letters of their endpoint (`webhooks.dead_letters`), and not included. Empty for a
    workspace that does not exist.

    `retrying`: also pending tasks that failed or wait for a language model, and are tried again;
    then the newest task comes first.
    """
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        if workspace is None:
            return paging.empty()
        if retrying:
            return _page(rt, tx, _failed_or_retrying(workspace), paging, "created_at")
        return _page(rt, tx, _failed(workspace, HELD), paging, "finished_at")


def backlog(rt: Runtime, principal: Principal) -> Backlog:
    """Counts of the tasks that are not done."""
    policy.require_admin(principal, needs=Permission.VIEW)
    now = rt.clock()
    pending = equals(state=PENDING)
    due = all_of(pending, Compare("not_before", "lte", now))
    with rt.storage.read() as tx:
        # A task is due for as long as it could have been worked on, which `not_before` alone does
        # not say of one that never waited.
        oldest = tx.rows.page(Task, due, (Order("created_at"), Order("key")), 1)
        return Backlog(
            tx.rows.count(Task, due),
            tx.rows.count(Task, all_of(pending, Compare("not_before", "gt", now))),
            tx.rows.count(Task, equals(state=FAILED)),
            now - oldest[0].due_since if oldest else None,
        )


def show(rt: Runtime, principal: Principal, uid: str) -> Job:
    policy.require_admin(principal, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        task = tx.tasks.by_uid(uid)
        if task is None:
            raise _unknown(uid)
        return _described(rt, tx, [task])[0]


def about(rt: Runtime, task: Task) -> str:
    """What a task is about, by names, for the log: its workspace, session and peers."""
    with rt.storage.read() as tx:
        (job,) = _described(rt, tx, [task])
    names = {
        "workspace": job.workspace,
        "session": job.session,
        "observer": job.observer,
        "peer": job.observed,
    }
    return ", ".join(f"{kind} {name}" for kind, name in names.items() if name) or task.kind


def retry_failures(
    rt: Runtime, principal: Principal, workspace_id: str, uids: Sequence[str] | None = None
) -> int:
    """Give failed tasks of a workspace all their tries again: those of these ids, or all. Returns
    how many.

    Raises `NotFound` for an id that is none of the workspace's failures; then none is tried.
    """
    policy.require(principal, workspace_id, needs=Permission.MANAGE_JOBS)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
    if workspace is None:
        if uids is None:
            return 0
        raise workspaces.not_found(workspace_id)
    return _retry(rt, _failed(workspace), uids, f"among the failures of workspace {workspace_id}")


def retry(
    rt: Runtime, principal: Principal, which: JobFilter, uids: Sequence[str] | None = None
) -> int:
    """As `retry_failures`, for failed tasks of any kind and place."""
    _require(principal, which, Permission.MANAGE_JOBS)
    with rt.storage.read() as tx:
        condition = all_of(_condition(tx, which), equals(state=FAILED))
    return _retry(rt, condition, uids, "among the failed ones")


def cancel(
    rt: Runtime, principal: Principal, which: JobFilter, uids: Sequence[str] | None = None
) -> int:
    """Let pending tasks rest as failed, so that they are not done unless they are retried. Returns
    how many.

    Erasures stay: what was deleted is promised to go. Raises `NotFound` for an id that is none of a
    pending task that can be cancelled, and `Conflict` if a unit is being worked on: then what was
    cancelled before that stays cancelled.
    """
    _require(principal, which, Permission.MANAGE_JOBS)
    with rt.storage.read() as tx:
        condition = all_of(_condition(tx, which), equals(state=PENDING), _OPTIONAL)
        chosen = _chosen(tx, condition, uids, "among the pending ones that can be cancelled")
        units = list(dict.fromkeys(task.unit for task in chosen))
    keys = tuple(task.key for task in chosen)

    def cancel_in(unit: str) -> int:
        return rt.storage.write(lambda tx: _cancel(rt, tx, unit, keys))

    return sum(cancel_in(unit) for unit in units)


def purge(
    rt: Runtime, principal: Principal, which: JobFilter, before: datetime | None = None
) -> int:
    """Erase tasks that rest: failed ones, or what `which.state` says; only those that came to rest
    before then. Returns how many.

    Failed erasures stay, to be retried. Raises `Conflict` for pending tasks: what is not to be done
    is cancelled first.
    """
    _require(principal, which, Permission.MANAGE_JOBS)
    if which.state == PENDING:
        raise Conflict(
            "pending tasks are work that was promised: cancel them first, then purge the "
            "failed ones"
        )
    until = before or rt.clock()
    with rt.storage.read() as tx:
        condition = all_of(
            _condition(tx, which),
            equals(state=which.state or FAILED),
            Not(all_of(equals(state=FAILED), Not(_OPTIONAL))),
            Compare("finished_at", "lte", until),
        )

    def erase(tx: Transaction) -> int:
        keys = tuple(task.key for task in tx.rows.page(Task, condition, limit=BATCH_SIZE))
        return tx.rows.delete(Task, equals(key=keys)) if keys else 0

    return sum(_until_none(lambda: rt.storage.write(erase)))


def _require(principal: Principal, which: JobFilter, needs: Permission) -> None:
    if which.workspace is None:
        policy.require_admin(principal, needs=needs)
    else:
        policy.require(principal, which.workspace, needs=needs)


def _condition(tx: Transaction, which: JobFilter) -> Condition:
    given = {
        name: value
        for name in ("kind", "state", "unit")
        if (value := getattr(which, name)) is not None
    }
    if which.workspace is not None:
        workspace = tx.workspaces.by_slug(which.workspace)
        if workspace is None:
            raise workspaces.not_found(which.workspace)
        given["workspace_key"] = workspace.key
    return equals(**given)


def _failed(workspace: Workspace, *other_states: str) -> Condition:
    states = (FAILED, *other_states)
    return all_of(equals(workspace_key=workspace.key, state=states), Not(equals(kind=WEBHOOK)))


def _failed_or_retrying(workspace: Workspace) -> Condition:
    retrying = all_of(equals(state=PENDING), Not(equals(last_error=None)))
    return all_of(
        equals(workspace_key=workspace.key),
        Any_((equals(state=(FAILED, HELD)), retrying)),
        Not(equals(kind=WEBHOOK)),
    )


def _retry(rt: Runtime, condition: Condition, uids: Sequence[str] | None, among: str) -> int:
    began = rt.clock()
    if uids is not None:

        def these(tx: Transaction) -> int:
            return tx.tasks.retry([task.key for task in _chosen(tx, condition, uids, among)])

        return rt.storage.write(these)
    # Those that fail again meanwhile are not taken up a second time.
    old = all_of(condition, Compare("finished_at", "lte", began))

    def some(tx: Transaction) -> int:
        keys = [task.key for task in tx.rows.page(Task, old, limit=BATCH_SIZE)]
        return tx.tasks.retry(keys) if keys else 0

    return sum(_until_none(lambda: rt.storage.write(some)))


def _until_none(change: Callable[[], int]) -> Iterable[int]:
    while changed := change():
        yield changed


def _chosen(
    tx: Transaction, condition: Condition, uids: Sequence[str] | None, among: str
) -> list[Task]:
    if uids is None:
        return tx.rows.page(Task, condition)
    found = (
        {task.uid: task for task in tx.rows.page(Task, all_of(equals(uid=tuple(uids)), condition))}
        if uids
        else {}
    )
    for uid in uids:
        if uid not in found:
            raise _unknown(uid, among)
    return list(found.values())


def _cancel(rt: Runtime, tx: Transaction, unit: str, keys: Sequence[int]) -> int:
    # Claimed for the moment, so that nobody is at work on what is cancelled.
    now = rt.clock()
    lease = tx.tasks.claim(unit, "an operator", now, CLAIM_SECONDS)
    if lease is None:
        raise Conflict(
            f"the unit {unit} is being worked on: what is in hand cannot be cancelled; try "
            "again when it is done or has failed"
        )
    number = tx.rows.change(
        Task,
        equals(unit=unit, key=tuple(keys), state=PENDING),
        state=FAILED,
        last_error=CANCELLED,
        finished_at=now,
    )
    tx.tasks.release(lease)
    return number


def _page(rt: Runtime, tx: Transaction, condition: Condition, paging: Paging, by: str) -> Page[Job]:
    order = paging.order(by, newest_first=True)
    return read_page(
        paging,
        lambda: _described(
            rt, tx, tx.rows.page(Task, condition, order, paging.size, paging.offset)
        ),
        lambda: tx.rows.count(Task, condition),
    )


def _described(rt: Runtime, tx: Transaction, tasks: Sequence[Task]) -> list[Job]:
    now = rt.clock()
    held = {lease.unit for lease in tx.tasks.leases() if lease.expires_at > now}
    peers = _by_key(
        tx, Peer, [key for task in tasks for key in (task.observer_key, task.observed_key)]
    )
    sessions = _by_key(tx, Session, [task.session_key for task in tasks])
    places = _by_key(tx, Workspace, [task.workspace_key for task in tasks])
    return [
        Job(
            task,
            task.state == PENDING and task.unit in held,
            workspace=places.get(task.workspace_key),
            session=sessions.get(task.session_key),
            observer=peers.get(task.observer_key),
            observed=peers.get(task.observed_key),
        )
        for task in tasks
    ]


def _by_key(
    tx: Transaction, record: type[Peer | Session | Workspace], keys: Iterable[int | None]
) -> dict[int | None, str]:
    """The names of rows, by their keys."""
    wanted = tuple(sorted({key for key in keys if key is not None}))
    return {row.key: row.slug for row in tx.rows.page(record, equals(key=wanted))} if wanted else {}


def _unknown(uid: str, among: str = "") -> NotFound:
    return NotFound(f"Task {uid} not found{f' {among}' if among else ''}")
