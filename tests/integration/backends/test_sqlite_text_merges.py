"""The text index is merged a little with each change, so no change takes much longer than others,
and searches read few blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
import sqlalchemy as sa

from memservice.spi.storage import Transaction
from memservice.spi.text import TextRow
from memservice.testing.storage.base import NOW, Dataset, populate
from memservice_sql.migrating import upgrade
from memservice_sqlite import connections, reclaiming, text_levels, text_merges
from memservice_sqlite.log_copies import LogCopies
from memservice_sqlite.storage import SqliteStorage
from support.stores.sqlite_store import migrated, opened

TERMS = 12
PAGE_BYTES, FRAME_BYTES = 4_096, 24
MAX_BLOCKS = 60
MAX_STEPS = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def storage(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStorage]:
    # The log only grows.
    monkeypatch.setattr(connections, "WAL_PAGES", 10**6)
    monkeypatch.setattr(LogCopies, "committed", lambda self: None)
    storage = migrated(path)
    yield storage
    storage.close()


@pytest.fixture
def dataset(storage: SqliteStorage) -> Dataset:
    return storage.write(lambda tx: populate(tx, "w"))


def texts(first: int, number: int) -> list[TextRow]:
    return [
        TextRow(key, [f"own{key}", *(f"word{key * n % 997}" for n in range(TERMS))], at=NOW)
        for key in range(first, first + number)
    ]


def log_pages(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size // (PAGE_BYTES + FRAME_BYTES)


def written(
    storage: SqliteStorage, path: Path, write: Callable[[Transaction, int], None], numbers: range
) -> list[int]:
    """Pages that each transaction writes to the log."""
    sizes = [log_pages(path)]
    for number in numbers:
        storage.write(lambda tx, number=number: write(tx, number))  # type: ignore[misc]
        sizes.append(log_pages(path))
    return [after - before for before, after in pairwise(sizes)]


def blocks(storage: SqliteStorage) -> int:
    with storage.engine.connect() as connection:
        query = "SELECT block FROM text_index_data WHERE id = 10"
        record = connection.exec_driver_sql(query).scalar_one()
    return sum(level.blocks for level in text_levels._read(record)[1])


def configuration(storage: SqliteStorage) -> dict[str, int]:
    with storage.engine.connect() as connection:
        return configuration_of(connection)


def configuration_of(connection: sa.Connection) -> dict[str, int]:
    rows = connection.exec_driver_sql("SELECT k, v FROM text_index_config").all()
    return {name: value for name, value in rows if name != "version"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [8_000, pytest.param(30_000, marks=pytest.mark.heavy)])
def test_no_change_pays_for_the_merges_of_many(
    storage: SqliteStorage, path: Path, dataset: Dataset, number: int
) -> None:
    workspace = dataset.workspace.key

    def add(tx: Transaction, key: int, number: int) -> None:
        storage.text.add(tx, "message", workspace, texts(key, number))

    def remove(tx: Transaction, key: int) -> None:
        storage.text.remove(tx, "message", workspace, range(key, key + 50))

    batches = written(storage, path, lambda tx, key: add(tx, key, 100), range(1, number, 100))
    assert blocks(storage) <= MAX_BLOCKS
    removals = written(storage, path, remove, range(1, number * 2 // 3, 100))
    assert blocks(storage) <= MAX_BLOCKS
    numbers = range(50_000, 50_000 + number // 30)
    single = written(storage, path, lambda tx, key: add(tx, key, 1), numbers)
    assert blocks(storage) <= MAX_BLOCKS
    assert max(batches) < 5 * median(batches)
    assert max(removals) < 5 * median(removals)
    assert max(single) < max(batches)


@pytest.mark.parametrize("others", [True, False])
def test_a_merge_of_all_blocks_resets_the_settings_at_its_end(
    storage: SqliteStorage, dataset: Dataset, others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaiming, "MERGED_PAGES", 1)
    workspace = dataset.workspace.key
    for first in range(1, 400, 20):
        storage.write(
            lambda tx, first=first: storage.text.add(  # type: ignore[misc]
                tx, "message", workspace, texts(first, 20)
            )
        )
    storage.write(lambda tx: storage.text.remove(tx, "message", workspace, [7]))
    assert storage.reclaim(), "a merge has begun"
    assert configuration(storage)["usermerge"] == text_merges.ERASING_BLOCKS
    if not others:
        storage.write(lambda tx: storage.text.drop(tx, workspace, 1_000))
    while storage.reclaim():
        pass
    assert configuration(storage) == dict(text_merges.SETTINGS)


def test_an_index_without_texts_keeps_its_settings(
    storage: SqliteStorage, dataset: Dataset
) -> None:
    workspace = dataset.workspace.key
    storage.write(lambda tx: storage.text.add(tx, "message", workspace, texts(1, 5)))
    storage.write(lambda tx: storage.text.drop(tx, workspace, 100))
    while storage.reclaim():
        pass
    assert configuration(storage) == dict(text_merges.SETTINGS)


def test_a_store_of_an_earlier_release_merges_in_small_steps_after_its_upgrade(
    tmp_path: Path,
) -> None:
    (tmp_path / "old.db").touch()
    storage = opened(tmp_path / "old.db")
    with storage.engine.begin() as connection:
        upgrade(connection, storage._dialect, "0009")
        assert not configuration_of(connection)
        # as an erasure of that release left it
        connection.exec_driver_sql(text_merges.COMMAND, ("usermerge", 2))
    storage.migrate()
    assert configuration(storage) == dict(text_merges.SETTINGS)
    storage.close()


@pytest.mark.parametrize(
    "writes", [1, 10, *(pytest.param(n, marks=pytest.mark.heavy) for n in (2, 3))]
)
def test_erased_words_disappear_while_others_write(
    storage: SqliteStorage,
    path: Path,
    dataset: Dataset,
    writes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The merge of all blocks need not merge what they write, so it ends."""
    monkeypatch.setattr(reclaiming, "MERGED_PAGES", 3)
    workspace = dataset.workspace.key

    def add(first: int, number: int) -> None:
        storage.write(lambda tx: storage.text.add(tx, "message", workspace, texts(first, number)))

    for first in range(1, 2_000, 20):
        add(first, 20)
    row = TextRow(9_999, ["zorbmarker"], at=NOW)
    storage.write(lambda tx: storage.text.add(tx, "message", workspace, [row]))
    storage.write(lambda tx: storage.text.remove(tx, "message", workspace, [row.key]))
    key, steps = 10_000, 1
    while storage.reclaim():
        steps += 1
        for _ in range(writes):
            key += 1
            add(key, 1)
        assert steps < MAX_STEPS
    assert steps > 1, "in steps"
    files = [file.read_bytes() for file in path.parent.glob(f"{path.name}*")]
    assert not any(b"zorbmarker" in data for data in files)
