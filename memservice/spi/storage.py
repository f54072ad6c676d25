"""The storage seam: what an opened store offers, beyond the rows of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

from memservice.spi.capabilities import Capability
from memservice.spi.text import TextIndex
from memservice.spi.transaction import Transaction
from memservice.spi.vectors import VectorIndex

__all__ = ["Finding", "PoolState", "Pooled", "Storage", "Transaction"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PoolState:
    """Connections of one process to its database."""

    in_use: int
    idle: int
    size: int
    """How many are kept open at most."""
    overflow: int
    """How many are open beyond that."""


@runtime_checkable
class Pooled(Protocol):
    """A storage that can tell of its connections, for metrics."""

    def pool(self) -> PoolState | None:
        """None where there are none to tell of, at least not yet. Cheap: asked after every
        request."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a store that answers."""

    state: Literal["degraded", "failed"]
    """`failed`: it does not take writes, or what it gives may be wrong. `degraded`: it does all it
    should, but not as well as it could."""
    found: str
    """For the operator; it may name hosts, paths and users."""
    advice: str
    """What to do. Shown to every caller over HTTP, so it quotes no setting and no error."""


class Storage(Protocol):
    """An opened storage. Safe to use from several threads; with the capability `SHARED`, from
    several processes."""

    name: str
    capabilities: frozenset[Capability]
    text: TextIndex
    """The full-text index that lives in this storage (it has the capability `TRANSACTIONAL`)."""
    vectors: VectorIndex | None
    """The vector index that lives in this storage, if it has one; used while `VECTOR_STORE_TYPE` is
    unset."""

    def write(self, fn: Callable[[Transaction], T]) -> T:
        """Run `fn(view)` in a transaction, commit, and return what it returned.

        All of it is stored, durably, when this returns; nothing of it when it raises. On a
        transient conflict `fn` runs again, so it has no effects outside the view; so it does, a few
        times, when a `UniqueViolation` leaves it, since the other row may be new. Raises
        `Unavailable` if no connection or lock was had in time. A write inside a write (in the same
        thread) is a RuntimeError.
        """
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent view for reading. Raises `Unavailable` as `write` does. Never wrap a model,
        a hook or HTTP in it, unless it is paused (`Transaction.released`)."""
        ...

    def on_commit(self, listener: Callable[[Collection[str]], None]) -> None:
        """Call `listener` after each commit of this object that gave work to units, with their
        names (`tx.tasks.units_with_work`): in the thread of `write`, before `write` returns."""
        ...

    def wait_for_work(self, timeout: float) -> bool:
        """Return True soon after another thread or process committed something, False after
        `timeout` seconds without that.

        A commit since this thread last returned from here counts, so none is missed between two
        calls. May return True without reason. Threads may wait at once.
        """
        ...

    def check(self) -> None:
        """Raise `Unavailable` (not reachable), `SchemaVersionError` (wrong schema; `NoStore`: no
        store) or `Damaged`. Makes nothing."""
        ...

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        """What is wrong with a store that passes `check`: that it takes no writes, for example.
        Empty if nothing is.

        Asked by every look at the readiness, so it costs no more than a small write now and then.
        `thorough`: `memservice doctor` asks, and everything may be read. Raises as `check` does.
        """
        ...

    def reclaim(self, *, thorough: bool = False) -> bool:
        """Let go of what erased rows left outside the rows: their words in indexes and logs, and
        the room that they took.

        One short step; True while there is more to do, and at once False if there is nothing.
        `thorough`: all of it, however long other writes wait meanwhile. Not to be called inside a
        transaction. Raises as `write` does.
        """
        ...

    def schema_version(self) -> str | None:
        """The revision of the schema in the store; None for an empty one."""
        ...

    def migrate(self) -> None:
        """Bring the schema to this release's, under a lock that other processes respect. Raises
        `SchemaVersionError` for a newer one."""
        ...

    def close(self) -> None:
        """Release everything. May be called twice."""
        ...
