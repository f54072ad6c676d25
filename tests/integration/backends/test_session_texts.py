"""The texts of a session that a process keeps in memory give the answers of the database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction
from memservice.spi.text import TextMatches, TextRow
from memservice.testing.indexes import RolledBack
from memservice_postgres.text import PostgresTextIndex
from memservice_sql import text_cache
from memservice_sql.storage import SqlStorage
from memservice_sql.text_cache import TextCache
from memservice_sqlite.text import SqliteTextIndex
from support.stores.stores import DIALECTS, migrated_on

COMMON = [f"common{number}" for number in range(4)]
"""Words of so many texts that a session has few of them."""
SESSIONS = range(1, 9)
FILTERS = (
    *(IndexFilter(sessions=(session,)) for session in SESSIONS),
    IndexFilter(sessions=(1,), authors=(1,)),
    IndexFilter(sessions=(2,), observers=(1,), levels=("explicit",)),
    IndexFilter(sessions=(1, 2)),
    IndexFilter(sessions=(99,)),
)
WORKSPACE = 1
ALWAYS, NEVER = 10**9, 0


@pytest.fixture(params=DIALECTS)
def storage(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SqlStorage]:
    """The workspace of a test is too large to be kept, its sessions are not."""
    monkeypatch.setattr(text_cache, "MAX_DOCUMENTS", 50)
    with migrated_on(request.param, tmp_path_factory.mktemp("texts")) as opened:
        yield opened


Open = Callable[[int], Any]


@pytest.fixture
def open_index(storage: SqlStorage) -> Open:
    """Opens an index as another process would, which reads texts at the first search, or never."""
    kind: Any = SqliteTextIndex if storage.name == "sqlite" else PostgresTextIndex
    return lambda documents_per_search: kind(cache=TextCache(2**20, documents_per_search))


def text(dice: random.Random, key: int, session: int | None = None) -> TextRow:
    return TextRow(
        key=key,
        terms=[*dice.sample(COMMON, 3), *dice.choices(("a", "b", "c", "d"), k=3)],
        session=session or dice.choice(SESSIONS),
        author=dice.choice((None, 1, 2)),
        observer=dice.choice((1, 2)),
        observed=1,
        level=dice.choice((None, "explicit", "deductive")),
    )


def answers(storage: SqlStorage, index: Any) -> list[TextMatches]:
    dice = random.Random(7)
    with storage.read() as tx:
        return [
            index.search(tx, "message", WORKSPACE, [*COMMON, dice.choice("abcd")], k, each)
            for each in FILTERS
            for k in (1, 5, 1_000)
        ]


def add(storage: SqlStorage, index: Any, rows: list[TextRow]) -> None:
    storage.write(lambda tx: index.add(tx, "message", WORKSPACE, rows))


def sessions_in_memory(index: Any) -> set[int | None]:
    return {session for _, _, session in index._cache._entries}


def test_every_change_of_another_process_is_read(storage: SqlStorage, open_index: Open) -> None:
    dice = random.Random(1)
    writer, plain, cached = open_index(NEVER), open_index(NEVER), open_index(ALWAYS)
    add(storage, writer, [text(dice, key) for key in range(1, 200)])
    stored = 200
    for change in ("add", "add", "replace", "add", "remove", "add", "move", "add"):
        if change == "add":
            add(storage, writer, [text(dice, stored + n) for n in range(5)])
            stored += 5
        elif change == "remove":
            keys = dice.sample(range(1, stored), 5)
            storage.write(lambda tx, keys=keys: writer.remove(tx, "message", WORKSPACE, keys))  # type: ignore[misc]
        else:  # the same keys with other words, maybe in other sessions
            session = 1 if change == "replace" else None
            rows = [text(dice, key, session) for key in dice.sample(range(1, stored), 5)]
            add(storage, writer, rows)
        assert answers(storage, cached) == answers(storage, plain)
        assert sessions_in_memory(cached) == set(SESSIONS)
    assert sessions_in_memory(plain) == set()


def test_a_text_that_is_replaced_is_read_again(storage: SqlStorage, open_index: Open) -> None:
    dice = random.Random(8)
    index = open_index(ALWAYS)
    add(storage, index, [text(dice, key) for key in range(1, 200)])
    add(storage, index, [TextRow(key=1, terms=["common0"], session=1)])
    answers(storage, index)
    add(storage, index, [TextRow(key=1, terms=["common1", "common1"], session=1)])
    assert answers(storage, index) == answers(storage, open_index(NEVER))


def test_added_texts_are_read_alone(
    storage: SqlStorage, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(2)
    index = open_index(ALWAYS)
    add(storage, index, [text(dice, key) for key in range(10, 200)])
    before = answers(storage, index)
    monkeypatch.setattr("memservice_sql.text_cache._whole", None)
    add(
        storage, index, [text(dice, 200 + number, session) for number, session in enumerate((1, 2))]
    )
    assert answers(storage, index) == answers(storage, open_index(NEVER))
    assert answers(storage, index) != before


def test_an_open_transaction_changes_nothing_in_memory(
    storage: SqlStorage, open_index: Open
) -> None:
    dice = random.Random(3)
    index = open_index(ALWAYS)
    add(storage, index, [text(dice, key) for key in range(1, 200)])
    before = answers(storage, index)
    own = TextRow(key=999, terms=[*COMMON, "a"], session=1)

    def write(tx: Transaction) -> None:
        index.add(tx, "message", WORKSPACE, [own])
        hits = index.search(tx, "message", WORKSPACE, COMMON, 1, FILTERS[0]).hits
        assert [hit.key for hit in hits] == [999]
        assert answers(storage, index) == before
        raise RolledBack

    with suppress(RolledBack):
        storage.write(write)
    assert answers(storage, index) == before


def test_an_older_snapshot_reads_what_it_sees(storage: SqlStorage, open_index: Open) -> None:
    dice = random.Random(4)
    index = open_index(ALWAYS)
    add(storage, index, [text(dice, key) for key in range(1, 200)])

    def newest(tx: Transaction) -> int:
        return int(index.search(tx, "message", WORKSPACE, COMMON, 1, FILTERS[0]).hits[0].key)

    with storage.read() as before:
        key = newest(before)
        add(storage, index, [TextRow(key=999, terms=COMMON, session=1)])
        with storage.read() as after:
            assert newest(after) == 999
        assert newest(before) == key
    assert sessions_in_memory(index) == {1}


def test_a_session_that_is_searched_once_is_not_read(storage: SqlStorage, open_index: Open) -> None:
    dice = random.Random(9)
    index = open_index(ALWAYS)
    add(storage, index, [text(dice, key) for key in range(1, 200)])
    in_memory = []
    for key in (200, 201):
        with storage.read() as tx:
            index.search(tx, "message", WORKSPACE, COMMON, 5, FILTERS[0])
        in_memory.append(sessions_in_memory(index))
        add(storage, index, [text(dice, key, 1)])
    assert in_memory == [set(), {1}]


def test_sessions_of_a_workspace_that_is_kept_are_not(
    storage: SqlStorage, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_cache, "MAX_DOCUMENTS", 200)
    dice = random.Random(5)
    index = open_index(1)
    add(storage, index, [text(dice, key) for key in range(1, 200)])
    answers(storage, index)
    assert sessions_in_memory(index) <= {None}


def test_sessions_with_too_many_terms_are_not_read(
    storage: SqlStorage, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_cache, "MAX_TERMS", 10)
    dice = random.Random(6)
    index = open_index(ALWAYS)
    add(storage, index, [text(dice, key) for key in range(1, 200)])
    assert answers(storage, index) == answers(storage, open_index(NEVER))
    assert sessions_in_memory(index) == set()
