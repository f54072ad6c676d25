"""The indexed texts of one kind in a workspace, as the database has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from memservice_postgres.connections import Driver
from memservice_postgres.search_schema import INDEXED, IS_SAMPLED, SAMPLE_SHARE
from memservice_sql.term_counts import TermCounts
from memservice_sql.text_blocks import TextBlock, block_of, numbered
from memservice_sql.text_cache import States, TextState

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction

OVERLAP = 4 * 200
"""How far before the newest id texts are read again, when texts were added: another transaction may
have stored one with a lower key later. If that is not enough, their number tells."""

MIN_SAMPLED = 16
"""Rows of a term in the sample from which its number is estimated: the standard error is a quarter,
or more if the texts of a group share their words. A quarter changes the weight of the term, a
logarithm, by 4 %."""
MAX_SAMPLED = 200
"""Rows of the sample that are read for a term."""

_STATES = """
    SELECT kind, sum(documents)::bigint, sum(length)::bigint, bit_xor(revision), bit_xor(removal)
    FROM text_statistics WHERE workspace_key = %s GROUP BY kind
"""
# Rare terms are counted one row after the other, which is cheap because they are rare. The number
# of frequent ones is estimated from a sample: PostgreSQL reads all postings of a term before it
# counts the first row, and each row from another page.
_STATISTICS = f"""
    WITH state AS MATERIALIZED (
        SELECT coalesce(sum(documents), 0)::bigint AS documents,
            coalesce(sum(length), 0)::bigint AS length,
            coalesce(bit_xor(revision), 0) AS revision, coalesce(bit_xor(removal), 0) AS removal
        FROM text_statistics WHERE workspace_key = %(workspace)s AND kind = %(kind)s
    )
    SELECT NULL, documents, length, revision, removal FROM state
    UNION ALL
    SELECT wanted.term, CASE
            WHEN sampled.rows < %(min_sampled)s OR state.documents <= %(exact_documents)s
            THEN (SELECT count(*) FROM text_rows r WHERE {INDEXED} @> ARRAY[wanted.term])
        END, sampled.rows, sampled.first, sampled.last
    FROM state CROSS JOIN unnest(%(terms)s::text[]) AS wanted (term) CROSS JOIN LATERAL (
        SELECT count(*) AS rows, min(id) AS first, max(id) AS last FROM (
            SELECT id FROM text_rows
            WHERE terms @> ARRAY[wanted.term] AND {IS_SAMPLED} LIMIT %(max_sampled)s
        ) AS held
    ) AS sampled
"""  # noqa: S608 - a constant
# Whole rows of the index `text_rows_order` are compared. With a condition on each column, the
# planner may read all workspaces' texts by their ids, and expects to meet this workspace soon.
_AFTER = "(workspace_key, kind, id) > (%(workspace)s, %(kind)s, %(after)s)"
_WITHIN = "(workspace_key, kind, id) < (%(workspace)s, %(kind)s + 1, 0)"
_EXTENT = f"""
    SELECT (
        SELECT id FROM text_rows WHERE {_AFTER} ORDER BY workspace_key, kind, id LIMIT 1
    ), (
        SELECT id FROM text_rows WHERE {_WITHIN}
        ORDER BY workspace_key DESC, kind DESC, id DESC LIMIT 1
    )
"""  # noqa: S608 - constants
_TEXTS = """
    SELECT r.id, r.session_key, r.author_key, r.observer_key, r.observed_key, r.level, r.length,
        r.counts, r.terms FROM text_rows r WHERE r.kind = %(kind)s
"""
_ALL = f"{_TEXTS} AND r.workspace_key = %(workspace)s".encode()
_NEWER = f"""
    {_TEXTS} AND r.id = ANY(ARRAY(SELECT id FROM text_rows WHERE {_AFTER} AND {_WITHIN}))
""".encode()  # noqa: S608 - constants
_OF_SESSION = _ALL + b" AND r.session_key = %(session)s"
_NEWER_OF_SESSION = _OF_SESSION + b" AND r.id > %(after)s"


def states_of(driver: Driver, tx: Transaction | None) -> States:
    """The states of the texts in this transaction. `driver`: its connection."""
    return States(tx, lambda workspace_key: driver.reader.rows(_STATES, (workspace_key,)))


class StoredTexts(Struct):
    """See `memservice_sql.text_cache.StoredTexts`. Terms are stored ones, with their prefix. In a
    workspace of more than `exact_documents` texts, numbers of frequent terms are estimated.
    `counts` remembers them."""

    driver: Driver
    states: States
    workspace_key: int
    kind: int
    exact_documents: int
    counts: TermCounts
    is_reading: bool
    _extent: tuple[int, int] | None = None

    @property
    def _workspace(self) -> dict[str, int]:
        return {"workspace": self.workspace_key, "kind": self.kind}

    def state(self) -> TextState:
        return self.states.of(self.workspace_key, self.kind)

    def statistics(self, terms: Collection[str]) -> tuple[TextState, dict[str, int]]:
        return self.counts.statistics(terms, self._count)

    def _count(self, terms: Collection[str]) -> tuple[TextState, dict[str, int]]:
        values = {
            **self._workspace,
            "terms": list(terms),
            "exact_documents": self.exact_documents,
            "min_sampled": MIN_SAMPLED,
            "max_sampled": MAX_SAMPLED,
        }
        (_, *numbers), *statistics = self.driver.reader.rows(_STATISTICS, values)
        state = TextState(self.workspace_key, self.kind, *numbers)
        row_counts = {term: rows for term, rows, *_ in statistics if rows is not None}
        sampled = [row for row in statistics if row[1] is None]
        if sampled:
            row_counts |= self._estimated(sampled, state.documents)
        return state, row_counts

    def extent(self) -> tuple[int, int]:
        """The least and the greatest id of the workspace's texts, read once."""
        if self._extent is None:
            values = {**self._workspace, "after": 0}
            first, last = self.driver.reader.rows(_EXTENT, values)[0]
            self._extent = first, last
        return self._extent

    def _estimated(self, sampled: Sequence[Any], documents: int) -> dict[str, int]:
        """The number of rows with each term. If not all rows of the sample were read, the share of
        the workspace in which those are that were read tells how many there are."""
        shares: dict[str, float] = {}
        if any(rows == MAX_SAMPLED for _, _, rows, *_ in sampled):
            first, last = self.extent()
            shares = {
                term: min(1.0, (highest - lowest + 1) / (last - first + 1))
                for term, _, rows, lowest, highest in sampled
                if rows == MAX_SAMPLED
            }
        return {
            term: min(documents, round(SAMPLE_SHARE * rows / shares.get(term, 1.0)))
            for term, _, rows, *_ in sampled
        }

    def read(self, newest: int | None, session: int | None = None) -> TextBlock:
        values = {**self._workspace, "session": session}
        if newest is not None:
            values["after"] = newest - OVERLAP
        whole, newer = (_ALL, _NEWER) if session is None else (_OF_SESSION, _NEWER_OF_SESSION)
        statement = whole if newest is None else newer
        rows = self.driver.execute(statement, values, binary=True).fetchall()
        numbers, vocabulary = numbered(chain.from_iterable(row[8] for row in rows))
        counts = np.fromiter(chain.from_iterable(row[7] for row in rows), np.int32)
        return block_of(
            [row[:6] for row in rows],
            [row[6] for row in rows],
            [len(row[8]) for row in rows],
            numbers,
            counts,
            vocabulary,
        )
