"""How many tokens a workspace may spend on models in a day. Reached, it pauses work and never drops any; the day is UTC's.

The bound is a soft one: what is under way when it is reached is finished, and calls of other processes count a moment later.
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
from memservice.spi.storage import View

log = logging.getLogger("memservice.budget")

FRESH_SECONDS = 2.0
"""How long a sum that was read from the store is good for."""
LOOK_AGAIN = timedelta(minutes=10)
"""How often paused work looks whether it may go on: a budget may be raised before the day is over."""


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


def of(rt: Runtime, view: View, workspace: Workspace) -> Budget | None:
    """None: it may spend what it likes."""
    limit = _limit(rt, workspace.slug)
    if limit is None:
        return None
    now = rt.clock()
    day = day_of(now)
    known = _read.setdefault(rt, {})
    found = known.get(workspace.key)
    if found is None or found.day != day or time.monotonic() - found.at > FRESH_SECONDS:
        told = found is not None and found.day == day and found.told
        found = known[workspace.key] = _Read(day, view.usage.tokens(workspace.key, day), time.monotonic(), told)
    midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time_of_day(), UTC)
    budget = Budget(limit, found.spent + rt.unwritten_tokens(workspace.key, day), midnight)
    if budget.reached and not found.told:
        found.told = True
        log.warning(
            "workspace %s has spent its %d tokens of today: its background work waits and its chat answers without a model, until %s",
            workspace.slug,
            limit,
            midnight.isoformat(),
        )
    return budget


def may_spend(rt: Runtime, view: View, workspace: Workspace) -> bool:
    """Whether a model may be asked for this workspace now."""
    budget = of(rt, view, workspace)
    return budget is None or not budget.reached


def paused_until(rt: Runtime, workspace: int) -> datetime | None:
    """When work of a workspace that needs a model should be looked at again; None: now."""
    settings = rt.settings.budget
    if settings.daily_tokens is None and not settings.workspaces:
        return None
    with rt.storage.read() as view:
        found = view.workspaces.by_key(workspace)
        budget = None if found is None else of(rt, view, found)
    if budget is None or not budget.reached:
        return None
    return min(budget.resets_at, rt.clock() + LOOK_AGAIN)


def _limit(rt: Runtime, slug: str) -> int | None:
    settings = rt.settings.budget
    if slug in settings.workspaces:
        limit: int | None = settings.workspaces[slug]
        return limit
    return settings.daily_tokens
