"""Messages per day, over the whole store, for the home page of the console.

Neither page views nor writes count messages: a worker counts the messages stored since its last
pass, each once, and saves the sums of the last days as one fact. Keys are assigned before a
transaction commits, so a pass counts only up to the newest key of an earlier pass.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from memservice.domain.times import day_of
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal

FACT = "messages per day"
DAYS = 30
"""Number of stored days, including today."""
SETTLED_AFTER = timedelta(seconds=60)
"""Age of a transaction that has certainly ended, so no smaller key can appear."""
BATCH_SIZE = 10_000
"""Number of keys per statement."""
TIME_LIMIT_SECONDS = 1.0
"""Time limit of one pass; the next one continues."""


class Day(Struct, frozen=True):
    day: str
    """`2024-05-17`, of UTC."""
    messages: int


class MessageDays(Struct, frozen=True):
    days: tuple[Day, ...]
    """The last `DAYS` days, oldest first."""
    is_complete: bool
    """False: older messages are not counted yet."""


def per_day(rt: Runtime, principal: Principal) -> MessageDays | None:
    """Messages by the day of their `created_at`, as of a worker's last pass. Deleted messages
    remain counted. None: no worker has counted yet."""
    policy.require_admin(principal, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        fact = tx.facts.get(FACT)
    if fact is None:
        return None
    state = json.loads(fact)
    days = (Day(day, state["days"].get(day, 0)) for day in _last_days(rt.clock()))
    return MessageDays(tuple(days), bool(state["complete"]))


def count(rt: Runtime) -> None:
    """Run one pass. Only one worker may run it at a time: two would count messages twice."""
    with rt.storage.read() as tx:
        fact = tx.facts.get(FACT)
        newest = tx.messages.newest_key()
    state: dict[str, Any] = {"counted": 0, "seen": 0, "seen_at": None, "days": {}}
    if fact is not None and json.loads(fact)["seen"] <= newest:
        state = json.loads(fact)  # else this is another store
    now = rt.clock()
    horizon = state["seen"] if _is_settled(state["seen_at"], now) else state["counted"]
    days = Counter(state["days"])
    ends = time.monotonic() + TIME_LIMIT_SECONDS
    while state["counted"] < horizon:
        through = min(state["counted"] + BATCH_SIZE, horizon)
        with rt.storage.read() as tx:
            days.update(tx.messages.per_day(state["counted"], through))
        state["counted"] = through
        if time.monotonic() >= ends:
            break
    if state["counted"] >= state["seen"] and state["seen"] != newest:
        state["seen"], state["seen_at"] = newest, now.isoformat()
    state["days"] = _within_last_days(days, now)
    # Messages of the last one or two minutes are never counted yet.
    state["complete"] = state["counted"] >= horizon
    value = json.dumps(state, sort_keys=True)
    if value != fact:
        rt.storage.write(lambda tx: tx.facts.set(FACT, value))


def _is_settled(seen_at: str | None, now: datetime) -> bool:
    # A time in the future was set by a clock that was ahead.
    return seen_at is not None and abs(now - datetime.fromisoformat(seen_at)) >= SETTLED_AFTER


def _last_days(now: datetime) -> list[str]:
    return [day_of(now - timedelta(days=before)) for before in reversed(range(DAYS))]


def _within_last_days(days: Mapping[str, int], now: datetime) -> dict[str, int]:
    """The sums of the last days, and of tomorrow: callers' clocks can be ahead."""
    last = {*_last_days(now), day_of(now + timedelta(days=1))}
    return {day: number for day, number in days.items() if day in last}
