"""The storage seam: an opened store. `transaction` has the operations on rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from memservice.spi.capabilities import Capability
from memservice.spi.text import TextIndex
from memservice.spi.transaction import Transaction
from memservice.spi.vectors import VectorIndex

__all__ = ["Finding", "PoolState", "Pooled", "ReplicaReads", "Replicated", "Storage", "Transaction"]

T = TypeVar("T")


class PoolState(Struct, frozen=True):
    """Connections of one process to its database."""

    in_use: int
    idle: int
    size: int
    """Maximum number of connections that stay open."""
    overflow: int
    """Connections beyond that number."""


@runtime_checkable
class Pooled(Protocol):
    """A storage that reports its connections, for metrics."""

    def pool(self) -> PoolState | None:
        """None if there is no pool, or none yet. Cheap: called after every request."""
        ...


class ReplicaReads(Struct, frozen=True):
    """Reads of this process that were allowed at a replica, since its start."""

    replica: int
    """Answered there."""
    behind: int
    """Answered by the primary, because the replica had not caught up."""
    away: int
    """Answered by the primary, because the replica could not be used."""


@runtime_checkable
class Replicated(Protocol):
    """A storage that can read from a replica (`DB_READ_CONNECTION_URI`)."""

    def reading(self, fn: Callable[[], T]) -> T:
        """The result of `fn`, which only reads. Its calls of `read` and `read_committed` in this
        thread may use a replica, if that has everything that was committed before `reading` was
        called. `fn` runs a second time if the replica fails."""
        ...

    def replica_reads(self) -> ReplicaReads | None:
        """None if there is no replica. Cheap: called after every request."""
        ...


class Finding(Struct, frozen=True):
    """A problem of a store that answers."""

    state: Literal["degraded", "failed"]
    """`failed`: writes fail, or reads may return wrong data. `degraded`: everything works, but not
    as well as it could."""
    found: str
    """The problem, for the operator; it may name hosts, paths and users."""
    advice: str
    """What to do. Shown to every caller over HTTP, so it quotes neither settings nor errors."""


class Storage(Protocol):
    """An opened storage. Safe to use from several threads; with the capability `SHARED`, from
    several processes. Then `wait_for_work` also returns after their commits: a storage over
    `memservice.spi.base.BaseStorage` overrides `changed_elsewhere` and sets `poll_seconds`, or
    overrides `wait_for_work`."""

    name: str
    capabilities: frozenset[Capability]
    text: TextIndex
    """The full-text index of this storage (it has the capability `TRANSACTIONAL`)."""
    vectors: VectorIndex | None
    """The vector index of this storage, if it has one; used while `VECTOR_STORE_TYPE` is unset."""

    def write(self, fn: Callable[[Transaction], T]) -> T:
        """Run `fn(tx)` in a transaction, commit, and return its result.

        When this returns, everything is stored durably; when it raises, nothing is. On a transient
        conflict `fn` runs again, so it must have no effects outside the transaction. It also runs
        again, a few times, after a `UniqueViolation`, because the other row may be new. Raises
        `Unavailable` if there is no connection or lock in time, and RuntimeError for a write inside
        a write of the same thread.
        """
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent transaction for reading. Raises `Unavailable` as `write` does. Do not call a
        model, a hook or HTTP inside it, unless it is released (`Transaction.released`)."""
        ...

    def read_committed(self) -> AbstractContextManager[Transaction]:
        """Like `read`, but each call sees what is committed at that moment, and the transaction
        cannot be released. Cheaper for a request whose reads need not agree with each other."""
        ...

    def on_commit(self, listener: Callable[[Collection[str]], None]) -> None:
        """Call `listener` after each commit of this object that added work, with the names of the
        units (`tx.tasks.units_with_work`): in the thread of `write`, before `write` returns."""
        ...

    def wait_for_work(self, timeout: float) -> bool:
        """Return True soon after another thread or process commits something, False after
        `timeout` seconds without a commit.

        Commits since the last return in this thread count, so a thread misses none between two
        calls. It may return True without a commit. Several threads may wait at once.
        """
        ...

    def check(self) -> None:
        """Raise `Unavailable` (not reachable), `SchemaVersionError` (wrong schema; `NoStore`: no
        store) or `Damaged`. Creates nothing."""
        ...

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        """Problems of a store that passes `check`, for example that writes fail. Empty if there are
        none.

        Every readiness check calls it, so it costs at most a small write now and then. `thorough`:
        for `memservice doctor`, it may read everything. Raises as `check` does.
        """
        ...

    def reclaim(self, *, thorough: bool = False, erasure: bool = False) -> bool:
        """Remove the remains of erased rows outside the rows: their words in indexes and logs, and
        their disk space.

        It does one short step and returns True while there is more to do; False at once if there is
        nothing. `thorough`: it does everything in one call, even if other writes wait long.
        `erasure`: rows were erased just now; it returns False only after the logs of the storage
        were emptied since. Do not call it inside a transaction. Raises as `write` does.
        """
        ...

    def schema_version(self) -> str | None:
        """The revision of the schema in the store; None for an empty one."""
        ...

    def migrate(self) -> None:
        """Migrate the schema to that of this release, under a lock that other processes respect.
        Raises `SchemaVersionError` for a newer schema."""
        ...

    def close(self) -> None:
        """Release everything. May be called twice."""
        ...
