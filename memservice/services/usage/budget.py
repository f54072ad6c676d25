"""Daily token budget of a workspace for models. When it is spent, work is paused and never dropped;
days are in UTC.

The limit is soft: running work is finished, and calls of other processes count with a short delay.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day

from memservice.domain.records import Workspace
from memservice.domain.times import day_of
from memservice.runtime import DaySpending, Runtime
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.budget")

FRESH_SECONDS = 2.0
"""How long a sum read from the store is cached."""
RECHECK_INTERVAL = timedelta(minutes=10)
"""Interval at which paused work checks the budget again, since it may be raised during the day."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one workspace, today."""

    daily_tokens: int
    spent: int
    """Input and output tokens."""
    resets_at: datetime

    @property
    def reached(self) -> bool:
        return self.spent >= self.daily_tokens


def of(rt: Runtime, tx: Transaction, workspace: Workspace) -> Budget | None:
    """The workspace's budget; None: no limit."""
    limit = _limit(rt, workspace.slug)
    if limit is None:
        return None
    now = rt.clock()
    day = day_of(now)
    spending = rt.day_spending.get(workspace.key)
    if (
        spending is None
        or spending.day != day
        or time.monotonic() - spending.read_at > FRESH_SECONDS
    ):
        reported = spending is not None and spending.day == day and spending.reported
        tokens = tx.usage.tokens(workspace.key, day)
        spending = DaySpending(day, tokens, time.monotonic(), reported)
        rt.day_spending[workspace.key] = spending
    midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time_of_day(), UTC)
    spent = spending.tokens + rt.unwritten_tokens(workspace.key, day)
    budget = Budget(limit, spent, midnight)
    if budget.reached and not spending.reported:
        spending.reported = True
        log.warning(
            (
                "workspace %s has spent its %d tokens of today: its background work waits and "
                "its chat answers without a model, until %s"
            ),
            workspace.slug,
            limit,
            midnight.isoformat(),
        )
    return budget


def may_spend(rt: Runtime, tx: Transaction, workspace: Workspace) -> bool:
    """Whether a model may be called for this workspace now."""
    budget = of(rt, tx, workspace)
    return budget is None or not budget.reached


def paused_until(rt: Runtime, workspace_key: int) -> datetime | None:
    """When a workspace's work that needs a model is checked again; None: now."""
    settings = rt.settings.budget
    if settings.daily_tokens is None and not settings.workspaces:
        return None
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_key(workspace_key)
        budget = None if workspace is None else of(rt, tx, workspace)
    if budget is None or not budget.reached:
        return None
    return min(budget.resets_at, rt.clock() + RECHECK_INTERVAL)


def _limit(rt: Runtime, slug: str) -> int | None:
    settings = rt.settings.budget
    if slug in settings.workspaces:
        limit: int | None = settings.workspaces[slug]
        return limit
    return settings.daily_tokens
