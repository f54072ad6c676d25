"""Applies the retention that workspaces and sessions are configured with, a few times a day.

One process does it at a time. A round visits all sessions, then all workspaces, in order of their
keys, and stores its progress. After an interruption any process can continue it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memservice.domain.filters.ast import Compare
from memservice.domain.records import Session, Workspace
from memservice.runtime import Runtime
from memservice.services.erasure import retention as rules
from memservice.services.tasks import lease_owner
from memservice.spi.rows import BY_KEY
from memservice.worker import retention

log = logging.getLogger("memservice.maintenance")

UNIT = "maintenance:expiry"
LEASE_SECONDS = 60.0
FACT = "retention.round"
INTERVAL_SECONDS = 6 * 3_600.0
"""Time between two rounds."""
BATCH_SIZE = 500
TIME_SLICE_SECONDS = 0.5
"""A call of `run` ends after this time, so that other work gets its turn."""


class _Progress(Struct, frozen=True):
    sessions_after: int = 0
    """Key of the last session that is done."""
    workspaces_after: int = 0
    ended: str | None = None
    """When the last round ended; None during a round."""


def run(rt: Runtime) -> float:
    """Start a round if one is due, or continue it for one time slice. Returns the seconds until the
    next call. Raises `Unavailable` if the store is unavailable."""
    owner = lease_owner.start_claim()
    try:
        lease = rt.storage.write(lambda tx: tx.tasks.claim(UNIT, owner, rt.clock(), LEASE_SECONDS))
        if lease is None:
            return INTERVAL_SECONDS
        try:
            return _continue_round(rt)
        finally:
            rt.storage.write(lambda tx: tx.tasks.release(lease))
    finally:
        lease_owner.end_claim(owner)


def _continue_round(rt: Runtime) -> float:
    # A clock that jumps ahead must not erase what is still wanted.
    now = retention.steady_time(rt)
    progress = _read(rt)
    if progress.ended is not None:
        elapsed = (rt.clock() - datetime.fromisoformat(progress.ended)).total_seconds()
        # a time in the future comes from a clock that was ahead
        if 0 <= elapsed < INTERVAL_SECONDS:
            return INTERVAL_SECONDS - elapsed
        progress = _Progress()
    slice_ends = time.monotonic() + TIME_SLICE_SECONDS
    for reached in _steps(rt, progress, now):
        if time.monotonic() >= slice_ends:
            _store(rt, reached)
            return 0.0
    _store(rt, _Progress(ended=rt.clock().isoformat()))
    return INTERVAL_SECONDS


def _steps(rt: Runtime, progress: _Progress, now: datetime) -> Iterator[_Progress]:
    """The progress after each transaction."""
    last = progress.sessions_after
    workspaces: dict[int, Workspace] = {}
    for session in _after(rt, Session, last):
        if not rules.applies(session, _workspace_of(rt, session, workspaces)):
            last = session.key
            yield _Progress(last)
            continue
        old_messages = partial(rules.erase_messages, rt, session.key, now)
        old_conclusions = partial(
            rules.erase_conclusions, rt, session.workspace_key, now, session.key
        )
        while _erase(old_messages, "messages"):
            yield _Progress(last)
        while rules.sets_own_days(session) and _erase(old_conclusions, "conclusions"):
            yield _Progress(last)
        last = session.key
        yield _Progress(last)
    last_workspace = progress.workspaces_after
    for workspace in _after(rt, Workspace, last_workspace):
        while _erase(partial(rules.erase_conclusions, rt, workspace.key, now), "conclusions"):
            yield _Progress(last, last_workspace)
        last_workspace = workspace.key
        yield _Progress(last, last_workspace)


def _workspace_of(
    rt: Runtime, session: Session, workspaces: dict[int, Workspace]
) -> Workspace | None:
    """The workspace of a session, read once in a call."""
    if session.workspace_key not in workspaces:
        with rt.storage.read() as tx:
            workspace = tx.workspaces.by_key(session.workspace_key)
        if workspace is None:
            return None
        workspaces[session.workspace_key] = workspace
    return workspaces[session.workspace_key]


def _after(rt: Runtime, record: type[Any], key: int) -> Iterator[Any]:
    while True:
        with rt.storage.read() as tx:
            rows = tx.rows.page(record, Compare("key", "gt", key), BY_KEY, BATCH_SIZE)
        yield from rows
        if len(rows) < BATCH_SIZE:
            return
        key = rows[-1].key


def _erase(step: Callable[[], int], name: str) -> bool:
    number = step()
    if number:
        log.info("retention: erased %d old %s", number, name)
    return number > 0


def _read(rt: Runtime) -> _Progress:
    with rt.storage.read() as tx:
        fact = tx.facts.get(FACT)
    return _Progress() if fact is None else _Progress(**json.loads(fact))


def _store(rt: Runtime, progress: _Progress) -> None:
    rt.storage.write(lambda tx: tx.facts.set(FACT, json.dumps(asdict(progress))))
