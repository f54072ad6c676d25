"""Is everything there that this installation is made of? Each part is looked at by itself: what is wrong with one hides no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from memservice.domain.errors import MemserviceError, SchemaVersionError
from memservice.domain.filters import all_of, where
from memservice.domain.filters.ast import Compare
from memservice.domain.records import ACTIVE, BUILDING, FAILED, PENDING, RETIRED, Space, Task
from memservice.pipeline import job_queues, presence, reembed
from memservice.runtime import Runtime
from memservice.services import upkeep
from memservice.spi.capabilities import Capability
from memservice.spi.rows import Order
from memservice.spi.storage import View

State = Literal["ok", "degraded", "failed"]
OK: State = "ok"
DEGRADED: State = "degraded"
"""Everything is answered, but not as well, or not as soon, as it is configured to be."""
BROKEN: State = "failed"

LAG = timedelta(seconds=60)
"""Work that was due for longer than this, without anybody at it, waits for a worker."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one part."""

    name: str
    state: State
    found: str
    advice: str = ""
    """What to do, where it is not ok."""


def look(rt: Runtime) -> list[Check]:
    """All parts, the storage first. Nothing is changed, no model is asked."""
    checks = [_storage(rt)]
    if checks[0].state == BROKEN:
        return [*checks, *_plugins(rt)]
    for part in (_built, _vectors, _embedders, _queues, _workers, _work, _plugins):
        try:
            checks += list(part(rt))
        except MemserviceError as error:
            checks.append(Check(part.__name__.strip("_"), BROKEN, str(error)))
    return checks


def overall(checks: list[Check]) -> State:
    states = {check.state for check in checks}
    return BROKEN if BROKEN in states else DEGRADED if DEGRADED in states else OK


def _storage(rt: Runtime) -> Check:
    try:
        rt.storage.check()
    except SchemaVersionError as error:
        return Check("storage", BROKEN, str(error))  # which says what to do
    except MemserviceError as error:
        return Check("storage", BROKEN, str(error), "see that the database is there and that `DB_CONNECTION_URI` is right")
    return Check("storage", OK, f"{rt.storage.name}, schema {rt.storage.schema_version()}")


def _built(rt: Runtime) -> Iterator[Check]:
    try:
        upkeep.check(rt)
    except MemserviceError as error:
        yield Check("counts", BROKEN, str(error), "run what it names")
    else:
        yield Check("counts", OK, "tokens and texts are as this release counts and reads them")


def _vectors(rt: Runtime) -> Iterator[Check]:
    """Can the index be asked? It is, for one space, how much it holds."""
    with rt.storage.read() as view:
        space = view.rows.get(Space, where(state=ACTIVE))
        inside = 0 if space is None or not rt.vectors_transactional else rt.vectors.count(view, space)
    name = rt.settings.vector_store.type or f"in the storage ({rt.storage.name})"
    if space is None:
        yield Check("vectors", OK, f"{name}, empty")
        return
    try:
        number = inside if rt.vectors_transactional else rt.vectors.count(None, space)
    except Exception as error:  # whatever a driver raises: search goes on without it, from text
        yield Check(
            "vectors",
            DEGRADED,
            f"{name} cannot be asked ({type(error).__name__}): search answers from text alone",
            "see that it runs and that `VECTOR_STORE_URL` is right; what it missed is made up for by itself",
        )
        return
    yield Check("vectors", OK, f"{name}, asked for a space of dimension {space.dimension} with {number} vectors")


def _embedders(rt: Runtime) -> Iterator[Check]:
    with rt.storage.read() as view:
        used = view.spaces.embedders_in_use()
        unfinished = view.rows.get(Space, where(state=(BUILDING, RETIRED)))
        moving = unfinished is not None and _is_leased(view, reembed.unit_of(unfinished.workspace_key), rt.clock())
    if unfinished is not None and not moving:
        yield Check(
            "embedder",
            DEGRADED,
            "a move from one embedder to another was not finished: what is answered from is whole, and takes room twice",
            "run `memservice reembed` again: it goes on where it was",
        )
        return
    others = [embedder for embedder in used if embedder != rt.embedder.id]
    if not others:
        yield Check("embedder", OK, f"{rt.embedder.id}, dimension {rt.embedder.dimension}")
        return
    lost = [embedder for embedder in others if rt.embedder_of(embedder) is None]
    if lost:
        yield Check(
            "embedder",
            DEGRADED,
            f"vectors by {', '.join(lost)} cannot be used, {rt.embedder.id} is configured: workspaces with them are answered from text",
            f"configure the embedder that made them, or make them anew: `memservice reembed --to {rt.settings.app.embedder}`",
        )
    else:
        yield Check(
            "embedder",
            OK,
            f"{rt.embedder.id} for new workspaces; {', '.join(others)} for those that began with it",
            f"to move those as well: `memservice reembed --to {rt.settings.app.embedder}`",
        )


def _is_leased(view: View, unit: str, now: datetime) -> bool:
    return any(lease.unit == unit and lease.expires_at > now for lease in view.tasks.leases())


def _queues(rt: Runtime) -> Iterator[Check]:
    url = rt.settings.app.redis_url
    if not url:
        return
    from redis import RedisError

    try:
        with job_queues.connect(url) as client:
            version = client.info("server")["redis_version"]
    except (RedisError, ValueError) as error:
        yield Check(
            "redis",
            DEGRADED,
            f"cannot be reached ({type(error).__name__}): work waits until it is back, none is lost",
            "see that it runs and that `REDIS_URL` is right",
        )
    else:
        yield Check("redis", OK, f"version {version}")


def _workers(rt: Runtime) -> Iterator[Check]:
    if Capability.SHARED not in rt.storage.capabilities:
        return
    with rt.storage.read() as view:
        found = presence.workers(view, rt.clock())
    if not found:
        yield Check("workers", DEGRADED, "none: what is written is stored, nothing is derived from it", "start `memservice worker`")
        return
    differ = [worker.name for worker in found if (worker.reasoners, worker.embedder) != (dict(rt.reasoners), rt.embedder.id)]
    if differ:
        yield Check(
            "workers",
            DEGRADED,
            f"{len(found)}, of which {len(differ)} would use other models than this process ({', '.join(differ)})",
            "give all processes the same settings, and start those again that have older ones",
        )
    else:
        yield Check("workers", OK, str(len(found)))


def _work(rt: Runtime) -> Iterator[Check]:
    now = rt.clock()
    with rt.storage.read() as view:
        taken = {lease.unit for lease in view.tasks.leases() if lease.expires_at > now}
        due = view.rows.page(
            Task, all_of(where(state=PENDING), Compare("not_before", "lte", now)), (Order("not_before"), Order("key")), 100
        )
        failed = view.rows.count(Task, where(state=FAILED))
    waiting = [task for task in due if task.unit not in taken]
    lag = now - waiting[0].not_before if waiting else timedelta()
    if lag > LAG:
        yield Check("work", DEGRADED, f"some waits since {round(lag.total_seconds())} s", "start more workers, or read their logs")
    elif failed:
        yield Check("work", DEGRADED, f"{failed} tasks have failed for good", "see `memservice jobs list --state failed`")
    else:
        yield Check("work", OK, "nothing waits for long")


def _plugins(rt: Runtime) -> Iterator[Check]:
    failures = rt.plugins.failures
    for failure in failures:
        yield Check("plugins", DEGRADED, f"{failure.origin.name}: {failure.reason}", "install what it needs, or remove it")
    if not failures:
        yield Check("plugins", OK, f"{len(rt.plugins.listing())} loaded")
