"""Daily token budgets for models, of a workspace and of all together. When one is spent, work is
paused and never dropped; days are in UTC.

The limit is soft: running work is finished, and calls of other processes count with a short delay.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day

from msgspec import Struct

from memservice.domain.records import Workspace
from memservice.domain.times import day_of
from memservice.runtime import DaySpending, Runtime
from memservice.services.usage import budget_overrides
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.budget")

FRESH_SECONDS = 2.0
"""How long a sum read from the store is cached."""
RECHECK_INTERVAL = timedelta(minutes=10)
"""Interval at which paused work checks the budget again, since it may be raised during the day."""


class Budget(Struct, frozen=True):
    """A budget of today: of one workspace, or of all together."""

    daily_tokens: int
    spent: int
    """Input and output tokens."""
    resets_at: datetime

    @property
    def reached(self) -> bool:
        return self.spent >= self.daily_tokens


def of(rt: Runtime, tx: Transaction, workspace: Workspace) -> Budget | None:
    """The workspace's own budget; None: no limit."""
    return _today(rt, tx, workspace)


def of_all(rt: Runtime, tx: Transaction) -> Budget | None:
    """The budget of all workspaces together; None: no limit."""
    return None if rt.settings.budget.total_daily_tokens is None else _today(rt, tx, None)


def may_spend(rt: Runtime, tx: Transaction, workspace: Workspace) -> bool:
    """Whether a model may be called for this workspace now."""
    return _resets_at(rt, tx, workspace) is None


def paused_until(rt: Runtime, workspace_key: int) -> datetime | None:
    """When a workspace's work that needs a model is checked again; None: now."""
    if rt.settings.budget.total_daily_tokens is None:
        spending = rt.day_spending.get(workspace_key)
        if spending is not None and spending.limit is None and _is_fresh(rt, spending):
            return None
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_key(workspace_key)
        resets_at = None if workspace is None else _resets_at(rt, tx, workspace)
    return None if resets_at is None else min(resets_at, rt.clock() + RECHECK_INTERVAL)


def from_settings(rt: Runtime, slug: str) -> int | None:
    """The limit of a workspace without an override; None: no limit."""
    settings = rt.settings.budget
    if slug in settings.workspaces:
        limit: int | None = settings.workspaces[slug]
        return limit
    return settings.daily_tokens


def _resets_at(rt: Runtime, tx: Transaction, workspace: Workspace) -> datetime | None:
    """The end of the day if a budget that applies to the workspace is spent."""
    for budget in (of(rt, tx, workspace), of_all(rt, tx)):
        if budget is not None and budget.reached:
            return budget.resets_at
    return None


def _today(rt: Runtime, tx: Transaction, workspace: Workspace | None) -> Budget | None:
    """The budget of a workspace, or of all, with the tokens spent so far today."""
    now = rt.clock()
    spending = _spending(rt, tx, workspace, day_of(now))
    if spending.limit is None:
        return None
    midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time_of_day(), UTC)
    workspace_key = None if workspace is None else workspace.key
    spent = spending.tokens + rt.unwritten_tokens(workspace_key, spending.day)
    budget = Budget(spending.limit, spent, midnight)
    if budget.reached and not spending.reported:
        spending.reported = True
        log.warning(
            (
                "%s: the %d tokens of today are spent: background work waits and chat answers "
                "without a model, until %s"
            ),
            "all workspaces" if workspace is None else f"workspace {workspace.slug}",
            spending.limit,
            midnight.isoformat(),
        )
    return budget


def _spending(rt: Runtime, tx: Transaction, workspace: Workspace | None, day: str) -> DaySpending:
    """What the store says, read again after `FRESH_SECONDS`."""
    workspace_key = None if workspace is None else workspace.key
    before = rt.day_spending.get(workspace_key)
    if before is not None and _is_fresh(rt, before):
        return before
    limit = _limit(rt, tx, workspace)
    tokens = 0 if limit is None else tx.usage.tokens(workspace_key, day)
    reported = before is not None and before.reported and (before.day, before.limit) == (day, limit)
    spending = DaySpending(day, tokens, limit, time.monotonic(), reported)
    rt.day_spending[workspace_key] = spending
    return spending


def _limit(rt: Runtime, tx: Transaction, workspace: Workspace | None) -> int | None:
    if workspace is None:
        return rt.settings.budget.total_daily_tokens
    override = budget_overrides.of(tx, workspace)
    return from_settings(rt, workspace.slug) if override is None else override.daily_tokens


def _is_fresh(rt: Runtime, spending: DaySpending) -> bool:
    age = time.monotonic() - spending.read_at
    return spending.day == day_of(rt.clock()) and age <= FRESH_SECONDS
