"""What reads and writes cost does not grow with the store: the same number of statements, and none
that scans a large table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from psycopg.pq import TransactionStatus

from memservice.domain import records as r
from memservice.domain.filters.ast import All, Compare, Contains, Equal, equals
from memservice.services import visibility
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction
from memservice.testing.storage.base import NOW, Dataset, populate
from memservice_sql.storage import SqlStorage
from support.stores.plans import plan_of_postgres, plan_of_sqlite, scans, trace
from support.stores.stores import migrated_on

# In one process, which fills the stores once.
pytestmark = pytest.mark.xdist_group("sql-cost")

SMALL = 10
SCANNED_BELOW = 10_000
"""Rows. PostgreSQL scans smaller tables, unless it is told to do so only if no index helps."""
STORES = [
    pytest.param(("sqlite", 1_000), id="sqlite"),
    pytest.param(("postgres", 50), id="small postgres"),
    pytest.param(("postgres", SCANNED_BELOW), marks=pytest.mark.heavy, id="postgres"),
]
"""Where, and the larger size."""


@dataclass
class Sized:
    """A store with as many messages, conclusions and tasks; half of the tasks are done, the rest
    are in 20 units."""

    storage: SqlStorage
    dataset: Dataset
    size: int
    messages: list[r.Message]
    statements: list[str] = field(default_factory=list)

    def count(self, job: Callable[[Transaction], Any], *, writing: bool) -> int:
        """How many statements the database runs for the job, without beginning and end of the
        transaction, and without the look at the schema that is taken once a second."""
        self.statements.clear()
        if writing:
            self.storage.write(job)
        else:
            with self.storage.read() as tx:
                job(tx)
        return len(
            [
                sql
                for sql in self.statements
                if not sql.startswith(("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE"))
                and "alembic_version" not in sql
            ]
        )


def fill(storage: SqlStorage, size: int) -> Sized:
    dataset = storage.write(lambda tx: populate(tx, "w"))

    def store(tx: Transaction) -> list[r.Message]:
        messages = tx.messages.append(
            [dataset.message(seq, metadata={"n": seq}) for seq in range(1, size + 1)]
        )
        tx.conclusions.put(
            [
                dataset.conclusion(n, source_ids=[dataset.uid(n)], message_keys=[messages[0].key])
                for n in range(size)
            ]
        )
        tx.tasks.add(
            [
                dataset.task(
                    n, f"unit {n % 20}", state=r.PENDING if n % 2 else r.DONE, finished_at=NOW
                )
                for n in range(size)
            ]
        )
        tx.peers.put([dataset.peer(f"peer-{n}", n) for n in range(size // 10)])
        return messages

    messages = storage.write(store)
    sized = Sized(storage, dataset, size, messages)
    # Each connection of the pool tells which statements it runs; the pool is opened anew, so that
    # all do.
    sa.event.listen(
        storage.engine, "connect", lambda driver, record: trace(driver, sized.statements)
    )
    storage.engine.dispose()
    return sized


@pytest.fixture(scope="module", params=STORES)
def sized(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, own_statements: None
) -> Iterator[tuple[Sized, ...]]:
    dialect, large = request.param
    with ExitStack() as opened:
        yield tuple(
            fill(
                opened.enter_context(migrated_on(dialect, tmp_path_factory.mktemp("cost"))),
                size,
            )
            for size in (SMALL, large)
        )


def test_a_read_of_what_is_committed_begins_no_transaction(sized: tuple[Sized, ...]) -> None:
    storage = sized[0].storage
    for read, expected in ((storage.read, True), (storage.read_committed, False)):
        with read() as tx:
            assert tx.workspaces.locate("w").workspace is not None
            connection = tx.rows.connection.connection.driver_connection  # type: ignore[attr-defined]
            open_transaction = (
                connection.info.transaction_status != TransactionStatus.IDLE
                if isinstance(connection, psycopg.Connection)
                else connection.in_transaction
            )
            assert open_transaction == expected


READS: dict[str, Callable[[Transaction, Sized], Any]] = {
    "locate": lambda tx, s: tx.workspaces.locate("w", "talk", "bob"),
    "message": lambda tx, s: tx.messages.by_uid(s.dataset.session.key, s.messages[-1].uid),
    "messages by key": lambda tx, s: tx.messages.by_keys([m.key for m in s.messages[-5:]]),
    "run": lambda tx, s: tx.messages.run(s.dataset.session.key, s.size - 5, s.size),
    "page": lambda tx, s: tx.messages.page(s.dataset.session.key, limit=5),
    "filtered page": lambda tx, s: tx.messages.page(
        s.dataset.session.key, Contains("metadata", {"n": 3}), limit=5
    ),
    "filtered page and total": lambda tx, s: tx.messages.page_and_total(
        s.dataset.session.key, Contains("metadata", {"n": 3}), False, 5, 0
    ),
    "matches counted": lambda tx, s: tx.messages.counted(
        s.dataset.session.key, Contains("metadata", {"n": 3})
    ),
    "count": lambda tx, s: tx.messages.count(s.dataset.session.key, Equal("author", "bob")),
    "cut-off": lambda tx, s: tx.messages.seq_reaching(s.dataset.session.key, 50),
    "positions": lambda tx, s: tx.messages.positions([m.key for m in s.messages[:5]]),
    "around": lambda tx, s: tx.messages.around([s.messages[n].key for n in (0, 2, -1)], 2),
    "messages per day": lambda tx, s: tx.messages.per_day(
        s.messages[-1].key - 5, s.messages[-1].key
    ),
    "newest key": lambda tx, s: tx.messages.newest_key(),
    "last messages": lambda tx, s: tx.workspaces.last_messages([s.dataset.workspace.key]),
    "some tasks that are due": lambda tx, s: tx.rows.count(
        r.Task, All((Equal("state", r.PENDING), Compare("not_before", "lte", NOW))), 5
    ),
    "some failed tasks": lambda tx, s: tx.rows.count(
        r.Task, All((Equal("state", r.FAILED), Compare("finished_at", "gt", r.IMMEDIATELY))), 5
    ),
    "the task that is due longest": lambda tx, s: tx.rows.page(
        r.Task,
        All((Equal("state", r.PENDING), Equal("not_before", r.IMMEDIATELY))),
        (Order("key"),),
        1,
    ),
    "sizes": lambda tx, s: s.storage.text.sizes(tx, "message", [s.dataset.workspace.key]),
    "matching": lambda tx, s: tx.messages.matching(
        s.dataset.workspace.key, [m.key for m in s.messages[:5]], Equal("author", "alice")
    ),
    "messages of an author": lambda tx, s: tx.rows.page(
        r.Message, equals(author_key=s.dataset.bob.key), limit=5
    ),
    "summaries": lambda tx, s: tx.summaries.of_session(s.dataset.session.key),
    "conclusions": lambda tx, s: tx.conclusions.page(s.dataset.workspace.key, limit=5),
    "conclusions of a pair": lambda tx, s: tx.conclusions.page(
        s.dataset.workspace.key,
        equals(observer_key=s.dataset.alice.key, observed_key=s.dataset.alice.key),
        limit=5,
    ),
    "conclusions of a pair by name": lambda tx, s: tx.conclusions.page(
        s.dataset.workspace.key, equals(observer="alice", observed="bob"), limit=5
    ),
    "the same conclusion": lambda tx, s: tx.conclusions.same(
        s.dataset.collection.key, r.EXPLICIT, ["a", "b"], None
    ),
    "resting on": lambda tx, s: tx.conclusions.resting_on(
        s.dataset.workspace.key, s.dataset.uid(3)
    ),
    "conclusions of messages": lambda tx, s: tx.conclusions.of_messages(
        s.dataset.workspace.key, [s.messages[-1].key]
    ),
    "conclusions based on others": lambda tx, s: tx.conclusions.based_on(
        s.dataset.workspace.key, [s.dataset.uid(3), s.dataset.uid(4)]
    ),
    "conclusion": lambda tx, s: tx.conclusions.by_uid(s.dataset.workspace.key, s.dataset.uid(2003)),
    "conclusions to purge": lambda tx, s: tx.rows.page(
        r.Conclusion, All((Equal("state", r.DELETED), Compare("deleted_at", "lt", NOW))), limit=5
    ),
    "conclusions of a pair by keys": lambda tx, s: tx.conclusions.by_keys(
        [1, 2, 3], equals(observer="alice", observed="bob", workspace_key=s.dataset.workspace.key)
    ),
    "sessions of a peer": lambda tx, s: tx.sessions.page_of_peer(s.dataset.alice.key),
    "peers of a session": lambda tx, s: tx.peers.page_of_session(s.dataset.session.key),
    "peers": lambda tx, s: tx.peers.page(s.dataset.workspace.key, limit=5),
    "peers by name": lambda tx, s: tx.peers.named(s.dataset.workspace.key, ["alice", "bob"]),
    "next due": lambda tx, s: tx.tasks.next_due(),
    "pending": lambda tx, s: tx.tasks.pending("unit 1", 5),
    "queue": lambda tx, s: tx.tasks.counts(s.dataset.workspace.key, ("derive",), NOW),
    "backlog": lambda tx, s: tx.tasks.backlog(NOW, 5),
    "task": lambda tx, s: tx.tasks.by_uid(s.dataset.uid(3003)),
}

WRITES: dict[str, Callable[[Transaction, Sized], Any]] = {
    "lock a session": lambda tx, s: tx.sessions.by_key(s.dataset.session.key, lock=True),
    "lock messages": lambda tx, s: tx.locked(r.Message, [m.key for m in s.messages[:5]]),
    "append": lambda tx, s: tx.messages.append(
        [s.dataset.message(s.size + n, uid=f"new {n}") for n in (1, 2, 3)]
    ),
    "change a message": lambda tx, s: tx.messages.save(replace(s.messages[2], content="new")),
    "conclude": lambda tx, s: tx.conclusions.put(
        [s.dataset.conclusion(s.size + 1, uid="new", source_ids=["a"])]
    ),
    "reinforce": lambda tx, s: tx.conclusions.reinforce([1, 2]),
    "add a task": lambda tx, s: tx.tasks.add([s.dataset.task(1, "unit 1", uid="new")]),
    "claim": lambda tx, s: tx.tasks.claim("unit 1", "me", NOW, 60),
    "finish tasks": lambda tx, s: tx.tasks.finish([2, 4], {}, NOW),
    "fail a task": lambda tx, s: tx.tasks.fail(2, "why", NOW, NOW + timedelta(seconds=5)),
    "purge tasks": lambda tx, s: tx.tasks.purge(r.DONE, NOW - timedelta(days=1), 5),
    "erase messages": lambda tx, s: tx.rows.delete(
        r.Message, equals(key=(s.messages[7].key, s.messages[8].key))
    ),
    "erase conclusions": lambda tx, s: tx.rows.delete(r.Conclusion, equals(key=(7, 8))),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_takes_as_many_statements_at_any_size(sized: tuple[Sized, ...], name: str) -> None:
    small, large = (
        one.count(lambda tx, one=one: READS[name](tx, one), writing=False)  # type: ignore[misc]
        for one in sized
    )
    assert small == large
    assert 1 <= small <= 2


@pytest.mark.parametrize("name", WRITES)
def test_a_write_takes_as_many_statements_at_any_size(sized: tuple[Sized, ...], name: str) -> None:
    small, large = (
        one.count(lambda tx, one=one: WRITES[name](tx, one), writing=True)  # type: ignore[misc]
        for one in sized
    )
    assert small == large
    assert 1 <= small <= 5


def test_a_race_for_a_lease_is_one_statement_that_does_not_fail(sized: tuple[Sized, ...]) -> None:
    """A worker that comes second is the ordinary case among several: the log of the database has no
    error for each."""
    one = sized[0]
    lease = r.Lease(unit="a race", owner="me", number=1, expires_at=NOW)
    assert one.storage.write(lambda tx: tx.tasks.begin(lease)) is not None
    again: list[r.Lease | None] = []
    assert (
        one.count(
            lambda tx: again.append(tx.tasks.begin(replace(lease, owner="you"))), writing=True
        )
        == 1
    )
    assert again == [None]
    (statement,) = [sql for sql in one.statements if "INSERT" in sql]
    assert "ON CONFLICT DO NOTHING" in statement
    assert not any("SAVEPOINT" in sql or "ROLLBACK" in sql for sql in one.statements)


def test_rows_are_locked_in_the_order_of_their_keys(sized: tuple[Sized, ...]) -> None:
    """Else two writers that lock the same rows may wait for each other."""
    one = sized[0]
    keys = [message.key for message in one.messages[3:0:-1]]
    assert one.count(lambda tx: tx.locked(r.Message, keys), writing=True) == 1
    (statement,) = [sql for sql in one.statements if "FROM messages" in sql]
    assert "ORDER BY messages.key" in statement.replace('"', "")


def test_a_browser_session_and_its_member_are_read_in_one_statement(
    sized: tuple[Sized, ...],
) -> None:
    one = sized[0]
    member = r.ConsoleMember(uid="m", name="olga", password_hash="", role=r.OWNER, created_at=NOW)
    session = r.BrowserSession(
        uid="s", digest="d", member_uid="m", address="", client="", expires_at=NOW, created_at=NOW
    )
    one.storage.write(lambda tx: (tx.console_members.save(member), tx.sign_ins.add(session)))
    for digests in (["d", "e"], ["e"]):
        recognise = one.count(
            lambda tx, digests=digests: tx.sign_ins.recognised(digests),  # type: ignore[misc]
            writing=False,
        )
        assert recognise == 1


def test_nothing_scans_a_large_table(sized: tuple[Sized, ...]) -> None:
    """Of every statement above the database says how it finds the rows; a scan of a partial index
    is one of few rows."""
    storage = sized[-1].storage
    with storage.read() as tx:
        for job in READS.values():
            job(tx, sized[-1])
    assert len(storage.statements.texts) > len(READS)
    with storage.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        plan = plan_of_postgres if isinstance(driver, psycopg.Connection) else plan_of_sqlite
        if isinstance(driver, psycopg.Connection) and sized[-1].size < SCANNED_BELOW:
            driver.execute("SET enable_seqscan = off")
        assert [
            (step, sql)
            for sql in storage.statements.texts
            for step in plan(driver, sql)
            if scans(step)
        ] == []


def test_rows_of_listed_keys_are_looked_up_by_key_on_sqlite(sized: tuple[Sized, ...]) -> None:
    """Not by an index on the other columns of the condition, which many rows can share. PostgreSQL
    decides it by its statistics."""
    large = sized[-1]
    for name in ("conclusions of a pair by keys", "matching"):
        assert large.count(lambda tx, name=name: READS[name](tx, large), writing=False) == 1  # type: ignore[misc]
        (sql,) = [sql for sql in large.statements if sql.startswith("SELECT")]
        with large.storage.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            if not isinstance(driver, psycopg.Connection):
                steps = list(plan_of_sqlite(driver, sql))
                assert any("USING INTEGER PRIMARY KEY" in step for step in steps)


def test_positions_around_messages_are_read_from_indexes_alone(sized: tuple[Sized, ...]) -> None:
    large = sized[-1]
    keys = [large.messages[n].key for n in (0, 2, -1)]
    assert large.count(lambda tx: tx.messages.around(keys, 2, times=False), writing=False) == 1
    (sql,) = [sql for sql in large.statements if "FROM messages" in sql]
    with large.storage.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        if isinstance(driver, psycopg.Connection):
            driver.execute("VACUUM ANALYZE messages")
            # So few rows are as cheap to read, and the planner may do so by other indexes.
            driver.execute(
                "BEGIN; ALTER TABLE messages DROP CONSTRAINT pk_messages CASCADE; "
                "DROP INDEX uq_messages_session_key_seq; SET LOCAL enable_bitmapscan = off"
            )
            steps = [step for step in plan_of_postgres(driver, sql) if "messages" in step]
            driver.execute("ROLLBACK")
            only = "Index Only Scan using"
        else:
            steps = [step for step in plan_of_sqlite(driver, sql) if "INDEX messages_" in step]
            only = "USING COVERING INDEX"
    assert len(steps) == 2
    assert f"{only} messages_places" in steps[0]
    assert f"{only} messages_neighbours" in steps[1]


def test_conclusions_that_cite_rows_are_looked_up_by_key_on_sqlite(
    sized: tuple[Sized, ...],
) -> None:
    """Not by the workspace, which can have many more. PostgreSQL decides it by its statistics."""
    large = sized[-1]
    name = "conclusions based on others"
    assert large.count(lambda tx: READS[name](tx, large), writing=False) == 2
    (sql,) = [sql for sql in large.statements if "FROM conclusions" in sql]
    with large.storage.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            steps = list(plan_of_sqlite(driver, sql))
            assert any("USING INTEGER PRIMARY KEY" in step for step in steps)


def test_messages_without_an_author_are_counted_in_an_index_alone_on_sqlite(
    sized: tuple[Sized, ...],
) -> None:
    """The total of a page while a peer is being erased."""
    large = sized[-1]
    session_key = large.dataset.session.key
    others = visibility.not_of((large.messages[0].author_key,), "author_key")
    assert large.count(lambda tx: tx.messages.count(session_key, others), writing=False) == 1
    (sql,) = [sql for sql in large.statements if "FROM messages" in sql]
    with large.storage.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            (step,) = plan_of_sqlite(driver, sql)
            assert "USING COVERING INDEX" in step


@pytest.mark.parametrize(("gap", "expected"), [(3, 1), (2, 2)])
def test_messages_move_over_a_large_gap_in_one_statement(
    sized: tuple[Sized, ...], gap: int, expected: int
) -> None:
    """Their new positions are all free; over a smaller gap, they move in two."""
    one = sized[0]
    session_key, first = one.dataset.session.key, one.size + 100 * expected
    rows = [one.dataset.message(first + n, uid=f"gap {gap} {n}") for n in (1, 2, 3)]
    appended = one.storage.write(lambda tx: tx.messages.append(rows))
    moves = one.count(
        lambda tx: tx.messages.renumber(session_key, first, 3, first - gap, 7), writing=True
    )
    assert moves == expected + 1  # one gives the session its next revision
    with one.storage.read() as tx:
        moved = tx.messages.by_keys([row.key for row in appended])
    assert [moved[row.key].seq for row in appended] == [first - gap + n for n in (1, 2, 3)]
