"""Scheduling of dreams, which consolidate one peer's conclusions about another.
`memservice.pipeline.dream.handler` runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct

from memservice.domain.configuration import Resolved, resolve
from memservice.domain.errors import Refused
from memservice.domain.filters import equals
from memservice.domain.records import (
    ACTIVE,
    EXPLICIT,
    LIVE,
    PENDING,
    SUPERSEDED,
    Collection,
    Conclusion,
    Lease,
    Peer,
    Session,
    Task,
)
from memservice.runtime import Runtime
from memservice.services import dream_changes, supersession, validation, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ensure_collection
from memservice.services.tasks import kinds, outbox
from memservice.spi.repositories.base import NEWEST
from memservice.spi.storage import Transaction

Kind = Literal["omni", "card_refresh"]
OMNI: Kind = "omni"
CARD_REFRESH: Kind = "card_refresh"

MANUAL, THRESHOLD, SCOPE_BACKFILL, SCOPE_REMOVAL, ERASURE = (
    "manual",
    "document_threshold",
    "scope_backfill",
    "scope_removal",
    "erasure",
)
"""Triggers of a dream."""

OFF = "Dreams are not enabled in the system configuration"


class DreamRequest(Struct, frozen=True):
    """A caller's request for a dream. `observed` None: the observer itself."""

    observer: str
    kind: Kind
    observed: str | None = None
    session: str | None = None
    rebuild: bool = False
    """For a card: write it without reading the lines that the service wrote."""


def schedule(rt: Runtime, principal: Principal, workspace_id: str, request: DreamRequest) -> bool:
    """Schedule a dream to run as soon as a worker is free. False if the same dream is already
    waiting or running, or if a peer or the session does not exist, so there is nothing to
    consolidate.

    Raises Refused while dreams are disabled, NotFound for a workspace that does not exist.
    """
    policy.require(principal, workspace_id, needs=Permission.MANAGE_JOBS)
    if not rt.settings.dream.enabled:
        raise Refused(OFF)

    def change(tx: Transaction) -> bool:
        workspace = workspaces.require(tx, workspace_id)
        observed = request.observed or request.observer
        peers = tx.peers.by_slugs(workspace.key, sorted({request.observer, observed}))
        validation.refuse_scope(observed, peers.get(observed), ("observed",))
        session = tx.sessions.by_slug(workspace.key, request.session) if request.session else None
        if not {request.observer, observed} <= peers.keys() or (
            request.session and (session is None or session.state != ACTIVE)
        ):
            return False
        return enqueue(
            rt,
            tx,
            peers[request.observer],
            peers[observed],
            request.kind,
            session=session,
            rebuild=request.rebuild,
        )

    return rt.storage.write(change)


def enqueue(
    rt: Runtime,
    tx: Transaction,
    observer: Peer,
    observed: Peer,
    kind: Kind,
    *,
    session: Session | None = None,
    rebuild: bool = False,
    trigger: str = MANUAL,
) -> bool:
    """Store the task of a dream, due now, in the caller's transaction. False if dreams are disabled
    or the same one is waiting or running."""
    collection = ensure_collection(rt, tx, observer, observed)
    return _add(
        rt,
        tx,
        collection,
        kind,
        session_key=session.key if session else None,
        rebuild=rebuild,
        trigger=trigger,
    )


def _add(
    rt: Runtime,
    tx: Transaction,
    collection: Collection,
    kind: Kind,
    *,
    session_key: int | None,
    rebuild: bool,
    trigger: str,
) -> bool:
    if not rt.settings.dream.enabled:
        return False
    # Lock it until commit, so that two callers cannot both find no waiting dream.
    locked = (
        tx.conclusions.collection(collection.observer_key, collection.observed_key, lock=True)
        or collection
    )
    task = outbox.dream(
        rt,
        locked,
        {
            "type": kind,
            "session": session_key,
            "rebuild": rebuild and kind == CARD_REFRESH,
            "trigger": trigger,
            "delay": "idle_timeout"
            if trigger == THRESHOLD and rt.settings.dream.idle_timeout_minutes
            else "immediate",
            # Conclusions that were erased since may have been counted by the last dream.
            "new": max(0, locked.explicit_count - locked.explicit_at_last_dream),
        },
    )
    pending = [other for other in tx.tasks.pending(task.unit) if other.payload.get("type") == kind]
    lease = tx.rows.get(Lease, equals(unit=task.unit)) if pending else None
    is_running = lease is not None and lease.expires_at > rt.clock()
    running, queued = (pending[:1], pending[1:]) if is_running else ([], pending)
    if queued:
        if task.payload["rebuild"]:
            payload = {**queued[-1].payload, "rebuild": True}
            tx.rows.change(Task, equals(key=queued[-1].key, state=PENDING), payload=payload)
        return False
    # A running dream may have read what changed since: a scope that lost a session needs another
    # one now, and a rebuild is more than a running refresh.
    if running and not (
        trigger in (SCOPE_BACKFILL, SCOPE_REMOVAL, ERASURE)
        or (task.payload["rebuild"] and not running[0].payload.get("rebuild"))
    ):
        return False
    tx.tasks.add([task])
    return True


def after_save(
    rt: Runtime, tx: Transaction, collection: Collection, explicit: int, session: Session
) -> None:
    """Set the timer of a dream after conclusions were derived from a session into a collection,
    which now has `explicit` live ones.

    The timer is set once enough of them are new; each further save restarts it, so that it expires
    when the pair is quiet.
    """
    if (
        not _is_due(rt, collection, explicit)
        or not effective_configuration(rt, tx, collection, session).dream
    ):
        return
    at = max(
        rt.clock() + timedelta(minutes=rt.settings.dream.idle_timeout_minutes),
        _earliest(rt, collection),
    )
    timer = outbox.dream_timer(rt, collection, at)
    same = equals(
        workspace_key=collection.workspace_key,
        kind=kinds.DREAM_TIMER,
        state=PENDING,
        unit=timer.unit,
    )
    if not tx.rows.change(Task, same, not_before=at):
        tx.tasks.add([timer])


def on_timer(rt: Runtime, tx: Transaction, timer: Task) -> dict[str, Any] | datetime:
    """Handle an expired timer: schedule the automatic dreams, unless its condition no longer holds.
    Returns the outcome, or a time: run again then."""
    collection = tx.conclusions.collection(timer.observer_key or 0, timer.observed_key or 0)
    if collection is None or not _is_due(rt, collection, collection.explicit_count):
        return {"skipped": "not enough is new"}
    earliest = _earliest(rt, collection)
    if earliest > rt.clock():
        return earliest
    newest = newest_explicit(tx, collection)
    session = (
        None
        if newest is None or newest.session_key is None
        else tx.sessions.by_key(newest.session_key)
    )
    if newest is None or not effective_configuration(rt, tx, collection, session).dream:
        return {"skipped": "dreams are switched off here"}
    added = [
        _add(
            rt,
            tx,
            collection,
            OMNI if kind == OMNI else CARD_REFRESH,
            session_key=newest.session_key,
            rebuild=False,
            trigger=THRESHOLD,
        )
        for kind in rt.settings.dream.enabled_types
    ]
    return {"enqueued": sum(added)}


def newest_explicit(tx: Transaction, collection: Collection) -> Conclusion | None:
    pair = equals(
        observer_key=collection.observer_key, observed_key=collection.observed_key, level=EXPLICIT
    )
    conclusions = tx.conclusions.page(collection.workspace_key, pair, NEWEST, limit=1)
    return conclusions[0] if conclusions else None


def mark_consolidated(rt: Runtime, tx: Transaction, collection: Collection) -> None:
    """Record that a collection was consolidated now, in the transaction that stores the result and
    after it."""
    locked = (
        tx.conclusions.collection(collection.observer_key, collection.observed_key, lock=True)
        or collection
    )
    tx.rows.change(
        Collection,
        equals(key=locked.key),
        last_dream_at=rt.clock(),
        explicit_at_last_dream=locked.explicit_count,
    )


def restore_superseded(
    rt: Runtime, tx: Transaction, removed: Sequence[Conclusion], session_key: int | None = None
) -> int:
    """Restore conclusions that were superseded by conclusions that are being erased (`removed`),
    since the latter were not wrong. A superseded conclusion becomes live again, or gets the next
    successor in the chain that remains; except one of the session `session_key`, which is being
    erased as a whole.

    Returns the number of conclusions that are live again. Call it with the rows as they were.
    """
    if not removed:
        return 0
    removed_by_key = {row.key: row for row in removed}
    indexes = tuple({row.collection_key for row in removed})
    conclusions = tx.rows.page(
        Conclusion,
        equals(collection_key=indexes, state=SUPERSEDED, superseded_by=tuple(removed_by_key)),
    )
    superseded = [
        row
        for row in conclusions
        if row.key not in removed_by_key and (session_key is None or row.session_key != session_key)
    ]
    ends = {row.key: _end(removed_by_key, row) for row in superseded}
    end_keys = tuple({end for end, _ in ends.values() if end is not None})
    remaining = (
        {
            row.key
            for row in tx.rows.page(Conclusion, equals(key=end_keys, state=(LIVE, SUPERSEDED)))
        }
        if end_keys
        else set()
    )
    restored: list[Conclusion] = []
    for row in superseded:
        end, superseded_at = ends[row.key]
        if end in remaining:
            # The reason may have the words of the one that is erased.
            tx.rows.change(
                Conclusion,
                equals(key=row.key),
                superseded_by=end,
                superseded_at=superseded_at,
                internal=supersession.without_reason(row),
            )
        else:
            restored.append(row)
    dream_changes.discard_citing(tx, removed)
    return len(supersession.make_live(rt, tx, restored, removed_by_key, with_lapse=False))


def _end(
    removed_by_key: Mapping[int, Conclusion], row: Conclusion
) -> tuple[int | None, datetime | None]:
    """The key of the first row in a chain of successors that is not removed, and when it superseded
    the one before it."""
    key, superseded_at = row.superseded_by, row.superseded_at
    while key is not None and key in removed_by_key:
        removed = removed_by_key[key]
        key, superseded_at = removed.superseded_by, removed.superseded_at
    return key, superseded_at


def effective_configuration(
    rt: Runtime, tx: Transaction, collection: Collection, session: Session | None
) -> Resolved:
    """The configuration of the session, if a dream has one, and the workspace."""
    workspace = tx.workspaces.by_key(collection.workspace_key)
    return resolve(
        rt.defaults,
        session.configuration if session else None,
        workspace.configuration if workspace else None,
    )


def _is_due(rt: Runtime, collection: Collection, explicit: int) -> bool:
    dream = rt.settings.dream
    threshold = dream.document_threshold
    if collection.last_dream_at is None:
        threshold = min(threshold, dream.first_document_threshold)
    enough = explicit - collection.explicit_at_last_dream >= threshold
    return enough and dream.enabled and bool(dream.enabled_types)


def _earliest(rt: Runtime, collection: Collection) -> datetime:
    """The earliest time of the next automatic dream."""
    last = collection.last_dream_at
    return (
        rt.clock()
        if last is None
        else last + timedelta(hours=rt.settings.dream.min_hours_between_dreams)
    )
