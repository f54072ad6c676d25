"""Tasks for operators: list, explain, retry, cancel and purge them.

The resources of a task are shown by name; its payload, which may contain users' texts, is not
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

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

WAITING = "waiting"
"""Of a pending task that becomes due later: a timer, a pause after a failure, a batch that is not
full."""
STATES = (PENDING, WAITING, DONE, FAILED, HELD)
"""Those that tasks can be selected by; `pending` includes `waiting`."""
BATCH_SIZE = 500
"""Number of tasks that are changed in one transaction."""
CANCELLED = "Cancelled: by an operator"
_OPTIONAL: Condition = Not(equals(kind=(ERASE, DELETE_VECTORS)))
"""Tasks that an operator may cancel. Erasing deleted data cannot be cancelled."""
CLAIM_SECONDS = 30.0
MAX_NAMES = 10_000
"""Names of resources that a process remembers for its log."""
MAX_COUNTED = 10_000
"""Tasks of one state that a backlog counts: this number means that there may be more."""


class Job(Struct, frozen=True):
    """A task, with the names of its resources."""

    task: Task
    working: bool
    """Whether a worker has its unit."""
    waits: bool = False
    """Whether it is pending and becomes due later."""
    workspace: str | None = None
    session: str | None = None
    observer: str | None = None
    observed: str | None = None

    @property
    def next_try_at(self) -> datetime | None:
        """When a pending task is due; None for other tasks, and for a task that is due
        immediately."""
        at = self.task.not_before
        return at if self.task.state == PENDING and IMMEDIATELY < at < NEVER else None


class JobFilter(Struct, frozen=True):
    """Selects tasks by all of these; None: any."""

    workspace: str | None = None
    kind: str | None = None
    state: str | None = None
    unit: str | None = None


class Backlog(Struct, frozen=True):
    """The background work of all workspaces."""

    due: int
    """Pending tasks that are due now."""
    timers: int
    """Pending tasks that become due later."""
    failed: int
    oldest: timedelta | None
    """Time since the oldest due task became due; None: no task is due."""


class Retried(Struct, frozen=True):
    retried: int
    """Number of tasks to be tried again."""


def page(rt: Runtime, principal: Principal, job_filter: JobFilter, paging: Paging) -> Page[Job]:
    """Newest first. Raises `NotFound` for an unknown workspace."""
    _require(principal, job_filter, Permission.VIEW)
    with rt.storage.read() as tx:
        condition = _condition(tx, job_filter, rt.clock())
        return _page(rt, tx, condition, paging, "created_at")


def browse(
    rt: Runtime, principal: Principal, job_filter: JobFilter, after: str | None = None
) -> Listing[Job]:
    """Like `page`, after the task `after`."""
    _require(principal, job_filter, Permission.VIEW)
    with rt.storage.read() as tx:
        listing = page_after(tx, Task, _condition(tx, job_filter, rt.clock()), after)
        return Listing(_jobs_of(rt, tx, listing.items), listing.after)


def failures(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    paging: Paging,
    *,
    retrying: bool = False,
) -> Page[Job]:
    """The workspace's tasks that failed permanently, and dreams that are held for review
    (`services.dream_changes`), the latest first. Undelivered events are the dead letters of their
    endpoint (`webhooks.dead_letters`), and not included. Empty for a workspace that does not exist.

    `retrying`: also pending tasks that failed, or wait for a language model, and will be tried
    again; then the newest task comes first.
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
    """Counts of the tasks that are not done, up to `MAX_COUNTED`. The cost does not depend on how
    many there are."""
    policy.require_admin(principal, needs=Permission.VIEW)
    now = rt.clock()
    pending = equals(state=PENDING)
    due = all_of(pending, Compare("not_before", "lte", now))
    timed = all_of(due, Compare("not_before", "gt", IMMEDIATELY))
    with rt.storage.read() as tx:
        # A task without a delay has been due since its creation, a timer since `not_before`. Each
        # of the two is the first entry of an index, however many tasks are pending.
        oldest = [
            *tx.rows.page(Task, all_of(pending, equals(not_before=IMMEDIATELY)), limit=1),
            *tx.rows.page(Task, timed, (Order("not_before"), Order("key")), 1),
        ]
        later = all_of(pending, Compare("not_before", "gt", now))
        # The time selects the index of failed tasks.
        failed = all_of(equals(state=FAILED), Compare("finished_at", "gt", IMMEDIATELY))
        return Backlog(
            tx.rows.count(Task, due, MAX_COUNTED),
            tx.rows.count(Task, later, MAX_COUNTED),
            tx.rows.count(Task, failed, MAX_COUNTED),
            now - min(task.due_since for task in oldest) if oldest else None,
        )


def show(rt: Runtime, principal: Principal, uid: str) -> Job:
    policy.require_admin(principal, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        task = tx.tasks.by_uid(uid)
        if task is None:
            raise _unknown(uid)
        return _jobs_of(rt, tx, [task])[0]


def about(rt: Runtime, task: Task) -> list[str]:
    """The resources of a task by name, for the log: `workspace=…`, `session=…`, `observer=…`,
    `observed=…`, those that it has."""
    keys: tuple[tuple[str, type[Peer | Session | Workspace], int | None], ...] = (
        ("workspace", Workspace, task.workspace_key),
        ("session", Session, task.session_key),
        ("observer", Peer, task.observer_key),
        ("observed", Peer, task.observed_key),
    )
    names = [(label, _name(rt, record, key)) for label, record, key in keys if key is not None]
    return [f"{label}={name}" for label, name in names if name]


def _name(rt: Runtime, record: type[Peer | Session | Workspace], key: int) -> str:
    """The name of a row; empty if it is gone. A name never changes, so each is read once."""
    name = rt.names.get((record, key))
    if name is None:
        with rt.storage.read() as tx:
            row = tx.rows.get(record, equals(key=key))
        if row is None:
            return ""
        if len(rt.names) >= MAX_NAMES:
            rt.names.clear()
        name = rt.names[record, key] = row.slug
    return name


def retry_failures(
    rt: Runtime, principal: Principal, workspace_id: str, uids: Sequence[str] | None = None
) -> int:
    """Retry failed tasks of a workspace, with all their tries: those with these uids, or all.
    Returns their number.

    Raises `NotFound` for a uid that is not a failure of the workspace; then none is retried.
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
    rt: Runtime, principal: Principal, job_filter: JobFilter, uids: Sequence[str] | None = None
) -> int:
    """Like `retry_failures`, for failed tasks of any kind and workspace."""
    _require(principal, job_filter, Permission.MANAGE_JOBS)
    with rt.storage.read() as tx:
        condition = all_of(_condition(tx, job_filter, rt.clock()), equals(state=FAILED))
    return _retry(rt, condition, uids, "among the failed ones")


def cancel(
    rt: Runtime, principal: Principal, job_filter: JobFilter, uids: Sequence[str] | None = None
) -> int:
    """Mark pending tasks as failed, so that they run only if they are retried. Returns their
    number.

    Erasures cannot be cancelled: deleted data must be erased. Raises `NotFound` for a uid that is
    not a pending task that can be cancelled, and `Conflict` if a worker has the unit: tasks
    cancelled before that remain cancelled.
    """
    _require(principal, job_filter, Permission.MANAGE_JOBS)
    with rt.storage.read() as tx:
        condition = all_of(_condition(tx, job_filter, rt.clock()), equals(state=PENDING), _OPTIONAL)
        chosen = _select(tx, condition, uids, "among the pending ones that can be cancelled")
        units = list(dict.fromkeys(task.unit for task in chosen))
    keys = tuple(task.key for task in chosen)

    def cancel_in(unit: str) -> int:
        return rt.storage.write(lambda tx: _cancel(rt, tx, unit, keys))

    return sum(cancel_in(unit) for unit in units)


def purge(
    rt: Runtime, principal: Principal, job_filter: JobFilter, before: datetime | None = None
) -> int:
    """Delete finished tasks: failed ones, or those in the state `job_filter.state`; with `before`,
    only those that finished before then. Returns their number.

    Failed erasures remain, to be retried. Raises `Conflict` for pending tasks, which must be
    cancelled first.
    """
    _require(principal, job_filter, Permission.MANAGE_JOBS)
    if job_filter.state in (PENDING, WAITING):
        raise Conflict(
            "pending tasks cannot be purged: cancel them first, then purge the failed ones"
        )
    until = before or rt.clock()
    with rt.storage.read() as tx:
        condition = all_of(
            _condition(tx, job_filter, rt.clock()),
            equals(state=job_filter.state or FAILED),
            Not(all_of(equals(state=FAILED), Not(_OPTIONAL))),
            Compare("finished_at", "lte", until),
        )

    def erase(tx: Transaction) -> int:
        keys = tuple(task.key for task in tx.rows.page(Task, condition, limit=BATCH_SIZE))
        return tx.rows.delete(Task, equals(key=keys)) if keys else 0

    return sum(_until_none(lambda: rt.storage.write(erase)))


def _require(principal: Principal, job_filter: JobFilter, needs: Permission) -> None:
    if job_filter.workspace is None:
        policy.require_admin(principal, needs=needs)
    else:
        policy.require(principal, job_filter.workspace, needs=needs)


def _condition(tx: Transaction, job_filter: JobFilter, now: datetime) -> Condition:
    values = {
        name: value
        for name in ("kind", "state", "unit")
        if (value := getattr(job_filter, name)) is not None
    }
    later: list[Condition] = []
    if job_filter.state == WAITING:
        values["state"] = PENDING
        later = [Compare("not_before", "gt", now)]
    if job_filter.workspace is not None:
        values["workspace_key"] = workspaces.require(tx, job_filter.workspace).key
    return all_of(equals(**values), *later)


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

        def retry_chosen(tx: Transaction) -> int:
            return tx.tasks.retry([task.key for task in _select(tx, condition, uids, among)])

        return rt.storage.write(retry_chosen)
    # A task that fails again during the loop is not retried a second time.
    failed_before = all_of(condition, Compare("finished_at", "lte", began))

    def retry_batch(tx: Transaction) -> int:
        keys = [task.key for task in tx.rows.page(Task, failed_before, limit=BATCH_SIZE)]
        return tx.tasks.retry(keys) if keys else 0

    return sum(_until_none(lambda: rt.storage.write(retry_batch)))


def _until_none(change: Callable[[], int]) -> Iterable[int]:
    while changed := change():
        yield changed


def _select(
    tx: Transaction, condition: Condition, uids: Sequence[str] | None, among: str
) -> list[Task]:
    if uids is None:
        return tx.rows.page(Task, condition)
    tasks = (
        {task.uid: task for task in tx.rows.page(Task, all_of(equals(uid=tuple(uids)), condition))}
        if uids
        else {}
    )
    for uid in uids:
        if uid not in tasks:
            raise _unknown(uid, among)
    return list(tasks.values())


def _cancel(rt: Runtime, tx: Transaction, unit: str, keys: Sequence[int]) -> int:
    # Claim the unit, so that no worker has a task that is cancelled.
    now = rt.clock()
    lease = tx.tasks.claim(unit, "an operator", now, CLAIM_SECONDS)
    if lease is None:
        raise Conflict(
            f"a worker has the unit {unit}: its tasks cannot be cancelled; try again when "
            "they are done or have failed"
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
        lambda: _jobs_of(rt, tx, tx.rows.page(Task, condition, order, paging.size, paging.offset)),
        lambda: tx.rows.count(Task, condition),
    )


def _jobs_of(rt: Runtime, tx: Transaction, tasks: Sequence[Task]) -> list[Job]:
    now = rt.clock()
    claimed_units = {lease.unit for lease in tx.tasks.leases() if lease.expires_at > now}
    peers = _by_key(
        tx, Peer, [key for task in tasks for key in (task.observer_key, task.observed_key)]
    )
    sessions = _by_key(tx, Session, [task.session_key for task in tasks])
    workspaces_by_key = _by_key(tx, Workspace, [task.workspace_key for task in tasks])
    return [
        Job(
            task,
            task.state == PENDING and task.unit in claimed_units,
            task.state == PENDING and task.unit not in claimed_units and task.not_before > now,
            workspace=workspaces_by_key.get(task.workspace_key),
            session=sessions.get(task.session_key),
            observer=peers.get(task.observer_key),
            observed=peers.get(task.observed_key),
        )
        for task in tasks
    ]


def _by_key(
    tx: Transaction, record: type[Peer | Session | Workspace], keys: Iterable[int | None]
) -> dict[int | None, str]:
    """Key → name of the rows."""
    row_keys = tuple(sorted({key for key in keys if key is not None}))
    return (
        {row.key: row.slug for row in tx.rows.page(record, equals(key=row_keys))}
        if row_keys
        else {}
    )


def _unknown(uid: str, among: str = "") -> NotFound:
    return NotFound(f"Task {uid} not found{f' {among}' if among else ''}")
