"""Dreams: when what one peer holds about another is consolidated. What a dream does is `memservice.pipeline.dream.handler`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from memservice.domain.configuration import Resolved, resolve
from memservice.domain.errors import Refused
from memservice.domain.filters import where
from memservice.domain.records import ACTIVE, EXPLICIT, LIVE, PENDING, SUPERSEDED, Collection, Conclusion, Lease, Peer, Session, Task
from memservice.runtime import Runtime
from memservice.services import (
    indexing,
    validation,
    workspaces,
)
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ensure_collection
from memservice.services.tasks import outbox
from memservice.spi.repositories.base import NEWEST
from memservice.spi.storage import View

Kind = Literal["omni", "card_refresh"]
OMNI: Kind = "omni"
CARD_REFRESH: Kind = "card_refresh"

MANUAL, THRESHOLD, SCOPE_BACKFILL, SCOPE_REMOVAL = "manual", "document_threshold", "scope_backfill", "scope_removal"
"""Why a dream was asked for."""

OFF = "Dreams are not enabled in the system configuration"


@dataclass(frozen=True, slots=True)
class DreamRequest:
    """What a caller asks for. `observed` is the observer itself if nothing is said."""

    observer: str
    kind: Kind
    observed: str | None = None
    session: str | None = None
    rebuild: bool = False
    """Of a card: write it without looking at what the service had written there."""


def schedule(rt: Runtime, who: Principal, workspace: str, request: DreamRequest) -> bool:
    """Let a dream run as soon as a worker is free. False if the same one is waiting or running already, or if there is nothing to dream
    of: of peers that nobody has named to the service yet nothing is held, and of a session that is not there nothing can be held.

    Raises Refused while dreams are switched off, NotFound for a workspace that does not exist.
    """
    policy.require(who, workspace)
    if not rt.settings.dream.enabled:
        raise Refused(OFF)

    def change(view: View) -> bool:
        place = workspaces.require(view, workspace)
        observed = request.observed or request.observer
        found = view.peers.by_slugs(place.key, sorted({request.observer, observed}))
        validation.refuse_scope(observed, found.get(observed), ("body", "observed"))
        session = view.sessions.by_slug(place.key, request.session) if request.session else None
        if not {request.observer, observed} <= found.keys() or (request.session and (session is None or session.state != ACTIVE)):
            return False
        return enqueue(rt, view, found[request.observer], found[observed], request.kind, session=session, rebuild=request.rebuild)

    return rt.storage.write(change)


def enqueue(
    rt: Runtime,
    view: View,
    observer: Peer,
    observed: Peer,
    kind: Kind,
    *,
    session: Session | None = None,
    rebuild: bool = False,
    trigger: str = MANUAL,
) -> bool:
    """Store the task of a dream, due now, in the caller's transaction. False if dreams are off or the same one is waiting or running."""
    collection = ensure_collection(rt, view, observer, observed)
    return _add(rt, view, collection, kind, session=session.key if session else None, rebuild=rebuild, trigger=trigger)


def _add(rt: Runtime, view: View, collection: Collection, kind: Kind, *, session: int | None, rebuild: bool, trigger: str) -> bool:
    if not rt.settings.dream.enabled:
        return False
    # Held until commit, so that two callers do not both find that no such dream is waiting.
    held = view.conclusions.collection(collection.observer_key, collection.observed_key, lock=True) or collection
    task = outbox.dream(
        rt,
        held,
        {
            "type": kind,
            "session": session,
            "rebuild": rebuild and kind == CARD_REFRESH,
            "trigger": trigger,
            "delay": "idle_timeout" if trigger == THRESHOLD and rt.settings.dream.idle_timeout_minutes else "immediate",
            "new": held.explicit_count - held.explicit_at_last_dream,
        },
    )
    waiting = [other for other in view.tasks.pending(task.unit) if other.payload.get("type") == kind]
    if waiting:
        lease = view.rows.get(Lease, where(unit=task.unit))
        running = lease is not None and lease.expires_at > rt.clock()
        # One that runs may have read what changed since; a scope that lost a session cannot wait for the next occasion.
        if not (running and len(waiting) == 1 and trigger in (SCOPE_BACKFILL, SCOPE_REMOVAL)):
            if task.payload["rebuild"] and not running:
                payload = {**waiting[-1].payload, "rebuild": True}
                view.rows.change(Task, where(key=waiting[-1].key, state=PENDING), payload=payload)
            return False
    view.tasks.add([task])
    return True


def after_save(rt: Runtime, view: View, collection: Collection, explicit: int, session: Session) -> None:
    """Explicit conclusions were derived from a session into a collection, which has `explicit` live ones now.

    Once enough of them are new, a timer is set; each further save winds it up again, so that it goes off when the pair is quiet.
    """
    if not _ripe(rt, collection, explicit) or not configured(rt, view, collection, session).dream:
        return
    at = max(rt.clock() + timedelta(minutes=rt.settings.dream.idle_timeout_minutes), _earliest(rt, collection))
    timer = outbox.dream_timer(rt, collection, at)
    same = where(workspace_key=collection.workspace_key, kind=outbox.DREAM_TIMER, state=PENDING, unit=timer.unit)
    if not view.rows.change(Task, same, not_before=at):
        view.tasks.add([timer])


def went_off(rt: Runtime, view: View, timer: Task) -> dict[str, Any] | datetime:
    """A timer is due: make the dreams due that run by themselves, unless what it was set for no longer holds. A time: not before then."""
    collection = view.conclusions.collection(timer.observer_key or 0, timer.observed_key or 0)
    if collection is None or not _ripe(rt, collection, collection.explicit_count):
        return {"skipped": "not enough is new"}
    earliest = _earliest(rt, collection)
    if earliest > rt.clock():
        return earliest
    newest = newest_explicit(view, collection)
    session = None if newest is None or newest.session_key is None else view.sessions.by_key(newest.session_key)
    if newest is None or not configured(rt, view, collection, session).dream:
        return {"skipped": "dreams are switched off here"}
    added = [
        _add(rt, view, collection, OMNI if kind == OMNI else CARD_REFRESH, session=newest.session_key, rebuild=False, trigger=THRESHOLD)
        for kind in rt.settings.dream.enabled_types
    ]
    return {"enqueued": sum(added)}


def newest_explicit(view: View, collection: Collection) -> Conclusion | None:
    pair = where(observer_key=collection.observer_key, observed_key=collection.observed_key, level=EXPLICIT)
    found = view.conclusions.page(collection.workspace_key, pair, NEWEST, limit=1)
    return found[0] if found else None


def dreamt(rt: Runtime, view: View, collection: Collection) -> None:
    """Note that what a collection holds was consolidated now, in the transaction that stores the result and after it."""
    held = view.conclusions.collection(collection.observer_key, collection.observed_key, lock=True) or collection
    view.rows.change(Collection, where(key=held.key), last_dream_at=rt.clock(), explicit_at_last_dream=held.explicit_count)


def give_back(rt: Runtime, view: View, gone: Sequence[Conclusion], session: int) -> int:
    """Conclusions go because their session does, not because they are wrong: what gave way to them and comes from elsewhere is live
    again, or gives way to what they gave way to themselves. Returns how many are live again. Called with the rows as they were."""
    if not gone:
        return 0
    left = {row.key: row for row in gone}
    places = tuple({row.collection_key for row in gone})
    found = view.rows.page(Conclusion, where(collection_key=places, state=SUPERSEDED, superseded_by=tuple(left)))
    waiting = [row for row in found if row.key not in left and row.session_key != session]
    ends = {row.key: _end(left, row.superseded_by) for row in waiting}
    wanted = tuple({end for end in ends.values() if end is not None})
    stays = {row.key for row in view.rows.page(Conclusion, where(key=wanted, state=(LIVE, SUPERSEDED)))} if wanted else set()
    back: list[Conclusion] = []
    for row in waiting:
        if ends[row.key] in stays:
            view.rows.change(Conclusion, where(key=row.key), superseded_by=ends[row.key])
        else:
            internal = {name: value for name, value in row.internal.items() if name != "superseded"}
            back.append(replace(row, state=LIVE, superseded_by=None, internal=internal))
    view.conclusions.put(back)
    for key, number in Counter(row.collection_key for row in back if row.level == EXPLICIT).items():
        view.conclusions.count_explicit(key, number)
    if back:
        view.tasks.add(indexing.index_conclusions(rt, view, back[0].workspace_key, back))
    return len(back)


def _end(left: Mapping[int, Conclusion], key: int | None) -> int | None:
    """The first row in a chain of successors that is not among those that leave."""
    while key is not None and key in left:
        key = left[key].superseded_by
    return key


def configured(rt: Runtime, view: View, collection: Collection, session: Session | None) -> Resolved:
    """What the session, if a dream has one, and the workspace say."""
    workspace = view.workspaces.by_key(collection.workspace_key)
    return resolve(rt.defaults, session.configuration if session else None, workspace.configuration if workspace else None)


def _ripe(rt: Runtime, collection: Collection, explicit: int) -> bool:
    dream = rt.settings.dream
    enough = explicit - collection.explicit_at_last_dream >= dream.document_threshold
    return enough and dream.enabled and bool(dream.enabled_types)


def _earliest(rt: Runtime, collection: Collection) -> datetime:
    """The first moment at which the collection may be consolidated again by itself."""
    last = collection.last_dream_at
    return rt.clock() if last is None else last + timedelta(hours=rt.settings.dream.min_hours_between_dreams)
