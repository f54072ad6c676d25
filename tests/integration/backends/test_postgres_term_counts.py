"""PostgreSQL counts the texts with a frequent term once, while the texts change little."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memservice.spi.index_filter import EVERYTHING
from memservice.spi.text import TextRow
from memservice_postgres.storage import PostgresStorage
from memservice_postgres.term_counts import MAX_AGE, TermCounts
from memservice_postgres.text import PostgresTextIndex
from memservice_sql.text_cache import TextCache
from support.stores.postgres_server import drop_database
from support.stores.postgres_store import migrated, new_store

WORKSPACE = 1
NUMBER = 200
FREQUENT, RARE = "tea", "axolotl"


class Texts:
    """An index that remembers numbers from 50 texts on, and keeps no texts in memory."""

    def __init__(self, storage: PostgresStorage) -> None:
        self._storage = storage
        self.now = 0.0
        self.index = PostgresTextIndex(
            cache=TextCache(max_bytes=0), counts=TermCounts(50, lambda: self.now)
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


@pytest.fixture
def texts() -> Iterator[Texts]:
    uri = new_store()
    storage = migrated(uri)
    texts = Texts(storage)
    texts.add(NUMBER, FREQUENT)
    texts.add(3, RARE)
    yield texts
    storage.close()
    drop_database(uri)


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
    texts.frequencies(FREQUENT)
    texts.add(1, FREQUENT)
    assert texts.frequencies(FREQUENT) == (NUMBER,)
    texts.now += MAX_AGE + 1
    assert texts.frequencies(FREQUENT) == (NUMBER + 1,)


def test_a_frequent_term_is_counted_again_once_a_text_is_removed(texts: Texts) -> None:
    texts.frequencies(FREQUENT)
    texts.remove(0)
    assert texts.frequencies(FREQUENT) == (NUMBER - 1,)


def test_the_memory_for_numbers_is_bounded(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memservice_postgres.term_counts.MAX_TERMS", 1)
    texts.add(NUMBER, "mint")
    texts.frequencies(FREQUENT)
    texts.frequencies("mint")  # takes the place of the first one
    texts.add(1, FREQUENT, "mint")
    assert texts.frequencies("mint") == (NUMBER,)
    assert texts.frequencies(FREQUENT) == (NUMBER + 1,)
