"""Checks all parts of this installation, each independently: a failure of one part does not hide
the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

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
from memservice.pipeline.indexing import reconcile
from memservice.plugins import Plugins
from memservice.runtime import Runtime
from memservice.services import index_probe, store_compatibility
from memservice.services.auth import signing_record
from memservice.services.tasks import model_breaker, outbox
from memservice.services.tasks.kinds import DREAM
from memservice.settings import Settings
from memservice.spi.base import RESTORE
from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Examinable
from memservice.spi.rows import BY_KEY, Order
from memservice.spi.storage import Transaction
from memservice.worker import heartbeats, rq_queues

State = Literal["ok", "degraded", "failed"]
OK: State = "ok"
DEGRADED: State = "degraded"
"""All requests are answered, but results are worse or later than configured."""
BROKEN: State = "failed"

LAG = timedelta(seconds=60)
"""Work that has been due for longer, and is not in progress, lacks a worker."""
NEWEST = 100
"""Number of the newest tasks whose creation times are checked."""
SPACES = 5
"""Number of spaces of an external index that are compared with their rows, the first batch of each:
a lost space lacks those."""


class Check(Struct, frozen=True):
    """The result for one part."""

    name: str
    state: State
    found: str
    advice: str = ""
    """What to do if it is not ok. Public over HTTP, so it quotes no setting and no error."""


def look(rt: Runtime, *, thorough: bool = False) -> list[Check]:
    """Check all parts, the storage first; if it has failed, the parts that need no storage.
    `thorough`: may read the whole storage. The only change is one fact, which tests that the
    storage accepts writes; no model is called."""
    storage = _storage(rt, thorough)
    if overall(storage) == BROKEN:
        index = [] if rt.vectors_transactional else _all({"vectors": lambda: [_external_index(rt)]})
        return [
            *storage,
            *index,
            *_all({"embedder": lambda: [_chosen(rt)]}),
            *look_outside(rt.settings, rt.plugins),
        ]
    parts: dict[str, Callable[[], Iterable[Check]]] = {
        "counts": lambda: _built(rt),
        "vectors": lambda: _vectors(rt),
        "embedder": lambda: [*_embedders(rt), *(_files(rt) if thorough else ())],
        "redis": lambda: _queues(rt.settings),
        "workers": lambda: _workers(rt),
        "work": lambda: _work(rt),
        "models": lambda: _models(rt),
        "dreams": lambda: _dreams(rt),
        "clock": lambda: _clock(rt),
        "keys": lambda: _keys(rt),
        "plugins": lambda: _plugins(rt.plugins),
    }
    return [*storage, *_all(parts)]


def look_outside(settings: Settings, plugins: Plugins) -> list[Check]:
    """Check the parts that need no storage, also if it cannot be opened."""
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
                    "run `memservice doctor`, correct the errors that it shows, and check again",
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
        "check `DB_CONNECTION_URI`; `memservice db upgrade` and `memservice serve` create a "
        "new store"
    ),
    SchemaVersionError: (
        "run `memservice db upgrade`, or upgrade memservice if the schema is the newer one"
    ),
    ConfigurationError: "name a database in `DB_CONNECTION_URI` that memservice can use",
    Damaged: RESTORE,
    MemserviceError: "check that the database is running and that `DB_CONNECTION_URI` is right",
}
"""Type of the storage's error → advice. The first match counts."""


def _built(rt: Runtime) -> Iterator[Check]:
    try:
        store_compatibility.check(rt)
    except MemserviceError as error:
        yield Check(
            "counts",
            BROKEN,
            str(error),
            "run the command in the message: `memservice db recount` or `memservice db reindex`",
        )
    else:
        yield Check("counts", OK, "token counts and text indexes match this release")


def _vectors(rt: Runtime) -> Iterator[Check]:
    """Whether the index answers and has all its vectors."""
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
        check = _external_index(rt, spaces)
    mismatch = next((space for space in misfits if space is not None), None)
    if check.state == OK and mismatch is not None:
        text = (
            f"{_index_of(rt)}: some are of dimension {mismatch.dimension}, and those of "
            f"{rt.embedder.id} of {rt.embedder.dimension}"
        )
        check = Check(
            "vectors",
            DEGRADED,
            text,
            "configure their dimension, or create them again: `memservice reembed`",
        )
    yield check


_OTHER: tuple[Literal["lt", "gt"], ...] = ("lt", "gt")


def _external_index(rt: Runtime, spaces: Iterable[Space] = ()) -> Check:
    """Query an external index, which may be unavailable, for a space that never exists and for
    these, in a bounded time."""
    name, seconds = _index_of(rt), rt.settings.vector_store.query_timeout_seconds
    number, looked_at, ends = 0, 0, time.monotonic() + seconds
    try:
        index_probe.ask(rt)
        for space in spaces:
            if time.monotonic() > ends:
                break
            count, missing, dimension = rt.vector_calls.within(
                seconds,
                lambda space=space: _compared(rt, space),  # type: ignore[misc]
            )
            if dimension != space.dimension:
                text = (
                    f"{name} has vectors of dimension {dimension} where {space.dimension} is "
                    "expected"
                )
                return Check(
                    "vectors",
                    DEGRADED,
                    text,
                    "empty that namespace of the index: a worker fills it again",
                )
            if missing:
                text = (
                    f"{name} has {count} vectors of a space and lacks those of {missing} of the "
                    "checked rows"
                )
                return Check("vectors", DEGRADED, text, _FILLED)
            number, looked_at = number + count, looked_at + 1
    except (Unavailable, Damaged):
        raise  # an error of the storage
    except Exception as error:  # a driver may raise anything: search continues with text only
        why = str(error) if isinstance(error, MemserviceError) else type(error).__name__
        return Check(
            "vectors",
            DEGRADED,
            f"{name} cannot be reached ({why}): search uses text only",
            _AWAY,
        )
    return Check("vectors", OK, f"{name}, {number} vectors in {looked_at} spaces looked at")


_FILLED = "a running worker fills it, every `VECTOR_STORE_RECONCILIATION_INTERVAL_SECONDS`"
_AWAY = (
    "check that it runs and that `VECTOR_STORE_URL` is right; a worker then adds missing vectors"
)


def _compared(rt: Runtime, space: Space) -> tuple[int, int, int]:
    """Of a space: the number of its vectors, the number of rows of the first batch that have
    neither a vector nor a pending task to create one, and the dimension of the first vector (the
    space's own if there is none)."""
    first = rt.vectors.fetch(None, space, rt.vectors.keys(None, space, 0, 1))
    dimension = next((len(vector) for vector in first.values()), space.dimension)
    return rt.vectors.count(None, space), len(reconcile.compare(rt, space, 0).missing), dimension


def _index_of(rt: Runtime) -> str:
    return rt.settings.vector_store.type or f"in the storage ({rt.storage.name})"


def _chosen(rt: Runtime) -> Check:
    return Check("embedder", OK, f"{rt.embedder.id}, dimension {rt.embedder.dimension}")


def _files(rt: Runtime) -> Iterator[Check]:
    """Problems of the files of a local embedder."""
    if isinstance(rt.embedder, Examinable):
        for finding in rt.embedder.examine():
            yield Check("embedder", finding.state, finding.found, finding.advice)


def _embedders(rt: Runtime) -> Iterator[Check]:
    with rt.storage.read() as tx:
        used = tx.spaces.embedders_in_use()
        unfinished = tx.rows.get(Space, equals(state=(BUILDING, RETIRED)))
        moving = unfinished is not None and _is_leased(
            tx, outbox.reembed_unit(unfinished.workspace_key), rt.clock()
        )
    if unfinished is not None and not moving:
        yield Check(
            "embedder",
            DEGRADED,
            (
                "a move from one embedder to another is incomplete: the vectors in use are "
                "complete, but two sets of them take space"
            ),
            "run `memservice reembed` again: it continues where it stopped",
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
                "their workspaces use text only"
            ),
            _ANEW,
        )
    else:
        yield Check(
            "embedder",
            OK,
            (
                f"{rt.embedder.id} for new workspaces; {', '.join(others)} for those that "
                "were created with it"
            ),
            "to move those too: `memservice reembed --to` with the value of `EMBEDDER`",
        )


_ANEW = (
    "configure the embedder that created them, or create them again: `memservice reembed --to` "
    "with the value of `EMBEDDER`"
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
        yield Check(
            "redis", BROKEN, str(error), "correct `REDIS_URL`, or unset it to run without Redis"
        )
    except (RedisError, ValueError) as error:
        yield Check(
            "redis",
            DEGRADED,
            (
                f"cannot be reached ({type(error).__name__}): work waits until it is available, "
                "none is lost"
            ),
            "check that it runs and that `REDIS_URL` is right",
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
            "none: messages are stored, but nothing is derived from them",
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
            "give all processes the same settings, and restart those with older ones",
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
            f"the oldest due work has waited for {round(lag.total_seconds())} s",
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
        yield Check("work", OK, "no work is overdue")


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
        number = tx.rows.count(Task, equals(kind=DREAM, state=HELD))
    if number:
        yield Check(
            "dreams",
            DEGRADED,
            f"{number} held for review: they would supersede too much",
            "see `memservice dreams list`, then `show` and `apply` or `discard` each of them",
        )
    else:
        yield Check("dreams", OK, "none is held for review")


def _keys(rt: Runtime) -> Iterator[Check]:
    """Whether the secret was changed without keeping the former one."""
    auth = rt.settings.auth
    if not auth.use_auth:
        return
    with rt.storage.read() as tx:
        if signing_record.is_unknown_to(tx, auth):
            yield Check(
                "keys",
                DEGRADED,
                "the newest key was signed with another AUTH_JWT_SECRET: requests with such keys "
                "get 401",
                "set AUTH_JWT_SECRET_PREVIOUS to the former secret, or create new keys with "
                "`memservice keys create`",
            )


def _clock(rt: Runtime) -> Iterator[Check]:
    """If one of the newest rows is from the future, this clock, or that of the process that wrote
    it, is or was wrong."""
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
                "synchronise the clocks of all machines (NTP); timers that were set in that time "
                "may expire late, all other work is done now"
            ),
        )


def _plugins(plugins: Plugins) -> Iterator[Check]:
    failures = plugins.failures
    for failure in failures:
        yield Check(
            "plugins",
            DEGRADED,
            f"{failure.origin.name}: {failure.reason}",
            "install its requirements, or remove it",
        )
    if not failures:
        yield Check("plugins", OK, f"{len(plugins.listing())} loaded")
