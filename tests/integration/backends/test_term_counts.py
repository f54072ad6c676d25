"""The texts with a frequent term are counted once, while the texts change little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.spi.index_filter import EVERYTHING
from memservice.spi.text import TextIndex, TextRow
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.text import PostgresTextIndex
from memservice_sql.storage import SqlStorage
from memservice_sql.term_counts import MAX_AGE, TermCounts
from memservice_sql.text_cache import TextCache, TextState
from memservice_sqlite.text import SqliteTextIndex
from support.stores.stores import DIALECTS, migrated_on

WORKSPACE = 1
NUMBER = 200
FREQUENT, RARE = "tea", "axolotl"


class Texts:
    """An index that remembers numbers from 50 texts on, and keeps no texts in memory."""

    def __init__(self, storage: SqlStorage) -> None:
        self._storage = storage
        self.now = 0.0
        cache, counts = TextCache(max_bytes=0), TermCounts(50, lambda: self.now)
        self.index: TextIndex = (
            PostgresTextIndex(cache=cache, counts=counts)
            if isinstance(storage, PostgresStorage)
            else SqliteTextIndex(cache=cache, counts=counts)
        )
        self._key = 0

    def add(self, number: int, *terms: str) -> None:
        rows = [TextRow(self._key + n, list(terms)) for n in range(number)]
        self._key += number
        self._storage.write(lambda tx: self.index.add(tx, "message", WORKSPACE, rows))

    def remove(self, key: int) -> None:
        self._storage.write(lambda tx: self.index.remove(tx, "message", WORKSPACE, [key]))

    def frequencies(self, *terms: str) -> tuple[int, ...]:
        with self._storage.read() as tx:
            matches = self.index.search(tx, "message", WORKSPACE, terms, 5, EVERYTHING)
        return tuple(matches.frequencies[term] for term in terms)


@pytest.fixture(params=DIALECTS)
def texts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Texts]:
    with migrated_on(request.param, tmp_path) as storage:
        texts = Texts(storage)
        texts.add(NUMBER, FREQUENT)
        texts.add(3, RARE)
        yield texts


def test_a_frequent_term_is_counted_again_after_the_texts_changed_by_one_percent(
    texts: Texts,
) -> None:
    assert texts.frequencies(FREQUENT, RARE) == (NUMBER, 3)
    texts.add(1, FREQUENT)
    texts.add(1, RARE)
    assert texts.frequencies(FREQUENT, RARE) == (NUMBER, 4)  # a rare one is counted each time
    texts.add(1, FREQUENT)
    assert texts.frequencies(FREQUENT, RARE) == (NUMBER + 2, 4)


def test_a_frequent_term_is_counted_again_after_some_minutes(texts: Texts) -> None:
    """However often it was searched meanwhile."""
    texts.frequencies(FREQUENT)
    texts.add(1, FREQUENT)
    texts.now += MAX_AGE - 1
    assert texts.frequencies(FREQUENT) == (NUMBER,)
    texts.now += 2
    assert texts.frequencies(FREQUENT) == (NUMBER + 1,)


def test_a_frequent_term_is_counted_again_once_a_text_is_removed(texts: Texts) -> None:
    texts.frequencies(FREQUENT)
    texts.remove(0)
    assert texts.frequencies(FREQUENT) == (NUMBER - 1,)


def test_the_memory_for_numbers_is_bounded(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memservice_sql.term_counts.MAX_TERMS", 1)
    texts.add(NUMBER, "mint")
    texts.frequencies(FREQUENT)
    texts.frequencies("mint")  # takes the place of the first one
    texts.add(1, FREQUENT, "mint")
    assert texts.frequencies("mint") == (NUMBER,)
    assert texts.frequencies(FREQUENT) == (NUMBER + 1,)


STATE = TextState(WORKSPACE, 0, documents=5_000, length=50_000, revision=1, removal=0)


class Session:
    """A session, and how often its texts were counted."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.counted = 0

    def few(self, counts: TermCounts, limit: int, state: TextState = STATE) -> int | None:
        def count() -> int:
            self.counted += 1
            return min(self.size, limit)

        return counts.few_of_sessions([7], limit, state, count)


def test_that_a_session_has_many_texts_is_remembered_until_some_are_removed() -> None:
    counts, session = TermCounts(), Session(4_000)
    assert [session.few(counts, limit) for limit in (2_000, 2_000, 1_500)] == [None] * 3
    assert session.counted == 1
    assert session.few(counts, 3_000) is None  # it has 2,000, so perhaps fewer than 3,000
    assert session.counted == 2
    session.size = 1
    assert session.few(counts, 3_000, STATE._replace(removal=2)) == 1


def test_the_texts_of_a_short_session_are_counted_each_time() -> None:
    counts, session = TermCounts(), Session(1_200)
    assert session.few(counts, 2_000) == 1_200
    session.size += 1
    assert session.few(counts, 2_000) == 1_201


def test_the_texts_of_a_session_are_counted_once_for_each_kind() -> None:
    counts, session = TermCounts(), Session(4_000)
    assert session.few(counts, 2_000) is None
    session.size = 1
    assert session.few(counts, 2_000, STATE._replace(kind=1)) == 1


def test_the_texts_of_several_sessions_are_counted_each_time() -> None:
    counts, sizes = TermCounts(), iter((2_000, 1_000))
    assert counts.few_of_sessions([7, 8], 2_000, STATE, lambda: next(sizes)) is None
    assert counts.few_of_sessions([7, 8], 2_000, STATE, lambda: next(sizes)) == 1_000
