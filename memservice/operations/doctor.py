"""Is everything there that this installation is made of? Each part is looked at by itself: what is
wrong with one hides no other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from memservice.domain.errors import (
    ConfigurationError,
    Damaged,
    MemserviceError,
    NoStore,
    SchemaVersionError,
    Unavailable,
)
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import ACTIVE, BUILDING, FAILED, HELD, PENDING, RETIRED, Space, Task
from memservice.operations import reembed
from memservice.pipeline.indexing import reconcile
from memservice.plugins import Plugins
from memservice.runtime import Runtime
from memservice.services import indexing, store_compatibility
from memservice.services.tasks import model_breaker
from memservice.services.tasks.kinds import DREAM
from memservice.settings import Settings
from memservice.spi.base import RESTORE
from memservice.spi.capabilities import Capability
from memservice.spi.rows import BY_KEY, Order
from memservice.spi.storage import Transaction
from memservice.worker import heartbeats, rq_queues

State = Literal["ok", "degraded", "failed"]
OK: State = "ok"
DEGRADED: State = "degraded"
"""Everything is answered, but not as well, or not as soon, as it is configured to be."""
BROKEN: State = "failed"

LAG = timedelta(seconds=60)
"""Work that was due for longer than this, without anybody at it, waits for a worker."""
NEWEST = 100
"""So many of the newest tasks are looked at for the time at which they were written."""
SPACES = 5
"""So many spaces of an index outside the storage are compared with their rows, of each the first
portion: one that was lost lacks those."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one part."""

    name: str
    state: State
    found: str
    advice: str = ""
    """What to do, where it is not ok. Everybody may read it over HTTP: it quotes no setting and no
    error."""


def look(rt: Runtime, *, thorough: bool = False) -> list[Check]:
    """All parts, the storage first; if it has failed, those that can be looked at without it.
    `thorough`: everything in the storage may be read. Nothing is changed but a fact, by which the
    storage is seen to take writes; no model is asked."""
    storage = _storage(rt, thorough)
    if overall(storage) == BROKEN:
        index = [] if rt.vectors_transactional else _all({"vectors": lambda: [_asked(rt)]})
        return [
            *storage,
            *index,
            *_all({"embedder": lambda: [_chosen(rt)]}),
            *look_outside(rt.settings, rt.plugins),
        ]
    parts: dict[str, Callable[[], Iterable[Check]]] = {
        "counts": lambda: _built(rt),
        "vectors": lambda: _vectors(rt),
        "embedder": lambda: _embedders(rt),
        "redis": lambda: _queues(rt.settings),
        "workers": lambda: _workers(rt),
        "work": lambda: _work(rt),
        "models": lambda: _models(rt),
        "dreams": lambda: _dreams(rt),
        "clock": lambda: _clock(rt),
        "plugins": lambda: _plugins(rt.plugins),
    }
    return [*storage, *_all(parts)]


def look_outside(settings: Settings, plugins: Plugins) -> list[Check]:
    """What can be looked at without the storage, and where it could not even be opened."""
    return _all({"redis": lambda: _queues(settings), "plugins": lambda: _plugins(plugins)})


def _all(parts: dict[str, Callable[[], Iterable[Check]]]) -> list[Check]:
    checks: list[Check] = []
    for name, part in parts.items():
        try:
            checks += part()
        except MemserviceError as error:
            checks.append(
                Check(
                    name,
                    BROKEN,
                    str(error),
                    "`memservice doctor` tells what is wrong: correct that, and look again",
                )
            )
    return checks


def overall(checks: list[Check]) -> State:
    states = {check.state for check in checks}
    return BROKEN if BROKEN in states else DEGRADED if DEGRADED in states else OK


def _storage(rt: Runtime, thorough: bool) -> list[Check]:
    try:
        rt.storage.check()
        findings = rt.storage.examine(thorough=thorough)
        if findings:
            return [
                Check("storage", finding.state, finding.found, finding.advice)
                for finding in findings
            ]
        return [Check("storage", OK, f"{rt.storage.name}, schema {rt.storage.schema_version()}")]
    except MemserviceError as error:
        advice = next(advice for kind, advice in _ADVICE.items() if isinstance(error, kind))
        return [Check("storage", BROKEN, str(error), advice)]


_ADVICE: dict[type[MemserviceError], str] = {
    NoStore: (
        "check `DB_CONNECTION_URI`; a new store is made by `memservice db upgrade` and by "
        "`memservice serve`"
    ),
    SchemaVersionError: (
        "run `memservice db upgrade`, or upgrade memservice if the schema is the newer one"
    ),
    ConfigurationError: "name a database in `DB_CONNECTION_URI` that memservice can use",
    Damaged: RESTORE,
    MemserviceError: "see that the database is there and that `DB_CONNECTION_URI` is right",
}
"""By what the storage said, the first that fits."""


def _built(rt: Runtime) -> Iterator[Check]:
    try:
        store_compatibility.check(rt)
    except MemserviceError as error:
        yield Check(
            "counts",
            BROKEN,
            str(error),
            "run the command that it names: `memservice db recount` or `memservice db reindex`",
        )
    else:
        yield Check("counts", OK, "tokens and texts are as this release counts and reads them")


def _vectors(rt: Runtime) -> Iterator[Check]:
    """Does the index answer, and has it what it should have?"""
    chosen = equals(state=ACTIVE, embedder=rt.embedder.id)
    with rt.storage.read() as tx:
        spaces = tx.rows.page(Space, equals(state=ACTIVE), BY_KEY, SPACES)
        misfits = [
            tx.rows.get(Space, all_of(chosen, Compare("dimension", how, rt.embedder.dimension)))
            for how in _OTHER
        ]
        inside = (
            sum(rt.vectors.count(tx, space) for space in spaces) if rt.vectors_transactional else 0
        )
    if rt.vectors_transactional:
        check = Check(
            "vectors", OK, f"{_index_of(rt)}, {inside} vectors in {len(spaces)} spaces looked at"
        )
    else:
        check = _asked(rt, spaces)
    mismatch = next((space for space in misfits if space is not None), None)
    if check.state == OK and mismatch is not None:
        found = (
            f"{_index_of(rt)}: some are of dimension {mismatch.dimension}, and those of "
            f"{rt.embedder.id} of {rt.embedder.dimension}"
        )
        check = Check(
            "vectors",
            DEGRADED,
            found,
            "configure the dimension that they have, or make them anew: `memservice reembed`",
        )
    yield check


_OTHER: tuple[Literal["lt", "gt"], ...] = ("lt", "gt")


def _asked(rt: Runtime, spaces: Iterable[Space] = ()) -> Check:
    """Ask an index outside the storage, which may be away, for a space that is never there and for
    these, in a bounded time."""
    name, seconds = _index_of(rt), rt.settings.vector_store.query_timeout_seconds
    never = Space(
        workspace_key=0,
        kind=indexing.CONCLUSION,
        embedder=rt.embedder.id,
        dimension=rt.embedder.dimension,
        state=ACTIVE,
        created_at=rt.clock(),
    )
    number, looked_at, ends = 0, 0, time.monotonic() + seconds
    try:
        rt.vector_calls.within(seconds, lambda: rt.vectors.count(None, never))
        for space in spaces:
            if time.monotonic() > ends:
                break
            held, missing, dimension = rt.vector_calls.within(
                seconds,
                lambda space=space: _compared(rt, space),  # type: ignore[misc]
            )
            if dimension != space.dimension:
                found = (
                    f"{name} has vectors of dimension {dimension} where {space.dimension} is "
                    "expected"
                )
                return Check(
                    "vectors",
                    DEGRADED,
                    found,
                    "empty that namespace of the index: it is filled again by itself",
                )
            if missing:
                found = (
                    f"{name} has {held} vectors of a space in which it lacks {missing} of the "
                    "rows that were looked at"
                )
                return Check("vectors", DEGRADED, found, _FILLED)
            number, looked_at = number + held, looked_at + 1
    except (Unavailable, Damaged):
        raise  # that is the storage
    except Exception as error:  # whatever a driver raises: search goes on without it, from text
        why = str(error) if isinstance(error, MemserviceError) else type(error).__name__
        return Check(
            "vectors",
            DEGRADED,
            f"{name} cannot be asked ({why}): search answers from text alone",
            _AWAY,
        )
    return Check("vectors", OK, f"{name}, {number} vectors in {looked_at} spaces looked at")


_FILLED = (
    "it is filled by itself as long as a worker runs, every "
    "`VECTOR_STORE_RECONCILIATION_INTERVAL_SECONDS`"
)
_AWAY = (
    "see that it runs and that `VECTOR_STORE_URL` is right; what it missed is made up for by itself"
)


def _compared(rt: Runtime, space: Space) -> tuple[int, int, int]:
    """Of a space: how many vectors it has, how many rows of the first portion have none though no
    task waits that gives them one, and the dimension of the first vector (the space's own if there
    is none)."""
    first = rt.vectors.fetch(None, space, rt.vectors.keys(None, space, 0, 1))
    dimension = next((len(vector) for vector in first.values()), space.dimension)
    return rt.vectors.count(None, space), len(reconcile.compare(rt, space, 0).missing), dimension


def _index_of(rt: Runtime) -> str:
    return rt.settings.vector_store.type or f"in the storage ({rt.storage.name})"


def _chosen(rt: Runtime) -> Check:
    return Check("embedder", OK, f"{rt.embedder.id}, dimension {rt.embedder.dimension}")


def _embedders(rt: Runtime) -> Iterator[Check]:
    with rt.storage.read() as tx:
        used = tx.spaces.embedders_in_use()
        unfinished = tx.rows.get(Space, equals(state=(BUILDING, RETIRED)))
        moving = unfinished is not None and _is_leased(
            tx, reembed.unit_of(unfinished.workspace_key), rt.clock()
        )
    if unfinished is not None and not moving:
        yield Check(
            "embedder",
            DEGRADED,
            (
                "a move from one embedder to another was not finished: what is answered from "
                "is whole, and takes room twice"
            ),
            "run `memservice reembed` again: it goes on where it was",
        )
        return
    others = [embedder for embedder in used if embedder != rt.embedder.id]
    if not others:
        yield _chosen(rt)
        return
    lost = [embedder for embedder in others if rt.embedder_of(embedder) is None]
    if lost:
        yield Check(
            "embedder",
            DEGRADED,
            (
                f"vectors by {', '.join(lost)} cannot be used, {rt.embedder.id} is configured: "
                "workspaces with them are answered from text"
            ),
            _ANEW,
        )
    else:
        yield Check(
            "embedder",
            OK,
            (
                f"{rt.embedder.id} for new workspaces; {', '.join(others)} for those that "
                "began with it"
            ),
            "to move those as well: `memservice reembed --to`, and the name that `EMBEDDER` has",
        )


_ANEW = (
    "configure the embedder that made them, or make them anew: `memservice reembed --to`, and "
    "the name that `EMBEDDER` has"
)


def _is_leased(tx: Transaction, unit: str, now: datetime) -> bool:
    return any(lease.unit == unit and lease.expires_at > now for lease in tx.tasks.leases())


def _queues(settings: Settings) -> Iterator[Check]:
    url = settings.app.redis_url
    if not url:
        return
    from redis import RedisError

    try:
        with rq_queues.connect(url) as client:
            version = client.info("server")["redis_version"]
    except ConfigurationError as error:
        yield Check("redis", BROKEN, str(error), "correct `REDIS_URL`, or unset it to do without")
    except (RedisError, ValueError) as error:
        yield Check(
            "redis",
            DEGRADED,
            (
                f"cannot be reached ({type(error).__name__}): work waits until it is back, "
                "none is lost"
            ),
            "see that it runs and that `REDIS_URL` is right",
        )
    else:
        yield Check("redis", OK, f"version {version}")


def _workers(rt: Runtime) -> Iterator[Check]:
    if Capability.SHARED not in rt.storage.capabilities:
        return
    with rt.storage.read() as tx:
        workers = heartbeats.workers(tx, rt.clock())
    if not workers:
        yield Check(
            "workers",
            DEGRADED,
            "none: what is written is stored, nothing is derived from it",
            "start `memservice worker`",
        )
        return
    differ = [
        worker.name
        for worker in workers
        if (worker.reasoners, worker.embedder) != (dict(rt.reasoners), rt.embedder.id)
    ]
    if differ:
        yield Check(
            "workers",
            DEGRADED,
            (
                f"{len(workers)}, of which {len(differ)} would use other models than this "
                f"process ({', '.join(differ)})"
            ),
            "give all processes the same settings, and start those again that have older ones",
        )
    else:
        yield Check("workers", OK, str(len(workers)))


def _work(rt: Runtime) -> Iterator[Check]:
    now = rt.clock()
    with rt.storage.read() as tx:
        taken = {lease.unit for lease in tx.tasks.leases() if lease.expires_at > now}
        due = tx.rows.page(
            Task,
            all_of(equals(state=PENDING), Compare("not_before", "lte", now)),
            (Order("not_before"), Order("key")),
            100,
        )
        failed = tx.rows.count(Task, equals(state=FAILED))
    waiting = [task for task in due if task.unit not in taken]
    lag = max((now - task.due_since for task in waiting), default=timedelta())
    if lag > LAG:
        yield Check(
            "work",
            DEGRADED,
            f"some waits since {round(lag.total_seconds())} s",
            "start more workers, or read their logs",
        )
    elif failed:
        yield Check(
            "work",
            DEGRADED,
            f"{failed} tasks have failed permanently",
            "see `memservice jobs list --state failed`",
        )
    else:
        yield Check("work", OK, "nothing waits for long")


def _models(rt: Runtime) -> Iterator[Check]:
    """Language models whose circuit breaker is open. Calls none."""
    with rt.storage.read() as tx:
        outages = [
            (outage, model_breaker.waiting(tx, outage)) for outage in model_breaker.current(tx)
        ]
    for outage, waiting in outages:
        yield Check("models", DEGRADED, f"{outage.shown()}; {waiting} work units wait", _NO_MODEL)
    if not outages:
        yield Check("models", OK, "no language model is known to be unavailable")


_NO_MODEL = (
    "check the key, the base URL, the model's name and the quota. A worker tries again by itself, "
    "and at once when it is restarted; no work is lost"
)


def _dreams(rt: Runtime) -> Iterator[Check]:
    with rt.storage.read() as tx:
        held = tx.rows.count(Task, equals(kind=DREAM, state=HELD))
    if held:
        yield Check(
            "dreams",
            DEGRADED,
            f"{held} held for review: they would supersede too much",
            "see `memservice dreams list`, then `show` and `apply` or `discard` each of them",
        )
    else:
        yield Check("dreams", OK, "none is held for review")


def _clock(rt: Runtime) -> Iterator[Check]:
    """Rows from the future, among the newest, say that this clock, or that of a process that wrote
    them, is wrong or was."""
    with rt.storage.read() as tx:
        newest = tx.rows.page(Task, order=(Order("key", descending=True),), limit=NEWEST)
    ahead = max((task.created_at - rt.clock() for task in newest), default=timedelta())
    if ahead > LAG:
        yield Check(
            "clock",
            DEGRADED,
            (
                f"work was written {round(ahead.total_seconds())} s in the future: a clock was "
                "ahead, or this one is behind"
            ),
            (
                "see that all machines keep the same time (NTP); timers that were set "
                "meanwhile may go off late, all other work is done now"
            ),
        )


def _plugins(plugins: Plugins) -> Iterator[Check]:
    failures = plugins.failures
    for failure in failures:
        yield Check(
            "plugins",
            DEGRADED,
            f"{failure.origin.name}: {failure.reason}",
            "install what it needs, or remove it",
        )
    if not failures:
        yield Check("plugins", OK, f"{len(plugins.listing())} loaded")
