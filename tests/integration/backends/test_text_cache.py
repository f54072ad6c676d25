"""The texts that a process keeps in memory give the answers of the database, whatever others
write."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.text import TextIndex, TextMatches, TextRow
from memservice.testing.indexes import Engine, RolledBack
from memservice.testing.text import TextIndexContract
from memservice_postgres.text import PostgresTextIndex
from memservice_sql import text_cache
from memservice_sql.storage import SqlStorage
from memservice_sql.text_blocks import TextBlock, block_of, merged
from memservice_sql.text_cache import TextCache
from memservice_sqlite.text import SqliteTextIndex
from support.stores.stores import DIALECTS, migrated_on

WORDS = [f"w{number}" for number in range(12)]
FILTERS = (
    EVERYTHING,
    IndexFilter(observers=(1,), observed=(2,)),
    IndexFilter(sessions=(1, 2, 3), levels=("explicit",)),
    IndexFilter(authors=()),
)
Open = Callable[[int], TextIndex]


@pytest.fixture(scope="module", params=DIALECTS)
def storage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlStorage]:
    with migrated_on(request.param, tmp_path_factory.mktemp("texts")) as opened:
        yield opened


@pytest.fixture
def open_index(storage: SqlStorage) -> Open:
    """Opens an index as another process would. With a large number it reads all texts at the first
    search, with 0 never."""
    kind: Any = SqliteTextIndex if storage.name == "sqlite" else PostgresTextIndex
    return lambda documents_per_search: kind(cache=TextCache(2**20, documents_per_search))


@pytest.fixture
def workspace(request: pytest.FixtureRequest) -> int:
    """A workspace of this test alone."""
    return abs(hash(request.node.nodeid)) % 10**9 + 1


class TestTextsInMemory(TextIndexContract):
    @pytest.fixture
    def open_index(self, tmp_path: Path) -> Iterator[Callable[[], Engine[TextIndex]]]:
        with migrated_on("sqlite", tmp_path) as storage:
            yield lambda: Engine(SqliteTextIndex(cache=TextCache(2**20, 10**9)), storage)


def text(dice: random.Random, key: int) -> TextRow:
    return TextRow(
        key=key,
        terms=dice.choices(WORDS, range(1, len(WORDS) + 1), k=dice.randint(1, 9)),
        session=dice.choice((None, 1, 2, 3, 4)),
        author=dice.choice((None, 1, 2)),
        observer=dice.choice((1, 2)),
        observed=dice.choice((1, 2)),
        level=dice.choice((None, "explicit", "deductive")),
        related=dice.sample(("~a", "~b"), dice.randint(0, 2)),
    )


def answers(storage: SqlStorage, index: TextIndex, workspace: int) -> list[TextMatches]:
    dice = random.Random(7)
    with storage.read() as tx:
        return [
            index.search(tx, "message", workspace, dice.sample([*WORDS, "~a", "none"], 3), k, each)
            for each in FILTERS
            for k in (1, 5, 1_000)
        ]


def test_every_change_of_another_process_is_read(
    storage: SqlStorage, open_index: Open, workspace: int
) -> None:
    dice = random.Random(1)
    writer, plain, cached = open_index(0), open_index(0), open_index(10**9)
    stored = 0
    for change in ("add", "add", "replace", "add", "remove", "add", "add"):
        if change == "add":
            rows = [text(dice, stored + n) for n in range(1, 60)]
            stored += 59
        else:
            rows = [text(dice, key) for key in dice.sample(range(1, stored + 1), 5)]

        def write(tx: Transaction, change: str = change, rows: list[TextRow] = rows) -> None:
            if change == "remove":
                writer.remove(tx, "message", workspace, [row.key for row in rows])
            else:
                writer.add(tx, "message", workspace, rows)

        storage.write(write)
        assert answers(storage, cached, workspace) == answers(storage, plain, workspace)
        assert reads_from_memory(storage, cached, workspace)
    assert not reads_from_memory(storage, plain, workspace)


def test_words_may_be_repeated_more_often_than_a_byte_counts(
    storage: SqlStorage, open_index: Open, workspace: int
) -> None:
    dice = random.Random(2)
    plain, cached = open_index(0), open_index(10**9)
    for first, repeated in ((1, 2), (100, 300), (200, 2)):
        rows = [text(dice, first + n) for n in range(20)]
        rows.append(TextRow(key=first + 20, terms=["w11"] * repeated, session=1))

        def write(tx: Transaction, rows: list[TextRow] = rows) -> None:
            plain.add(tx, "message", workspace, rows)

        storage.write(write)
        assert answers(storage, cached, workspace) == answers(storage, plain, workspace)
    assert reads_from_memory(storage, cached, workspace)


def test_texts_are_read_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memservice_sqlite.stored_texts.BATCH_SIZE", 7)
    plain, cached = (SqliteTextIndex(cache=TextCache(2**20, number)) for number in (0, 10**9))
    dice = random.Random(3)
    rows = [text(dice, key) for key in range(1, 32)]
    with migrated_on("sqlite", tmp_path) as storage:
        storage.write(lambda tx: plain.add(tx, "message", 1, rows))
        assert answers(storage, cached, 1) == answers(storage, plain, 1)
        assert reads_from_memory(storage, cached, 1)


def test_numbers_take_as_few_bytes_as_they_need() -> None:
    def block(first: int, texts: int, count: int) -> TextBlock:
        facts = [(first + n, 1, 1, None, None, None) for n in range(texts)]
        each, counts = np.zeros(texts, np.int32), np.full(texts, count, np.int32)
        return block_of(facts, [count] * texts, [1] * texts, each, counts, ["axolotl"])

    one, other = block(1, 200, 3), block(201, 200, 300)
    assert (one.rows.itemsize, one.counts.itemsize) == (1, 1)
    both = merged(one, other)
    assert (both.rows.itemsize, both.counts.itemsize) == (2, 2)
    rows, counts = both.postings("axolotl")
    assert rows.tolist() == list(range(400))
    assert counts.tolist() == [3] * 200 + [300] * 200


def reads_from_memory(storage: SqlStorage, index: Any, workspace: int) -> bool:
    with storage.read() as tx:
        index.search(tx, "message", workspace, ["w11"], 1, EVERYTHING)
    return bool(index._cache.nbytes)


def test_added_texts_are_read_alone(
    storage: SqlStorage, open_index: Open, workspace: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one with a lower key than those in memory, as transactions commit in any order."""
    dice = random.Random(2)
    index = open_index(10**9)
    storage.write(
        lambda tx: index.add(tx, "message", workspace, [text(dice, key) for key in range(10, 90)])
    )
    before = answers(storage, index, workspace)
    monkeypatch.setattr("memservice_sql.text_cache._whole", None)
    storage.write(lambda tx: index.add(tx, "message", workspace, [text(dice, 90)]))
    assert answers(storage, index, workspace) == answers(storage, open_index(0), workspace)
    assert answers(storage, index, workspace) != before
    if storage.name == "postgres":
        storage.write(lambda tx: index.add(tx, "message", workspace, [text(dice, 5)]))
        assert answers(storage, index, workspace) == answers(storage, open_index(0), workspace)


def test_texts_added_after_many_of_others_are_read_alone(
    storage: SqlStorage, open_index: Open, workspace: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other workspaces' keys are between those of this one."""
    dice = random.Random(3)
    index = open_index(10**9)
    storage.write(lambda tx: index.add(tx, "message", workspace, [text(dice, 100)]))
    answers(storage, index, workspace)
    monkeypatch.setattr("memservice_sql.text_cache._whole", None)
    for key in (10**6, 10**9):
        rows = [text(dice, key), text(dice, key - 1)]

        def add(tx: Transaction, rows: list[TextRow] = rows) -> None:
            index.add(tx, "message", workspace, rows[:1])
            index.add(tx, "message", workspace + 1, rows[1:])

        storage.write(add)
        assert answers(storage, index, workspace) == answers(storage, open_index(0), workspace)


def test_an_open_transaction_changes_nothing_in_memory(
    storage: SqlStorage, open_index: Open, workspace: int
) -> None:
    dice = random.Random(3)
    index = open_index(10**9)
    rows = [text(dice, key) for key in range(1, 50)]
    storage.write(lambda tx: index.add(tx, "message", workspace, rows))
    before = answers(storage, index, workspace)

    def write(tx: Transaction) -> None:
        index.add(tx, "message", workspace, [TextRow(key=99, terms=["own"])])
        assert [
            hit.key for hit in index.search(tx, "message", workspace, ["own"], 9, EVERYTHING).hits
        ] == [99]
        assert answers(storage, index, workspace) == before
        raise RolledBack

    with suppress(RolledBack):
        storage.write(write)
    assert answers(storage, index, workspace) == before
    with storage.read() as tx:
        assert not index.search(tx, "message", workspace, ["own"], 9, EVERYTHING).hits


def test_an_older_snapshot_reads_what_it_sees(
    storage: SqlStorage, open_index: Open, workspace: int
) -> None:
    index = open_index(10**9)
    storage.write(lambda tx: index.add(tx, "message", workspace, [TextRow(key=1, terms=["old"])]))

    def keys(tx: Transaction) -> list[int]:
        matches = index.search(tx, "message", workspace, ["old"], 9, EVERYTHING)
        return sorted(hit.key for hit in matches.hits)

    with storage.read() as before:
        assert keys(before) == [1]
        storage.write(
            lambda tx: index.add(tx, "message", workspace, [TextRow(key=2, terms=["old"])])
        )
        with storage.read() as after:
            assert keys(after) == [1, 2]
        assert keys(before) == [1]


def test_a_paused_read_sees_what_was_written_meanwhile(
    storage: SqlStorage, open_index: Open, workspace: int
) -> None:
    index = open_index(10**9)

    def add(key: int) -> None:
        row = TextRow(key=key, terms=["word"])
        storage.write(lambda tx: index.add(tx, "message", workspace, [row]))

    def counts(tx: Transaction) -> tuple[int, int]:
        matches = index.search(tx, "message", workspace, ["word"], 9, EVERYTHING)
        return len(matches.hits), index.sizes(tx, "message", [workspace])[workspace]

    add(1)
    with storage.read() as tx:
        assert counts(tx) == (1, 1)
        with tx.released():
            add(2)
        assert counts(tx) == (2, 2)


def test_texts_are_read_when_searches_have_cost_as_much(
    storage: SqlStorage, open_index: Open, workspace: int
) -> None:
    index: Any = open_index(10)
    rows = [text(random.Random(4), key) for key in range(1, 26)]
    storage.write(lambda tx: index.add(tx, "message", workspace, rows))
    in_memory = [reads_from_memory(storage, index, workspace) for _ in range(3)]
    assert in_memory == [False, False, True]


def test_memory_is_bounded(storage: SqlStorage, open_index: Open, workspace: int) -> None:
    kind: Any = type(open_index(0))
    index: Any = kind(cache=TextCache(10_000, 10**9))
    for each in (workspace, workspace + 1, workspace + 2):
        rows = [text(random.Random(each), key) for key in range(each * 100, each * 100 + 60)]
        storage.write(lambda tx, each=each, rows=rows: index.add(tx, "message", each, rows))  # type: ignore[misc]
        reads_from_memory(storage, index, each)
    assert 0 < index._cache.nbytes <= 10_000
    assert len(index._cache._entries) < 3


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts at each time that all were read."""
    reads: list[int] = []
    read_all = text_cache._whole

    def recording(state: text_cache.TextState, texts: Any) -> Any:
        reads.append(state.documents)
        return read_all(state, texts)

    monkeypatch.setattr(text_cache, "_whole", recording)
    return reads


def test_texts_that_did_not_fit_are_not_read_again(
    storage: SqlStorage, open_index: Open, workspace: int, whole_reads: list[int]
) -> None:
    """Until there are fewer of them."""
    kind: Any = type(open_index(0))
    index: Any = kind(cache=TextCache(4_000, 10**9))
    rows = [text(random.Random(6), key) for key in range(1, 100)]
    storage.write(lambda tx: index.add(tx, "message", workspace, rows))
    assert not any(reads_from_memory(storage, index, workspace) for _ in range(4))
    storage.write(lambda tx: index.add(tx, "message", workspace, [text(random.Random(7), 100)]))
    assert not any(reads_from_memory(storage, index, workspace) for _ in range(4))
    assert whole_reads == [99]
    storage.write(lambda tx: index.remove(tx, "message", workspace, range(10, 101)))
    assert reads_from_memory(storage, index, workspace)
    assert whole_reads == [99, 9]


def test_texts_with_too_many_terms_are_not_read(
    storage: SqlStorage,
    open_index: Open,
    workspace: int,
    whole_reads: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = open_index(10**9)
    rows = [TextRow(key=key, terms=["w11"] * 10) for key in range(1, 11)]
    storage.write(lambda tx: index.add(tx, "message", workspace, rows))
    monkeypatch.setattr(text_cache, "MAX_TERMS", 100)
    assert not reads_from_memory(storage, index, workspace)
    assert not whole_reads
    monkeypatch.setattr(text_cache, "MAX_TERMS", 101)
    assert reads_from_memory(storage, index, workspace)


def test_texts_that_nobody_searches_leave_the_memory(
    storage: SqlStorage, open_index: Open, workspace: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index: Any = open_index(10**9)
    rows = [text(random.Random(5), key) for key in range(1, 26)]
    storage.write(lambda tx: index.add(tx, "message", workspace, rows))
    assert reads_from_memory(storage, index, workspace)
    index.sweep()
    assert index._cache.nbytes
    monkeypatch.setattr("memservice_sql.text_cache.IDLE_SECONDS", 0.0)
    index.sweep()
    assert not index._cache.nbytes
