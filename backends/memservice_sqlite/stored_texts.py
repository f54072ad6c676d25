"""The indexed texts of one kind in a workspace, as the database has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import Connection

from memservice_sql.term_counts import TermCounts
from memservice_sql.text_cache import States, TextState
from memservice_sqlite.narrowing import array

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice_sql.text_blocks import TextBlock

BATCH_SIZE = 500
"""Texts of which the terms are in memory at the same time."""

_STATES = """
    SELECT kind, documents, length, revision, removal FROM text_statistics WHERE workspace_key = ?
"""
# FTS5 counts the rows with a term by reading its postings.
_STATISTICS = """
    SELECT NULL, documents, length, revision, removal
    FROM text_statistics WHERE workspace_key = ? AND kind = ?
    UNION ALL
    SELECT term, doc, 0, 0, 0 FROM text_vocabulary WHERE term IN (SELECT value FROM json_each(?))
"""
_TEXTS = """
    SELECT r.id, r.session_key, r.author_key, r.observer_key, r.observed_key, r.level, t.length,
        t.terms
    FROM text_rows r INDEXED BY text_rows_order CROSS JOIN text_terms t ON t.id = r.id
    WHERE r.workspace_key = :workspace AND r.kind = :kind
"""
_NEWER = f"{_TEXTS} AND r.id > :newest"
_OF_SESSION = _TEXTS.replace("text_rows_order", "text_rows_place") + " AND r.session_key = :session"
_NEWER_OF_SESSION = f"{_OF_SESSION} AND r.id > :newest"


def rows_of(connection: Connection, sql: str, values: Any) -> list[Any]:
    """The rows of a statement, run by the driver: SQLAlchemy's part takes longer than a look-up."""
    cursor = connection.connection.cursor()
    cursor.execute(sql, values)
    return list(cursor.fetchall())


def states_of(connection: Connection, tx: Transaction | None) -> States:
    """The states of the texts in this transaction. `connection`: its own."""
    return States(tx, lambda workspace_key: rows_of(connection, _STATES, (workspace_key,)))


class StoredTexts(Struct, frozen=True):
    """See `memservice_sql.text_cache.StoredTexts`. Terms are tokens without `prefix`. `counts`
    remembers how many texts have a frequent term."""

    connection: Connection
    states: States
    workspace_key: int
    kind: int
    prefix: str
    counts: TermCounts
    is_reading: bool

    def state(self) -> TextState:
        return self.states.of(self.workspace_key, self.kind)

    def statistics(self, terms: Collection[str]) -> tuple[TextState, dict[str, int]]:
        state, row_counts = self.counts.statistics(
            [self.prefix + term for term in terms], self._count
        )
        return state, {term[len(self.prefix) :]: rows for term, rows in row_counts.items()}

    def _count(self, prefixed: Collection[str]) -> tuple[TextState, dict[str, int]]:
        """With the prefix."""
        state = TextState(self.workspace_key, self.kind, 0, 0, 0, 0)
        row_counts: dict[str, int] = {}
        values = (self.workspace_key, self.kind, array(prefixed))
        for term, *numbers in rows_of(self.connection, _STATISTICS, values):
            if term is None:
                state = TextState(self.workspace_key, self.kind, *numbers)
            else:
                row_counts[term] = numbers[0]
        return state, row_counts

    def read(self, newest: int | None, session: int | None = None) -> TextBlock:
        import numpy as np

        from memservice_sql.text_blocks import block_of, numbered

        values = {"workspace": self.workspace_key, "kind": self.kind}
        cursor = self.connection.connection.cursor()
        whole, newer = (_TEXTS, _NEWER) if session is None else (_OF_SESSION, _NEWER_OF_SESSION)
        cursor.execute(
            whole if newest is None else newer, values | {"newest": newest, "session": session}
        )
        # " term=count term=count ": the pairs of all texts, of which most occur several times. A
        # term may contain any space but this one. The parts of a text take several times its
        # memory, so one text at a time is split, and few are read at once.
        facts: list[Sequence[Any]] = []
        lengths: list[int] = []
        sizes: list[int] = []

        def texts() -> Iterator[list[str]]:
            while rows := cursor.fetchmany(BATCH_SIZE):
                for row in rows:
                    pairs = row[7][1:-1].split(" ") if len(row[7]) > 1 else []
                    facts.append(row[:6])
                    lengths.append(row[6])
                    sizes.append(len(pairs))
                    yield pairs

        pair_numbers, distinct_pairs = numbered(chain.from_iterable(texts()))
        split = [pair.rpartition("=") for pair in distinct_pairs]
        term_of_pair, vocabulary = numbered(term for term, _, _ in split)
        count_of_pair = np.array([int(number) for _, _, number in split], np.int32)
        return block_of(
            facts,
            lengths,
            sizes,
            term_of_pair[pair_numbers],
            count_of_pair[pair_numbers],
            vocabulary,
        )
