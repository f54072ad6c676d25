"""How many tokens a workspace may spend on models in a day. Reached, it pauses work and never drops
any; the day is UTC's.

The bound is a soft one: what is under way when it is reached is finished, and calls of other
processes count a moment later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from weakref import WeakKeyDictionary

from memservice.domain.records import Workspace
from memservice.domain.times import day_of
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.budget")

FRESH_SECONDS = 2.0
"""How long a sum that was read from the store is good for."""
LOOK_AGAIN = timedelta(minutes=10)
"""How often paused work looks whether it may go on: a budget may be raised before the day is
over."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Of one workspace, today."""

    daily_tokens: int
    spent: int
    """Input and output tokens."""
    resets_at: datetime

    @property
    def reached(self) -> bool:
        return self.spent >= self.daily_tokens


@dataclass(slots=True)
class _Read:
    """What the store last said, and whether somebody was told of a budget that is reached."""

    day: str
    spent: int
    at: float
    told: bool = False


_read: MutableMapping[Runtime, dict[int, _Read]] = WeakKeyDictionary()


def of(rt: Runtime, tx: Transaction, workspace: Workspace) -> Budget | None:
    """None: it may spend what it likes."""
    limit = _limit(rt, workspace.slug)
    if limit is None:
        return None
    now = rt.clock()
    day = day_of(now)
    known = _read.setdefault(rt, {})
    read = known.get(workspace.key)
    if read is None or read.day != day or time.monotonic() - read.at > FRESH_SECONDS:
        told = read is not None and read.day == day and read.told
        read = known[workspace.key] = _Read(
            day, tx.usage.tokens(workspace.key, day), time.monotonic(), told
        )
    midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time_of_day(), UTC)
    budget = Budget(limit, read.spent + rt.unwritten_tokens(workspace.key, day), midnight)
    if budget.reached and not read.told:
        read.told = True
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
    """Whether a model may be asked for this workspace now."""
    budget = of(rt, tx, workspace)
    return budget is None or not budget.reached


def paused_until(rt: Runtime, workspace_key: int) -> datetime | None:
    """When work of a workspace that needs a model should be looked at again; None: now."""
    settings = rt.settings.budget
    if settings.daily_tokens is None and not settings.workspaces:
        return None
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_key(workspace_key)
        budget = None if workspace is None else of(rt, tx, workspace)
    if budget is None or not budget.reached:
        return None
    return min(budget.resets_at, rt.clock() + LOOK_AGAIN)


def _limit(rt: Runtime, slug: str) -> int | None:
    settings = rt.settings.budget
    if slug in settings.workspaces:
        limit: int | None = settings.workspaces[slug]
        return limit
    return settings.daily_tokens
