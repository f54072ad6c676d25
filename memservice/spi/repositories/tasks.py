"""Background work: tasks, and leases on their units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.filters.ast import TRUE, Compare, Condition, Not, all_of, equals
from memservice.domain.records import DONE, FAILED, IMMEDIATELY, NEVER, PENDING, Lease, Task
from memservice.spi.repositories.base import Repository
from memservice.spi.rows import Order, Rows, UniqueViolation


class QueueCount(Struct, frozen=True):
    """The number of tasks of one session (None: of no session) in one state. `working`: pending,
    with a leased unit."""

    session_key: int | None
    state: str
    working: bool
    tasks: int


class KindCount(Struct, frozen=True):
    """The number of tasks of one kind in one state. `due`: pending, and due by time. `working`:
    pending, with a leased unit."""

    kind: str
    state: str
    due: bool
    working: bool
    tasks: int
    oldest: datetime
    """When the first of them became due, or will."""


class Tasks(Repository):
    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self.units_with_work: set[str] = set()
        """Units that got work in this transaction. The queue may wake them after the commit."""

    def add(self, tasks: Sequence[Task]) -> list[Task]:
        # Workers find delayed tasks when they become due.
        self.units_with_work.update(
            task.unit
            for task in tasks
            if task.state == PENDING and task.not_before <= task.created_at
        )
        return self.rows.put(tasks) if tasks else []

    def by_uid(self, uid: str) -> Task | None:
        return self.rows.get(Task, equals(uid=uid))

    def ready(
        self,
        now: datetime,
        limit: int,
        latest: datetime = NEVER,
        without: Sequence[str] = (),
    ) -> list[str]:
        """Units with work now: their oldest pending task is due and is of none of the kinds
        `without`, and their lease is free or expired. Workspaces take turns, the longest-waiting
        one first: first the longest-waiting unit of each, then the second of each …

        A task that backs off blocks the tasks behind it in its unit. A task whose `not_before` is
        beyond `latest`, but not `NEVER`, is due: a wrong clock set that time.

        A storage may compare a part of a large backlog only, such that each unit has its turn some
        calls later, and units are returned if any is ready.
        """
        oldest: dict[str, Task] = {}
        for task in self.rows.page(Task, equals(state=PENDING)):
            oldest.setdefault(task.unit, task)
        leased_units = {
            lease.unit for lease in self.rows.page(Lease, Compare("expires_at", "gt", now))
        }
        turns: Counter[int | None] = Counter()
        candidates: list[tuple[int, int, str]] = []
        for unit, task in oldest.items():
            is_due = task.not_before <= now or latest < task.not_before < NEVER
            if is_due and unit not in leased_units and task.kind not in without:
                turns[task.workspace_key] += 1
                candidates.append((turns[task.workspace_key], task.key, unit))
        return [unit for _, _, unit in sorted(candidates)[:limit]]

    def next_due(self) -> datetime | None:
        """When the earliest pending task becomes due; None without pending tasks."""
        tasks = self.rows.page(
            Task, equals(state=PENDING), (Order("not_before"), Order("key")), limit=1
        )
        return tasks[0].not_before if tasks else None

    def pending(self, unit: str, limit: int | None = None) -> list[Task]:
        """The unit's pending tasks, in the order of processing."""
        return self.rows.page(Task, equals(unit=unit, state=PENDING), limit=limit)

    def save(self, task: Task) -> Task:
        """Replace a stored task. Raises `LookupError` if it was erased."""
        self.units_with_work.add(task.unit)
        return self.rows.put([task])[0]

    def finish(self, keys: Sequence[int], outcome: dict[str, Any], now: datetime) -> None:
        self.rows.change(
            Task,
            equals(key=tuple(keys), state=PENDING),
            state=DONE,
            outcome=outcome,
            finished_at=now,
        )

    def fail(self, key: int, error: str, now: datetime, retry_at: datetime | None) -> None:
        """Record a failed attempt: retry at `retry_at`, or (None) fail permanently."""
        self.rows.increase(Task, equals(key=key), attempts=1)
        if retry_at is None:
            self.rows.change(Task, equals(key=key), state=FAILED, last_error=error, finished_at=now)
        else:
            self.rows.change(Task, equals(key=key), last_error=error, not_before=retry_at)

    def retry(self, keys: Sequence[int]) -> int:
        """Make failed tasks pending again, with all their attempts; returns how many."""
        failed = equals(key=tuple(keys), state=FAILED)
        self.units_with_work.update(task.unit for task in self.rows.page(Task, failed))
        return self.rows.change(
            Task, failed, state=PENDING, attempts=0, not_before=IMMEDIATELY, finished_at=None
        )

    def make_due_if_untried(self, task: Task) -> bool:
        """Make a pending task without attempts due now; False if it is no longer pending or was
        tried."""
        self.units_with_work.add(task.unit)
        return (
            self.rows.change(
                Task, equals(key=task.key, state=PENDING, attempts=0), not_before=IMMEDIATELY
            )
            == 1
        )

    def make_due(self, task: Task) -> bool:
        """Make a pending task due now; False if it is no longer pending."""
        self.units_with_work.add(task.unit)
        return (
            self.rows.change(Task, equals(key=task.key, state=PENDING), not_before=IMMEDIATELY) == 1
        )

    def make_all_due(self, kind: str, now: datetime) -> int:
        """Make all pending tasks of a kind without attempts due now; returns how many were not
        due."""
        waiting = all_of(
            equals(kind=kind, state=PENDING, attempts=0), Compare("not_before", "gt", now)
        )
        return self.rows.change(Task, waiting, not_before=IMMEDIATELY)

    def purge(self, state: str, before: datetime, limit: int, without: Sequence[str] = ()) -> int:
        """Erase at most `limit` tasks that ended in `state` before that time, except those of the
        kinds `without`; returns how many."""
        exclusions = [Not(equals(kind=tuple(without)))] if without else []
        old = all_of(equals(state=state), Compare("finished_at", "lt", before), *exclusions)
        keys = tuple(task.key for task in self.rows.page(Task, old, (Order("finished_at"),), limit))
        return self.rows.delete(Task, equals(key=keys)) if keys else 0

    def counts(
        self, workspace_key: int, kinds: tuple[str, ...], now: datetime, condition: Condition = TRUE
    ) -> list[QueueCount]:
        """Tasks of these kinds by session, state and whether their unit is leased now."""
        leased_units = {
            lease.unit for lease in self.rows.page(Lease, Compare("expires_at", "gt", now))
        }
        counts: dict[tuple[int | None, str, bool], int] = {}
        for task in self.rows.page(
            Task, all_of(equals(workspace_key=workspace_key, kind=kinds), condition)
        ):
            bucket = (
                task.session_key,
                task.state,
                task.state == PENDING and task.unit in leased_units,
            )
            counts[bucket] = counts.get(bucket, 0) + 1
        return [
            QueueCount(session_key, state, working, number)
            for (session_key, state, working), number in counts.items()
        ]

    def backlog(self, now: datetime, limit: int) -> list[KindCount]:
        """Pending and failed tasks of all workspaces by kind, whether they are due, and whether
        their unit is leased now. Counts at most `limit` pending ones, those due for longest first,
        and `limit` failed ones."""
        leased_units = {
            lease.unit for lease in self.rows.page(Lease, Compare("expires_at", "gt", now))
        }
        pending = self.rows.page(
            Task, equals(state=PENDING), (Order("not_before"), Order("key")), limit
        )
        groups: dict[tuple[str, str, bool, bool], list[datetime]] = {}
        for task in [*pending, *self.rows.page(Task, equals(state=FAILED), limit=limit)]:
            is_pending = task.state == PENDING
            group = (
                task.kind,
                task.state,
                is_pending and task.not_before <= now,
                is_pending and task.unit in leased_units,
            )
            groups.setdefault(group, []).append(task.due_since)
        return [
            KindCount(*group, tasks=len(times), oldest=min(times))
            for group, times in groups.items()
        ]

    # Leases. (`key`, `number`) identifies one claim for all time: keys are never reused, and the
    # number rises when the owner changes.

    def claim(self, unit: str, owner: str, now: datetime, seconds: float) -> Lease | None:
        """Take the unit's lease if it is free or has expired; None if another owner holds it."""
        return self.take(
            unit, self.rows.get(Lease, equals(unit=unit), lock=True), owner, now, seconds
        )

    def take(
        self, unit: str, lease: Lease | None, owner: str, now: datetime, seconds: float
    ) -> Lease | None:
        """The second half of `claim`: `lease` is the unit's lease, locked, or None if there is
        none."""
        until = now + timedelta(seconds=seconds)
        if lease is None:
            return self.begin(Lease(unit=unit, owner=owner, number=1, expires_at=until))
        if lease.expires_at > now:
            return None
        return self.rows.put(
            [replace(lease, owner=owner, number=lease.number + 1, expires_at=until)]
        )[0]

    def begin(self, lease: Lease) -> Lease | None:
        """Store the first lease of a unit; None if there is one, even if it was stored only now."""
        try:
            return self.rows.put([lease])[0]
        except UniqueViolation:
            return None

    def leases(self) -> list[Lease]:
        """Every lease, including expired ones."""
        return self.rows.page(Lease)

    def renew(self, lease: Lease, now: datetime, seconds: float) -> bool:
        """Extend a lease that its owner still holds; False if it was lost."""
        return (
            self.rows.change(Lease, _same(lease), expires_at=now + timedelta(seconds=seconds)) == 1
        )

    def holds(self, lease: Lease) -> bool:
        """Whether its owner still holds the lease. Locks its row until commit, so that the answer
        stays true for the whole transaction."""
        return self.rows.get(Lease, _same(lease), lock=True) is not None

    def release(self, lease: Lease) -> bool:
        """Release the lease; False if it was lost before."""
        return self.rows.delete(Lease, _same(lease)) == 1


def _same(lease: Lease) -> Condition:
    return equals(key=lease.key, number=lease.number, owner=lease.owner)
