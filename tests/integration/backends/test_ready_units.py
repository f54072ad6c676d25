"""Ready units of a large backlog are found at the same cost, in fair turns, and none is missed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from memservice.domain.filters.ast import TRUE
from memservice.domain.records import IMMEDIATELY, NEVER, Lease, Task
from memservice.spi import repositories as base
from memservice.spi.storage import Transaction
from memservice.testing.storage.base import NOW, Dataset, populate
from memservice_sql import ready_units
from memservice_sql.statements import Cursor, Executor, Prepared
from memservice_sql.storage import SqlStorage
from support.stores.stores import DIALECTS, migrated_on

# In one process, which opens each store once.
pytestmark = pytest.mark.xdist_group("ready-units")

COMPARED = 20
LATER = NOW + timedelta(minutes=1)
LATEST = NOW + timedelta(hours=5)
SMALL, LARGE = 200, 4_000


@pytest.fixture(autouse=True)
def backlogs_are_large_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_units, "MIN_COMPARED", COMPARED)


@pytest.fixture(scope="module", params=DIALECTS)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, own_statements: None
) -> Iterator[tuple[SqlStorage, Dataset]]:
    with migrated_on(request.param, tmp_path_factory.mktemp("ready")) as opened:
        yield opened, opened.write(lambda tx: populate(tx, "w"))


@pytest.fixture
def dataset(opened: tuple[SqlStorage, Dataset]) -> Dataset:
    return opened[1]


@pytest.fixture
def storage(opened: tuple[SqlStorage, Dataset]) -> SqlStorage:
    """Without tasks."""
    storage = opened[0]
    storage.write(lambda tx: (tx.rows.delete(Task, TRUE), tx.rows.delete(Lease, TRUE)))
    with storage.read() as tx:
        tx.rows.store.ready_positions.clear()  # type: ignore[attr-defined]
    return storage


def task(
    dataset: Dataset, number: int, unit: str, workspace: int | None = 1, **fields: Any
) -> Task:
    fields = {"not_before": IMMEDIATELY, "kind": unit.partition(":")[0], **fields}
    return dataset.task(number, unit, workspace_key=workspace, **fields)


def store(storage: SqlStorage, tasks: Sequence[Task]) -> None:
    """Store the tasks, and let PostgreSQL count them as it does after a while."""
    for begin in range(0, len(tasks), 1_000):
        storage.write(lambda tx, begin=begin: tx.tasks.add(tasks[begin : begin + 1_000]))  # type: ignore[misc]
    if storage.name == "postgres":
        with storage.engine.begin() as connection:
            connection.exec_driver_sql("ANALYZE tasks")


def ready(storage: SqlStorage, limit: int = 5, without: Sequence[str] = ()) -> list[str]:
    with storage.read() as tx:
        return tx.tasks.ready(NOW, limit, LATEST, without)


def all_ready(tx: Transaction, without: Sequence[str] = ()) -> list[str]:
    """By the rule, which compares all tasks."""
    return base.Tasks.ready(tx.tasks, NOW, 10**6, LATEST, without)


@contextmanager
def counting(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The pages that PostgreSQL reads for each statement, or the instructions that SQLite runs."""
    driver: Any = tx.rows.connection.connection.driver_connection  # type: ignore[attr-defined]
    run = Prepared.run
    numbers: list[int] = []

    def count() -> None:
        numbers[-1] += 1

    def explained(self: Prepared, executor: Executor, values: Sequence[Any]) -> Cursor:
        if isinstance(driver, psycopg.Connection):
            explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {self.sql}"
            plan = executor.execute(explain, self.parameters(values)).fetchone()[0][0]["Plan"]
            numbers.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        else:
            numbers.append(0)
        return run(self, executor, values)

    if not isinstance(driver, psycopg.Connection):
        driver.set_progress_handler(count, 1)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Prepared, "run", explained)
            yield numbers
    finally:
        if not isinstance(driver, psycopg.Connection):
            driver.set_progress_handler(None, 0)


def in_many_units(dataset: Dataset, size: int) -> list[Task]:
    return [task(dataset, n, f"derive:{n}") for n in range(size)]


def in_one_unit(dataset: Dataset, size: int) -> list[Task]:
    return [task(dataset, n, "embed:1") for n in range(size)]


def in_many_workspaces(dataset: Dataset, size: int) -> list[Task]:
    return [task(dataset, n, f"derive:{n}", 1 + n % (size // 4)) for n in range(size)]


def behind_a_leased_unit(dataset: Dataset, size: int) -> list[Task]:
    return [task(dataset, n, f"derive:{max(0, n - size // 2)}") for n in range(size)]


def waiting_for_their_time(dataset: Dataset, size: int) -> list[Task]:
    return [task(dataset, n, f"timer:{n}", 1 + n % 50, not_before=LATER) for n in range(size)]


def of_kinds_left_out(dataset: Dataset, size: int) -> list[Task]:
    """All threads for the others are in use."""
    return [task(dataset, n, f"derive:{n}", kind="busy") for n in range(size)]


def with_done_tasks(dataset: Dataset, size: int) -> list[Task]:
    return [
        task(dataset, n, f"derive:{n}", state="pending" if n >= size - 150 else "done")
        for n in range(size)
    ]


BACKLOGS: list[Callable[[Dataset, int], list[Task]]] = [
    in_many_units,
    in_one_unit,
    in_many_workspaces,
    behind_a_leased_unit,
    waiting_for_their_time,
    of_kinds_left_out,
    with_done_tasks,
]


@pytest.mark.parametrize("backlog", BACKLOGS)
def test_a_search_for_ready_units_reads_as_much_in_any_backlog(
    storage: SqlStorage,
    dataset: Dataset,
    backlog: Callable[[Dataset, int], list[Task]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[list[int]] = []
    if backlog is behind_a_leased_unit:
        assert storage.write(lambda tx: tx.tasks.claim("derive:0", "me", NOW, 60))
    for size in (SMALL, LARGE):
        storage.write(lambda tx: tx.rows.delete(Task, TRUE))
        tasks = backlog(dataset, size)
        store(storage, [*tasks, task(dataset, size, "card:1", 7)])
        if storage.name == "postgres":
            with storage.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as own:
                own.exec_driver_sql("VACUUM tasks")
        for _ in range(2):  # the second time, statements are compiled and go on in the middle
            with storage.read() as tx, counting(tx, monkeypatch) as numbers:
                assert tx.tasks.ready(NOW, 5, LATEST, ["busy"])
        counts.append(numbers)
    small, large = counts
    assert len(small) == len(large) <= 6
    assert sum(large) <= 2 * sum(small) + COMPARED


def test_a_small_backlog_is_compared_as_a_whole(
    storage: SqlStorage, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find a part of it would take longer."""
    few = ready_units.SMALL_BACKLOG_FACTOR * COMPARED
    tasks = in_many_units(dataset, few)
    for added, number_of_statements in ((tasks[1:], 2), (tasks[:1], 6)):
        store(storage, added)
        with storage.read() as tx, counting(tx, monkeypatch) as numbers:
            assert len(tx.tasks.ready(NOW, 5, LATEST)) == 5
        assert len(numbers) == number_of_statements


def test_no_workspace_or_kind_waits_for_the_backlog_of_another(
    storage: SqlStorage, dataset: Dataset
) -> None:
    tasks = [task(dataset, n, f"derive:{n}") for n in range(10 * COMPARED)]
    others = [
        task(dataset, 10_001, "derive:other", 2),
        task(dataset, 10_002, "embed:1"),
        task(dataset, 10_003, "erase:1", None),
        task(dataset, 10_004, "derive:future", not_before=NEVER - timedelta(days=1)),
    ]
    store(storage, [*tasks, *others])
    for _ in range(3):
        assert ready(storage, 4) == ["derive:0", "derive:other", "erase:1", "derive:1"]
        assert ready(storage, without=["derive"]) == ["embed:1", "erase:1"]
        assert "derive:future" in ready(storage, 10**4)


def test_no_unit_waits_behind_one_that_is_leased(storage: SqlStorage, dataset: Dataset) -> None:
    """Or that backs off, however many tasks these have."""
    tasks = [task(dataset, 0, "derive:backs off", not_before=LATER)]
    tasks += [
        task(dataset, n, f"derive:{'leased' if n % 2 else 'backs off'}")
        for n in range(1, 5 * COMPARED)
    ]
    rest = [f"derive:{n}" for n in range(3 * COMPARED)]
    store(storage, [*tasks, *(task(dataset, 10_000 + n, unit) for n, unit in enumerate(rest))])
    assert storage.write(lambda tx: tx.tasks.claim("derive:leased", "me", NOW, 60))
    returned: set[str] = set()
    for _ in range(5):
        units = ready(storage, COMPARED)
        assert units
        returned.update(units)
    assert returned == set(rest)


def test_a_unit_is_found_if_all_that_are_compared_wait(
    storage: SqlStorage, dataset: Dataset
) -> None:
    tasks = [task(dataset, n, f"derive:{n}", not_before=LATER) for n in range(5 * COMPARED)]
    tasks += [task(dataset, 1_000 + n, f"derive:{n}") for n in range(5 * COMPARED)]
    store(storage, tasks)
    assert ready(storage) == []
    store(storage, [task(dataset, 5_000, "derive:last")])
    assert ready(storage) == ["derive:last"]


@pytest.mark.parametrize("seed", range(4))
def test_units_of_a_part_are_ready_and_take_turns(
    storage: SqlStorage, dataset: Dataset, seed: int
) -> None:
    """In backlogs of any form. If few tasks are due, the answer is that of the rule."""
    dice = random.Random(seed)
    times = [IMMEDIATELY] * 3 + [NOW - timedelta(hours=1), LATER, NEVER, NEVER - timedelta(days=1)]
    number = 0
    for size in (COMPARED // 2, *(dice.randint(50, 200) for _ in range(5))):
        units = [f"{dice.choice('abc')}:{n}" for n in range(dice.choice((3, 60)))]
        of_unit = {unit: dice.choice((None, 1, 2, 3, *range(4, 40))) for unit in units}
        tasks = [
            task(
                dataset,
                number + n,
                unit := dice.choice(units),
                of_unit[unit],
                not_before=dice.choice(times),
                state=dice.choice(("pending", "pending", "done")),
            )
            for n in range(size)
        ]
        number += size
        storage.write(lambda tx: tx.rows.delete(Task, TRUE))
        store(storage, tasks)
        for without in ((), ("a",), ("b", "c")):
            for limit in (1, 5, 1_000):
                with storage.read() as tx:
                    expected = all_ready(tx, without)
                    answer = tx.tasks.ready(NOW, limit, LATEST, without)
                assert set(answer) <= set(expected)
                assert len(answer) == len(set(answer)) <= limit
                assert bool(answer) == bool(expected)
                if size < COMPARED or limit == 1_000:
                    assert answer == expected[:limit]
