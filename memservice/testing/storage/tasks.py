"""Chapter: tasks and leases."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters.ast import TRUE, equals
from memservice.domain.records import DONE, FAILED, PENDING, Lease
from memservice.spi.repositories import QueueCount
from memservice.spi.storage import Storage, Transaction
from memservice.testing.storage.base import NOW, Chapter, Dataset, keys, populate, together

LATER = NOW + timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def claim(
    storage: Storage, unit: str, owner: str, seconds: float = 60, at: timedelta = timedelta()
) -> Lease | None:
    return storage.write(lambda tx: tx.tasks.claim(unit, owner, NOW + at, seconds))


class TasksChapter(Chapter):
    def test_tasks_are_done_in_the_order_they_were_added(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        first = storage.write(
            lambda tx: tx.tasks.add(
                [dataset.task(9, "a"), dataset.task(8, "b"), dataset.task(7, "a")]
            )
        )
        second = storage.write(
            lambda tx: tx.tasks.add([dataset.task(1, "a", not_before=NOW - timedelta(days=1))])
        )
        with storage.read() as tx:
            assert tx.tasks.pending("a") == [first[0], first[2], second[0]]
            assert tx.tasks.pending("a", limit=2) == [first[0], first[2]]
            assert tx.tasks.pending("nothing") == []
            assert tx.tasks.by_uid(first[1].uid) == first[1]
            assert tx.tasks.by_uid("nothing") is None
        assert storage.write(lambda tx: tx.tasks.add([])) == []

    def test_a_commit_reports_the_units_that_it_gave_work(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        """After the commit. A write that failed or added no task reports nothing."""
        reports: list[set[str]] = []

        def listen(units: Collection[str]) -> None:
            with storage.read() as tx:
                assert set(tx.tasks.ready(NOW, 10)) >= set(units)
            reports.append(set(units))

        def fail(tx: Transaction) -> None:
            tx.tasks.add([dataset.task(3, "c")])
            raise KeyError

        storage.on_commit(listen)
        storage.write(lambda tx: tx.tasks.add([dataset.task(1, "a"), dataset.task(2, "b")]))
        with pytest.raises(KeyError):
            storage.write(fail)
        storage.write(lambda tx: tx.facts.set("contract:commit", "1"))
        assert reports == [{"a", "b"}]

    def test_units_are_ready_the_longest_waiting_first(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        units = ["z", "a", "m", "a", "z", "M"]
        storage.write(
            lambda tx: tx.tasks.add([dataset.task(n, unit) for n, unit in enumerate(units)])
        )
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == ["z", "a", "m", "M"]
            assert tx.tasks.ready(NOW, 2) == ["z", "a"]

    def test_workspaces_take_turns(self, storage: Storage, dataset: Dataset) -> None:
        """Even if one of them has many ready units."""
        other = storage.write(lambda tx: populate(tx, "other"))
        third = storage.write(lambda tx: populate(tx, "third"))
        storage.write(lambda tx: tx.tasks.add([dataset.task(n, f"a{n}") for n in range(5)]))
        storage.write(
            lambda tx: tx.tasks.add(
                [third.task(1, "b1", not_before=LATER), other.task(1, "c1"), other.task(2, "c2")]
            )
        )
        storage.write(
            lambda tx: tx.tasks.add(
                [third.task(2, "b2"), dataset.task(9, "none", workspace_key=None)]
            )
        )
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == [
                "a0",
                "c1",
                "b2",
                "none",
                "a1",
                "c2",
                "a2",
                "a3",
                "a4",
            ]
            assert tx.tasks.ready(NOW, 3) == ["a0", "c1", "b2"]
        assert claim(storage, "a0", "me") is not None
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 3) == ["a1", "c1", "b2"]

    def test_kinds_can_be_left_out(self, storage: Storage, dataset: Dataset) -> None:
        """By the kind of the first pending task of the unit."""
        tasks = [
            dataset.task(1, "a", kind="dream"),
            dataset.task(2, "a", kind="erase"),
            dataset.task(3, "b", kind="erase"),
            dataset.task(4, "c", kind="embed"),
        ]
        storage.write(lambda tx: tx.tasks.add(tasks))
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10, without=("dream",)) == ["b", "c"]
            assert tx.tasks.ready(NOW, 1, without=("dream", "erase")) == ["c"]
            assert tx.tasks.ready(NOW, 10) == ["a", "b", "c"]

    def test_a_task_beyond_the_latest_time_is_due(self, storage: Storage, dataset: Dataset) -> None:
        """A clock that was ahead set that time. Only tasks that never become due are later."""
        hours = [timedelta(hours=hour) for hour in (2, 5, 6)]
        tasks = [dataset.task(n, f"{n}", not_before=NOW + wait) for n, wait in enumerate(hours)]
        storage.write(
            lambda tx: tx.tasks.add([*tasks, dataset.task(7, "never", not_before=r.NEVER)])
        )
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == []
            assert tx.tasks.ready(NOW, 10, NOW + hours[1]) == ["2"]
            assert tx.tasks.ready(NOW + hours[0], 10, NOW + 2 * hours[1]) == ["0"]

    def test_a_task_that_is_not_due_blocks_its_unit(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        storage.write(
            lambda tx: tx.tasks.add(
                [
                    dataset.task(1, "backs off", not_before=LATER),
                    dataset.task(2, "backs off"),
                    dataset.task(3, "b"),
                    dataset.task(4, "b", not_before=LATER),
                ]
            )
        )
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == ["b"]
            assert tx.tasks.ready(LATER - timedelta(microseconds=1), 10) == ["b"]
            assert tx.tasks.ready(LATER, 10) == ["backs off", "b"]

    def test_a_leased_unit_is_not_ready(self, storage: Storage, dataset: Dataset) -> None:
        storage.write(lambda tx: tx.tasks.add([dataset.task(1, "a"), dataset.task(2, "b")]))
        lease = claim(storage, "a", "me")
        assert lease is not None
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == ["b"]
            assert tx.tasks.ready(LATER - timedelta(microseconds=1), 10) == ["b"]
            assert tx.tasks.ready(LATER, 10) == ["a", "b"]
        assert storage.write(lambda tx: tx.tasks.release(lease))
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == ["a", "b"]

    def test_finished_and_failed_tasks_do_not_block(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        a, b, c = storage.write(
            lambda tx: tx.tasks.add([dataset.task(n, "unit") for n in (1, 2, 3)])
        )
        storage.write(lambda tx: tx.tasks.finish([a.key], {"conclusions": 2}, LATER))
        storage.write(lambda tx: tx.tasks.fail(b.key, "it broke", LATER, None))
        with storage.read() as tx:
            assert tx.tasks.pending("unit") == [c]
            assert tx.tasks.ready(NOW, 10) == ["unit"]
            assert tx.tasks.by_uid(a.uid) == replace(
                a, state=DONE, outcome={"conclusions": 2}, finished_at=LATER
            )
            assert tx.tasks.by_uid(b.uid) == replace(
                b, state=FAILED, attempts=1, last_error="it broke", finished_at=LATER
            )
        storage.write(lambda tx: tx.tasks.finish([c.key], {}, LATER))
        with storage.read() as tx:
            assert tx.tasks.ready(LATER, 10) == []

    def test_finishing_touches_pending_tasks_only(self, storage: Storage, dataset: Dataset) -> None:
        a, b = storage.write(
            lambda tx: tx.tasks.add(
                [dataset.task(1, "u"), dataset.task(2, "u", state=FAILED, finished_at=NOW)]
            )
        )
        storage.write(lambda tx: tx.tasks.finish([a.key, b.key], {"n": 1}, LATER))
        storage.write(lambda tx: tx.tasks.finish([a.key], {"n": 2}, LATER))
        with storage.read() as tx:
            assert tx.tasks.by_uid(b.uid) == b
            assert tx.tasks.by_uid(a.uid) == replace(
                a, state=DONE, outcome={"n": 1}, finished_at=LATER
            )

    def test_a_failed_attempt_backs_off_and_blocks_its_unit(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        task, behind = storage.write(
            lambda tx: tx.tasks.add([dataset.task(1, "u"), dataset.task(2, "u")])
        )
        storage.write(lambda tx: tx.tasks.fail(task.key, "first", NOW, LATER))
        storage.write(lambda tx: tx.tasks.fail(task.key, "second", NOW, LATER))
        waiting = replace(task, attempts=2, last_error="second", not_before=LATER)
        with storage.read() as tx:
            assert tx.tasks.pending("u") == [waiting, behind]
            assert tx.tasks.ready(NOW, 10) == []
            assert tx.tasks.ready(LATER, 10) == ["u"]

    def test_untried_tasks_can_be_made_due_at_once(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        """Except tasks that back off or are done."""
        waits, tried, other, finished = storage.write(
            lambda tx: tx.tasks.add(
                [
                    dataset.task(1, "a", not_before=LATER),
                    dataset.task(2, "b", not_before=LATER, attempts=1),
                    dataset.task(3, "c", not_before=LATER, kind="another"),
                    dataset.task(4, "d", not_before=LATER, state=DONE, finished_at=NOW),
                ]
            )
        )
        assert storage.write(lambda tx: tx.tasks.make_due_if_untried(waits))
        assert not storage.write(lambda tx: tx.tasks.make_due_if_untried(tried))
        assert not storage.write(lambda tx: tx.tasks.make_due_if_untried(finished))
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == ["a"]
        assert storage.write(lambda tx: tx.tasks.make_all_due("another", NOW)) == 1
        assert storage.write(lambda tx: tx.tasks.make_all_due("another", NOW)) == 0
        with storage.read() as tx:
            assert tx.tasks.ready(NOW, 10) == ["a", "c"]
            assert tx.tasks.by_uid(other.uid) == replace(other, not_before=r.IMMEDIATELY)

    def test_when_the_next_task_is_due(self, storage: Storage, dataset: Dataset) -> None:
        with storage.read() as tx:
            assert tx.tasks.next_due() is None
        storage.write(
            lambda tx: tx.tasks.add(
                [
                    dataset.task(1, "a", not_before=LATER),
                    dataset.task(2, "b", not_before=NOW + timedelta(microseconds=1)),
                    dataset.task(
                        3, "c", not_before=NOW - timedelta(days=1), state=DONE, finished_at=NOW
                    ),
                ]
            )
        )
        with storage.read() as tx:
            assert tx.tasks.next_due() == NOW + timedelta(microseconds=1)

    def test_purging_erases_old_tasks_of_one_state(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        old, new = NOW - timedelta(days=2), NOW
        rows = [
            dataset.task(1, "u", state=DONE, finished_at=old),
            dataset.task(2, "u", state=DONE, finished_at=new),
            dataset.task(3, "u", state=FAILED, finished_at=old),
            dataset.task(4, "u", created_at=old),
            dataset.task(5, "v", state=DONE, finished_at=old),
        ]
        tasks = storage.write(lambda tx: tx.tasks.add(rows))
        assert storage.write(lambda tx: tx.tasks.purge(DONE, new, 1)) == 1
        assert storage.write(lambda tx: tx.tasks.purge(DONE, new, 10)) == 1
        assert storage.write(lambda tx: tx.tasks.purge(DONE, new, 10)) == 0
        with storage.read() as tx:
            assert keys(tx.rows.page(r.Task)) == keys(tasks[1:4])

    def test_counts_of_the_queue(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        session_key = dataset.session.key
        rows = [
            dataset.task(1, "held", session_key=session_key),
            dataset.task(2, "held", session_key=session_key, state=DONE, finished_at=NOW),
            dataset.task(3, "free", session_key=session_key),
            dataset.task(4, "free", session_key=session_key, not_before=LATER),
            dataset.task(5, "lapsed"),
            dataset.task(6, "held", kind="dream"),
            dataset.task(7, "held", kind="purge"),
            dataset.task(8, "free", state=FAILED, finished_at=NOW),
        ]
        storage.write(lambda tx: tx.tasks.add([*rows, other.task(1, "held")]))
        claim(storage, "held", "me")
        claim(storage, "lapsed", "me", seconds=-1)
        with storage.read() as tx:
            queue_counts = tx.tasks.counts(dataset.workspace.key, ("derive", "dream"), NOW)
            assert {(c.session_key, c.state, c.working): c.tasks for c in queue_counts} == {
                (session_key, PENDING, True): 1,
                (session_key, DONE, False): 1,
                (session_key, PENDING, False): 2,
                (None, PENDING, False): 1,
                (None, PENDING, True): 1,
                (None, FAILED, False): 1,
            }
            assert len(queue_counts) == 6
            assert tx.tasks.counts(
                dataset.workspace.key, ("derive",), NOW, equals(unit="held", state=PENDING)
            ) == [QueueCount(session_key, PENDING, True, 1)]
            assert tx.tasks.counts(10**9, ("derive",), NOW) == []

    def test_the_backlog_counts_tasks_by_kind(self, storage: Storage, dataset: Dataset) -> None:
        other = storage.write(lambda tx: populate(tx, "other"))
        rows = [
            dataset.task(1, "held", created_at=NOW - 3 * SECOND, not_before=r.IMMEDIATELY),
            dataset.task(2, "free", created_at=NOW - 2 * SECOND, not_before=r.IMMEDIATELY),
            dataset.task(3, "free", not_before=NOW - SECOND, created_at=NOW - 5 * SECOND),
            dataset.task(4, "free", not_before=LATER),
            dataset.task(5, "lapsed", kind="dream"),
            dataset.task(6, "free", state=FAILED, finished_at=NOW),
            dataset.task(7, "free", state=DONE, finished_at=NOW),
        ]
        storage.write(lambda tx: tx.tasks.add([*rows, other.task(8, "other")]))
        claim(storage, "held", "me")
        claim(storage, "lapsed", "me", seconds=-1)
        with storage.read() as tx:
            counts = tx.tasks.backlog(NOW, 100)
            assert {(c.kind, c.state, c.due, c.working): c.tasks for c in counts} == {
                ("derive", PENDING, True, True): 1,
                ("derive", PENDING, True, False): 3,
                ("derive", PENDING, False, False): 1,
                ("derive", FAILED, False, False): 1,
                ("dream", PENDING, True, False): 1,
            }
            oldest = {(c.kind, c.state, c.due, c.working): c.oldest for c in counts}
            assert oldest["derive", PENDING, True, True] == NOW - 3 * SECOND
            assert oldest["derive", PENDING, True, False] == NOW - 2 * SECOND
            assert oldest["derive", PENDING, False, False] == LATER
            first = tx.tasks.backlog(NOW, 1)
            assert sorted((c.kind, c.state, c.tasks) for c in first) == [
                ("derive", FAILED, 1),
                ("derive", PENDING, 1),
            ]

    def test_a_lease_has_one_holder(self, storage: Storage) -> None:
        lease = claim(storage, "u", "me")
        assert lease is not None
        assert (lease.unit, lease.owner, lease.expires_at) == (
            "u",
            "me",
            NOW + timedelta(seconds=60),
        )
        assert claim(storage, "u", "you") is None
        assert claim(storage, "u", "me") is None
        assert claim(storage, "u", "you", at=timedelta(seconds=59.999999)) is None
        assert claim(storage, "another", "you") is not None
        assert storage.write(lambda tx: tx.tasks.holds(lease))

    def test_one_of_many_threads_gets_the_lease(self, storage: Storage) -> None:
        for n in range(5):
            owners = [f"owner {k}" for k in range(6)]
            won = together(
                *[lambda owner=owner, n=n: claim(storage, f"unit {n}", owner) for owner in owners]
            )
            leases = [lease for lease in won if lease is not None]
            assert len(leases) == 1
            with storage.read() as tx:
                assert tx.rows.get(Lease, equals(unit=f"unit {n}")) == leases[0]

    def test_one_of_many_threads_takes_over_a_lapsed_lease(self, storage: Storage) -> None:
        for n in range(5):
            unit = f"unit {n}"
            assert claim(storage, unit, "first", seconds=1) is not None
            won = together(
                *[
                    lambda k=k, unit=unit: claim(storage, unit, f"{k}", at=timedelta(seconds=2))
                    for k in range(6)
                ]
            )
            assert len([lease for lease in won if lease is not None]) == 1

    def test_an_expired_lease_changes_hands_under_a_higher_number(self, storage: Storage) -> None:
        first = claim(storage, "u", "me", seconds=1)
        second = claim(storage, "u", "you", at=timedelta(seconds=1))
        assert first is not None
        assert second is not None
        assert (second.key, second.owner) == (first.key, "you")
        assert second.number > first.number
        third = claim(storage, "u", "me", at=timedelta(seconds=120))
        assert third is not None
        assert third.number > second.number

    def test_a_lost_lease_has_no_effect(self, storage: Storage) -> None:
        """Even if the same owner holds the lease again."""
        stale = claim(storage, "u", "me", seconds=1)
        current = claim(storage, "u", "me", at=timedelta(seconds=1))
        assert stale is not None
        assert current is not None
        assert not storage.write(lambda tx: tx.tasks.holds(stale))
        assert not storage.write(lambda tx: tx.tasks.renew(stale, LATER, 60))
        assert not storage.write(lambda tx: tx.tasks.release(stale))
        with storage.read() as tx:
            assert tx.rows.page(Lease) == [current]
        assert storage.write(lambda tx: tx.tasks.holds(current))

    def test_renewing_extends_a_lease(self, storage: Storage) -> None:
        lease = claim(storage, "u", "me", seconds=1)
        assert lease is not None
        assert storage.write(lambda tx: tx.tasks.renew(lease, NOW, 60))
        assert claim(storage, "u", "you", at=timedelta(seconds=30)) is None
        assert storage.write(lambda tx: tx.tasks.holds(lease))
        assert claim(storage, "u", "you", at=timedelta(seconds=60)) is not None

    def test_a_lease_after_a_release_is_another_one(self, storage: Storage) -> None:
        """The old lease must not count as the new one."""
        first = claim(storage, "u", "me")
        assert first is not None
        assert storage.write(lambda tx: tx.tasks.release(first))
        assert not storage.write(lambda tx: tx.tasks.release(first))
        second = claim(storage, "u", "me")
        assert second is not None
        assert (second.key, second.number) != (first.key, first.number)
        assert not storage.write(lambda tx: tx.tasks.holds(first))
        assert not storage.write(lambda tx: tx.tasks.renew(first, NOW, 60))
        assert not storage.write(lambda tx: tx.tasks.release(first))
        assert storage.write(lambda tx: tx.tasks.holds(second))

    def test_results_are_fenced_by_the_lease(self, storage: Storage, dataset: Dataset) -> None:
        """A former holder that checks its lease in its transaction stores nothing; the present
        holder does."""
        task = storage.write(lambda tx: tx.tasks.add([dataset.task(1, "u")]))[0]
        stale = claim(storage, "u", "me", seconds=1)
        lease = claim(storage, "u", "you", at=timedelta(seconds=1))

        def finish(lease: Lease | None) -> bool:
            assert lease is not None

            def commit(tx: Transaction) -> bool:
                if not tx.tasks.holds(lease):
                    return False
                tx.tasks.finish([task.key], {"by": lease.owner}, LATER)
                return True

            return storage.write(commit)

        assert sorted(together(lambda: finish(stale), lambda: finish(lease))) == [False, True]
        with storage.read() as tx:
            assert [task.outcome for task in tx.rows.page(r.Task, TRUE)] == [{"by": "you"}]
