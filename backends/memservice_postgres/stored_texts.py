"""The indexed texts of one kind in a workspace, as the database has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from memservice_postgres.connections import Driver
from memservice_postgres.term_counts import TermCounts
from memservice_sql.text_blocks import TextBlock, block_of, numbered
from memservice_sql.text_cache import MAX_ID_DISTANCE, TextState

OVERLAP = 4 * 200
"""How far before the newest id texts are read again, when texts were added: another transaction may
have stored one with a lower key later. If that is not enough, their number tells."""

# The number of rows with each term: counted up to a limit, in the physical order of rows, which is
# roughly the order of insertion. Larger numbers are estimated from the share of the workspace's
# rows that were read when the limit was reached.
_STATISTICS = """
    SELECT NULL, coalesce(sum(documents), 0)::bigint, coalesce(sum(length), 0)::bigint,
        coalesce(bit_xor(revision), 0), coalesce(bit_xor(removal), 0)
    FROM text_statistics WHERE workspace_key = %(workspace)s AND kind = %(kind)s
    UNION ALL
    SELECT wanted.term, found.rows, 0, found.first, found.last
        FROM unnest(%(terms)s::text[]) AS wanted (term) CROSS JOIN LATERAL (
        SELECT count(*) AS rows, min(id) AS first, max(id) AS last FROM (
            SELECT id FROM text_rows WHERE terms @> ARRAY[wanted.term] LIMIT %(limit)s
        ) AS held
    ) AS found
"""
_EXTENT = "SELECT min(id), max(id) FROM text_rows WHERE workspace_key = %s AND kind = %s"
_TEXTS = """
    SELECT r.id, r.session_key, r.author_key, r.observer_key, r.observed_key, r.level, r.length,
        r.counts, r.terms FROM text_rows r WHERE r.kind = %(kind)s
"""
_ALL = f"{_TEXTS} AND r.workspace_key = %(workspace)s".encode()
# Read by ids, not by the workspace.
_NEWER = (
    f"{_TEXTS} AND r.workspace_key + 0 = %(workspace)s AND r.id > %(newest)s AND r.id <= %(last)s"
).encode()


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """See `memservice_sql.text_cache.StoredTexts`. Terms are stored ones, with their prefix. Texts
    with a term are counted up to `count_limit`; larger numbers are estimated. `counts` remembers
    those of frequent terms."""

    driver: Driver
    workspace_key: int
    kind: int
    count_limit: int
    counts: TermCounts
    is_reading: bool

    @property
    def _workspace(self) -> dict[str, int]:
        return {"workspace": self.workspace_key, "kind": self.kind}

    def statistics(self, terms: Collection[str]) -> tuple[TextState, dict[str, int]]:
        known_terms = self.counts.known_terms(terms)
        state, row_counts = self._count([term for term in terms if term not in known_terms])
        row_counts |= self.counts.of(known_terms, state)
        changed_terms = [term for term in known_terms if term not in row_counts]
        if changed_terms:
            row_counts |= self._count(changed_terms)[1]
        return state, row_counts

    def _count(self, terms: Collection[str]) -> tuple[TextState, dict[str, int]]:
        limit = self.count_limit + 1
        values = {**self._workspace, "terms": list(terms), "limit": limit}
        (_, *numbers), *statistics = self.driver.execute(_STATISTICS, values).fetchall()
        state = TextState(self.workspace_key, self.kind, *numbers)
        row_counts = {term: rows for term, rows, *_ in statistics}
        if any(rows == limit for rows in row_counts.values()):
            row_counts = _estimated(
                self.driver, self._workspace, statistics, state.documents, limit
            )
        self.counts.note(row_counts, state)
        return state, row_counts

    def read(self, newest: int | None) -> tuple[TextBlock, TextState]:
        if newest is None:
            rows = self.driver.execute(_ALL, self._workspace, binary=True).fetchall()
        else:
            ids = {"newest": newest - OVERLAP, "last": newest + MAX_ID_DISTANCE}
            rows = self.driver.execute(_NEWER, {**self._workspace, **ids}, binary=True).fetchall()
        numbers, vocabulary = numbered(chain.from_iterable(row[8] for row in rows))
        counts = np.fromiter(chain.from_iterable(row[7] for row in rows), np.int32)
        block = block_of(
            [row[:6] for row in rows],
            [row[6] for row in rows],
            [len(row[8]) for row in rows],
            numbers,
            counts,
            vocabulary,
        )
        return block, self.statistics(())[0]


def _estimated(
    driver: Driver,
    workspace: Mapping[str, int],
    statistics: Sequence[Any],
    documents: int,
    limit: int,
) -> dict[str, int]:
    """The number of rows with each term. If counting reached the limit, it is estimated from the
    share of rows that were read."""
    first, last = driver.execute(_EXTENT, (workspace["workspace"], workspace["kind"])).fetchall()[0]
    row_counts: dict[str, int] = {}
    for term, rows, _, lowest, highest in statistics:
        if rows == limit:
            share = min(1.0, (highest - lowest + 1) / (last - first + 1))
            rows = min(max(documents, rows), round(rows / share))
        if rows:
            row_counts[term] = rows
    return row_counts
