"""Storages that are wrong in one way each, as real ones have been, and the test of the kit that has
to say so."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from itertools import count
from typing import Any, ClassVar, TypeVar

import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace

from memservice.domain.filters.ast import TRUE, All, Condition, Equal, OneOf, Substring
from memservice.domain.filters.ast import equals as having
from memservice.domain.records import Lease
from memservice.spi import repositories
from memservice.spi.rows import BY_KEY, Order, UniqueViolation
from memservice.spi.storage import Finding, Storage, Transaction
from memservice.testing.storage import StorageContract
from memservice_memory.rows import MemoryRows
from memservice_memory.storage import MemoryStorage
from memservice_memory.tables import Snapshot

R = TypeVar("R", bound=Struct)


class Broken(StorageContract):
    """The kit on a broken storage. `caught_by` names tests that have to fail."""

    broken: ClassVar[type[MemoryStorage]]
    caught_by: ClassVar[tuple[str, ...]]

    @pytest.fixture
    def open_storage(self) -> Callable[[], Storage]:
        return self.broken


def with_rows(rows: type[MemoryRows]) -> type[MemoryStorage]:
    return type(rows.__name__, (MemoryStorage,), {"rows_type": rows})


def with_tasks(tasks: type[repositories.Tasks]) -> type[MemoryStorage]:
    class BrokenTransaction(Transaction):
        @cached_property
        def tasks(self) -> repositories.Tasks:
            return tasks(self.rows)

    return type(tasks.__name__, (MemoryStorage,), {"transaction_type": BrokenTransaction})


class RewritesConditions(MemoryRows):
    """Asks for something else than it was asked for."""

    def rewrite(self, condition: Condition) -> Condition:
        raise NotImplementedError

    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        return super().page(record, self.rewrite(condition), order, limit, offset)

    def count(
        self, record: type[Any], condition: Condition = TRUE, limit: int | None = None
    ) -> int:
        return super().count(record, self.rewrite(condition), limit)


class DropsAFilter(RewritesConditions):
    def rewrite(self, condition: Condition) -> Condition:
        return (
            All(condition.parts[:-1])
            if isinstance(condition, All) and len(condition.parts) > 1
            else condition
        )


class LeaksAWorkspace(RewritesConditions):
    def rewrite(self, condition: Condition) -> Condition:
        if isinstance(condition, All):
            return All(tuple(self.rewrite(part) for part in condition.parts))
        return (
            TRUE
            if isinstance(condition, Equal) and condition.field == "workspace_key"
            else condition
        )


class EmptyListMatchesAll(RewritesConditions):
    def rewrite(self, condition: Condition) -> Condition:
        if isinstance(condition, All):
            return All(tuple(self.rewrite(part) for part in condition.parts))
        return TRUE if isinstance(condition, OneOf) and not condition.values else condition


class TakesWildcards(RewritesConditions):
    def rewrite(self, condition: Condition) -> Condition:
        return (
            Substring(condition.field, condition.needle.strip("%"))
            if isinstance(condition, Substring)
            else condition
        )


class IgnoresLimit(MemoryRows):
    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        return super().page(record, condition, order, None, offset)


class OrdersCaseInsensitively(MemoryRows):
    def page(
        self,
        record: type[R],
        condition: Condition = TRUE,
        order: Sequence[Order] = BY_KEY,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        rows = super().page(record, condition)
        for step in reversed(order):
            rows.sort(
                key=lambda row, name=step.field: _folded(getattr(row, name)),  # type: ignore[misc]
                reverse=step.descending,
            )
        return rows[offset : None if limit is None else offset + limit]


def _folded(value: Any) -> tuple[bool, Any]:
    return value is not None, value.lower() if isinstance(value, str) else value


class DeletesOneBatch(MemoryRows):
    """Stops after the first hundred rows."""

    def delete(self, record: type[Any], condition: Condition) -> int:
        return super().delete(
            record, having(key=tuple(row.key for row in self.page(record, condition, limit=100)))
        )


class ForgetsMicroseconds(MemoryRows):
    def put(self, rows: Sequence[R]) -> list[R]:
        return super().put([_coarse(row) for row in rows])


def _coarse(row: Any) -> Any:
    times = {
        name: value.replace(microsecond=0)
        for name, value in asdict(row).items()
        if isinstance(value, datetime)
    }
    return replace(row, **times)


class AllowsDuplicates(MemoryRows):
    """Checks no constraint once a row exists: it replaces unique values."""

    def _store(self, record: type[R], rows: list[R]) -> list[R]:
        try:
            return super()._store(record, rows)
        except UniqueViolation:
            self._own(record).rows.update({row.key: row for row in rows})  # type: ignore[attr-defined]
            return rows


class LosesACommit(MemoryStorage):
    """One in ten, and says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        before = self._snapshot
        with super().transaction() as tx:
            yield tx
        if next(self._numbers) % 10 == 0:
            self._snapshot = before


class KeepsHalfAWrite(MemoryStorage):
    """Commits what was done before the error."""

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        error: BaseException | None = None
        with super().transaction() as tx:
            try:
                yield tx
            except BaseException as caught:
                error = caught
        if error is not None:
            raise error


class WritersDoNotTakeTurns(MemoryStorage):
    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        rows = MemoryRows(self._snapshot, lambda record: next(self._keys[record]))
        yield Transaction(rows)
        time.sleep(0.001)
        self._snapshot = rows.result()


class ReadsWhateverIsThere(MemoryStorage):
    """A read view that is no snapshot: each read sees the newest commit."""

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        storage = self

        class Live(MemoryRows):
            def __getattribute__(self, name: str) -> Any:
                return (
                    dict(storage._snapshot.tables)
                    if name == "_tables"
                    else super().__getattribute__(name)
                )

        yield Transaction(Live(Snapshot()))


class ReusesKeys(MemoryStorage):
    """Counts on from the highest key that is stored."""

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        highest = {
            record: max(table.rows, default=0) for record, table in self._snapshot.tables.items()
        }
        self._keys = defaultdict(
            lambda: count(1), {record: count(key + 1) for record, key in highest.items()}
        )
        with super().transaction() as tx:
            yield tx


class SaysItIsIll(MemoryStorage):
    """After any write that was rolled back."""

    ill = False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        try:
            with super().transaction() as tx:
                yield tx
        except ValueError:
            self.ill = True
            raise

    def examine(self, *, thorough: bool = False) -> Sequence[Finding]:
        return [Finding("failed", "ill", "see a doctor")] if self.ill else []


class ReclaimsForEver(MemoryStorage):
    def reclaim(self, *, thorough: bool = False, erasure: bool = False) -> bool:
        return True


class NeverWakes(MemoryStorage):
    def wait_for_work(self, timeout: float) -> bool:
        return False


class ClaimsTwice(repositories.Tasks):
    """Takes a lease that another owner holds."""

    def claim(self, unit: str, owner: str, now: datetime, seconds: float) -> Lease | None:
        return super().claim(unit, owner, now + timedelta(days=1), seconds - 86400)


class TakesOverUnderTheSameNumber(repositories.Tasks):
    def claim(self, unit: str, owner: str, now: datetime, seconds: float) -> Lease | None:
        lease = super().claim(unit, owner, now, seconds)
        return None if lease is None else self.rows.put([replace(lease, number=1)])[0]


class TestDropsAFilter(Broken):
    broken, caught_by = with_rows(DropsAFilter), ("test_all_parts_must_hold", "test_branches")


class TestLeaksAWorkspace(Broken):
    broken, caught_by = (
        with_rows(LeaksAWorkspace),
        ("test_peers_of_another_workspace_stay_out", "test_conclusions_stay_in_their_workspace"),
    )


class TestEmptyListMatchesAll(Broken):
    broken, caught_by = (
        with_rows(EmptyListMatchesAll),
        ("test_one_of_many_values[0]", "test_leaf[OneOf]"),
    )


class TestTakesWildcards(Broken):
    broken, caught_by = (
        with_rows(TakesWildcards),
        ("test_hostile_values_are_values[%]", "test_leaf[Substring]"),
    )


class TestIgnoresLimit(Broken):
    broken, caught_by = (
        with_rows(IgnoresLimit),
        ("test_limit_and_offset", "test_messages_are_paged_by_position"),
    )


class TestOrdersCaseInsensitively(Broken):
    broken, caught_by = with_rows(OrdersCaseInsensitively), ("test_strings_order_by_code_point",)


class TestDeletesOneBatch(Broken):
    broken, caught_by = (
        with_rows(DeletesOneBatch),
        ("test_delete_erases_all_matching_rows_and_counts_them",),
    )


class TestForgetsMicroseconds(Broken):
    broken, caught_by = (
        with_rows(ForgetsMicroseconds),
        ("test_round_trip[Message]", "test_times_order_to_the_microsecond"),
    )


class TestAllowsDuplicates(Broken):
    broken, caught_by = (
        with_rows(AllowsDuplicates),
        ("test_unique[peers-workspace_key-slug]", "test_of_many_threads_one_stores_the_row"),
    )


class TestSaysItIsIll(Broken):
    broken, caught_by = SaysItIsIll, ("test_a_healthy_store_has_no_findings",)


class TestReclaimsForEver(Broken):
    broken, caught_by = ReclaimsForEver, ("test_reclaiming_ends_and_changes_nothing",)


class TestLosesACommit(Broken):
    broken, caught_by = LosesACommit, ("test_every_commit_is_stored",)


class TestKeepsHalfAWrite(Broken):
    broken, caught_by = KeepsHalfAWrite, ("test_a_write_that_raises_stores_nothing[ValueError]",)


class TestWritersDoNotTakeTurns(Broken):
    broken, caught_by = WritersDoNotTakeTurns, ("test_increase_loses_nothing_among_threads",)


class TestReadsWhateverIsThere(Broken):
    broken, caught_by = ReadsWhateverIsThere, ("test_a_read_is_consistent",)


class TestReusesKeys(Broken):
    broken, caught_by = (
        ReusesKeys,
        ("test_keys_are_never_reused", "test_a_lease_after_a_release_is_another_one"),
    )


class TestNeverWakes(Broken):
    broken, caught_by = (
        NeverWakes,
        (
            "test_waiting_ends_when_another_thread_commits",
            "test_no_commit_is_missed_between_two_waits",
        ),
    )


class TestClaimsTwice(Broken):
    broken, caught_by = (
        with_tasks(ClaimsTwice),
        ("test_a_lease_has_one_holder", "test_one_of_many_threads_gets_the_lease"),
    )


class TestTakesOverUnderTheSameNumber(Broken):
    broken = with_tasks(TakesOverUnderTheSameNumber)
    caught_by = (
        "test_an_expired_lease_changes_hands_under_a_higher_number",
        "test_a_lost_lease_has_no_effect",
    )
