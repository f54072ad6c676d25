"""Full text in a GIN index: rows of one workspace, searched by their rarest terms first.

Every term is indexed with a prefix for its kind and workspace ("m12_axolotl"), so that postings,
document frequencies and cost depend on that workspace only. The index stores which rows contain a
term; the number of occurrences is read from the returned rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from math import ceil, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from memservice.domain.ranking import HitTable
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextHit, TextMatches, TextRow
from memservice_postgres.connections import Driver
from memservice_postgres.integers import numbers
from memservice_postgres.json_text import encode_rows
from memservice_postgres.narrowing import CONDITIONS, driver_behind, fitting
from memservice_postgres.postings import Postings, heaviest
from memservice_postgres.search_schema import INDEXED, SESSION_PREFIX
from memservice_postgres.stored_texts import StoredTexts, states_of
from memservice_sql.term_counts import TermCounts
from memservice_sql.text_blocks import SearchTerm, best, best_of_rows
from memservice_sql.text_cache import (
    MAX_DOCUMENTS,
    TextCache,
    TextState,
    is_reading,
    random_number,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memservice.spi.storage import Transaction

KINDS = {"message": 0, "conclusion": 1, "document": 2}
PREFIXES = "mcd"
MAX_TERM_LENGTH = 200
"""Maximum indexed characters of a term; the rest is cut. The size of an index entry is limited."""
MAX_PICKED = 8
"""Maximum terms of a query whose counts the server picks from a row."""
MAX_OF_RAREST = 4_000
"""Rows of a term that are all read in a large workspace, to find the newest."""
MAX_OF_SESSIONS = 4_000
"""Rows of sessions that are all read in a large workspace. Of more, those with a term and one of
the sessions are found by the index."""
MAX_COMPARED = 100_000
"""Postings of common terms that are compared with those of rare ones in a large workspace:
PostgreSQL does so in 0.01 µs each, and then reads each row that has both."""
RANGE_BITS = 16
"""Ids of one range differ in so many of their last bits: it has 16,384 messages of all
workspaces."""
MAX_RANGES = 200
"""Maximum number of ranges in which the newest rows with a term are looked for."""
MAX_COUNTED = 32_767
"""Maximum counted occurrences of a term in one text."""
PARTS = 64
"""Parts of each workspace's statistics. A connection adds to one of them."""
WEIGHT_SCALE = 1_000_000
"""Weights are multiplied by this and rounded to integers, so that their sums do not depend on the
order of addition."""

_COUNTED = f"""
    INSERT INTO text_statistics AS s
        (workspace_key, kind, part, documents, length, revision, removal)
    SELECT workspace_key, kind, pg_backend_pid() %% {PARTS},
        %(sign)s * count(*), %(sign)s * sum(length), %(number)s, %(removal)s
    FROM changed GROUP BY workspace_key, kind
    ON CONFLICT (workspace_key, kind, part)
    DO UPDATE SET documents = s.documents + excluded.documents, length = s.length + excluded.length,
        revision = excluded.revision, removal = coalesce(nullif(excluded.removal, 0), s.removal)
"""  # noqa: S608 - a constant
_ADD = f"""
    WITH changed AS (
        INSERT INTO text_rows
        (id, workspace_key, kind, session_key, author_key, observer_key, observed_key, level,
        at, length, counts, terms)
        SELECT (v->>0)::bigint, %(workspace)s, %(kind)s, (v->>1)::bigint, (v->>2)::bigint,
        (v->>3)::bigint, (v->>4)::bigint, v->>5,
        (v->>6)::timestamptz, (v->>7)::integer, (v->>8)::smallint[], (v->>9)::text[]
        FROM json_array_elements(%(rows)s::json) v
        ON CONFLICT (id) DO NOTHING RETURNING id, workspace_key, kind, length
    ), counted AS ({_COUNTED})
    SELECT id FROM changed
"""  # noqa: S608 - constants
_REMOVE = f"""
    WITH changed AS (
        DELETE FROM text_rows WHERE id = ANY(%(ids)s) RETURNING workspace_key, kind, length
    ), counted AS ({_COUNTED})
    SELECT count(*) FROM changed
"""  # noqa: S608 - constants
_OF_WORKSPACE = "SELECT id FROM text_rows WHERE workspace_key = %s LIMIT %s"
_MINE = "SELECT id FROM text_rows WHERE id = ANY(%s) AND workspace_key = %s"
_SIZES = """
    SELECT workspace_key, sum(documents)::bigint FROM text_statistics
    WHERE kind = %s AND workspace_key = ANY(%s) GROUP BY workspace_key
"""
_DELETE_STATISTICS = "DELETE FROM text_statistics WHERE workspace_key = %s"

# Sessions of few rows are read by `_IN_SESSIONS`, rows of others by their terms, one of which is
# the session. By its key, the planner would look for it in the index of all workspaces, too, and
# read the whole of it.
_INDEXED_CONDITIONS = CONDITIONS | {"sessions": f"{INDEXED} && %(session_terms)s::text[]"}
_TESTED_CONDITIONS = CONDITIONS | {"sessions": "r.session_key + 0 = ANY(%(sessions)s::bigint[])"}
_SESSION_ROWS = """
    SELECT count(*) FROM (
        SELECT 1 FROM text_rows r
        WHERE r.workspace_key = %(workspace)s AND r.kind = %(kind)s
            AND r.session_key = ANY(%(sessions)s) LIMIT %(enough)s
    ) AS found
"""
# What is read of a row: its counts of the terms of the query, 0 of those that it lacks, or all of
# its counts and terms. The former is five times as fast, but takes long for many terms.
_OF_QUERY = """
    ARRAY(SELECT coalesce(r.counts[array_position(r.terms, wanted.term)], 0::smallint)
        FROM unnest(%(wanted)s::text[]) WITH ORDINALITY AS wanted (term, number)
        ORDER BY wanted.number), NULL::text[]
"""
_OF_ROW = "r.counts, r.terms"
_IN_SESSIONS = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE r.workspace_key = %(workspace)s AND r.kind = %(kind)s
        AND r.session_key = ANY(%(sessions)s) {tested}
        AND (r.terms && %(terms)s::text[]) IS TRUE
    ORDER BY (
        SELECT sum(w.weight) FROM unnest(%(terms)s::text[], %(weights)s::bigint[]) AS w (term,
            weight) WHERE w.term = ANY(r.terms)
    ) DESC, r.id DESC LIMIT %(limit)s
"""
_OF_KEYS = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE r.id = ANY(%(ids)s) AND r.workspace_key = %(workspace)s {tested}
        AND (r.terms && %(terms)s::text[]) IS TRUE
"""
# Each posting brings its row's count: the best rows are not read once more by their ids, for which
# the planner would read the whole table.
_POSTINGS = """
    SELECT w.number::integer, array_send(array_agg(held.id)),
        array_send(array_agg(held.length::bigint)), array_send(array_agg(held.count::bigint))
    FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS w (term, number) CROSS JOIN LATERAL (
        SELECT r.id, r.length, r.counts[array_position(r.terms, w.term)] AS count
        FROM text_rows r WHERE {indexed} @> ARRAY[w.term] {fits}
    ) AS held GROUP BY w.number ORDER BY w.number
"""
# The heaviest rows of the rare terms, with their counts of the common terms as well. The array is
# computed first, so the rows are read by their keys.
_RAREST = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE r.id = ANY(ARRAY(
        SELECT held.id FROM unnest(%(rare)s::text[], %(rare_weights)s::bigint[]) AS w (term, weight)
        CROSS JOIN LATERAL (SELECT r.id FROM text_rows r WHERE {indexed} @> ARRAY[w.term] {fits})
            AS held
        GROUP BY held.id ORDER BY sum(w.weight) DESC, held.id DESC LIMIT %(limit)s
    ))
"""
_TWO_COMMON = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE {indexed} @> ARRAY[%(first)s] AND {indexed} && %(others)s::text[] {fits} LIMIT %(limit)s
"""
# Rows with each of these terms that were not found yet.
_EACH = """
    SELECT held.* FROM unnest(%(terms)s::text[]) AS w (term) CROSS JOIN LATERAL (
        SELECT r.id, r.length, {counts} FROM text_rows r
        WHERE {indexed} @> ARRAY[w.term] AND r.id <> ALL(%(found)s::bigint[]) {fits}
        LIMIT %(limit)s
    ) AS held
"""

# In large workspaces. Rows with one of these terms and a more common one: the index reads only
# their postings, and only such rows are read from the table.
_SEVERAL = """
    SELECT held.* FROM unnest(%(several)s::text[]) WITH ORDINALITY AS w (term, number)
    CROSS JOIN LATERAL (
        SELECT r.id, r.length, {counts} FROM text_rows r WHERE {indexed} @> ARRAY[w.term]
            AND {indexed} && (%(compared)s::text[])[w.number + 1:] {fits} LIMIT %(limit)s
    ) AS held
"""
# The newest rows with each of these terms that were not found yet. The sum keeps the planner from
# reading all rows from the newest one on.
_NEWEST = """
    SELECT held.* FROM unnest(%(newest)s::text[]) AS w (term) CROSS JOIN LATERAL (
        SELECT r.id, r.length, {counts} FROM text_rows r WHERE r.id = ANY(ARRAY(
            SELECT r.id FROM text_rows r
            WHERE {indexed} @> ARRAY[w.term] AND r.id <> ALL(%(found)s::bigint[]) {fits}
            ORDER BY r.id + 0 DESC LIMIT %(limit)s
        ))
    ) AS held
"""
# The same among the rows of these ranges of ids only: the index compares the postings of the term
# with those of the ranges, so other rows are not read. Those that are read are few, so their counts
# are sorted with them.
_NEWEST_OF_RANGES = """
    SELECT r.id, r.length, {counts} FROM (
        SELECT r.id, r.length, r.counts, r.terms FROM text_rows r
        WHERE {indexed} @> %(newest)s::text[] AND {indexed} && %(ranges)s::text[]
            AND r.id <> ALL(%(found)s::bigint[]) {fits}
        ORDER BY r.id + 0 DESC LIMIT %(limit)s
    ) AS r
"""

Row = tuple[int, int, list[int], list[str] | None]
"""Id, length, and the number of occurrences of each term; the terms, or None for those of the
query."""


def kind_code(kind: str) -> int:
    try:
        return KINDS[kind]
    except KeyError:
        raise ValueError(f"unknown kind of text {kind!r}; known: {', '.join(KINDS)}") from None


class PostgresTextIndex:
    """The `TextIndex` of the PostgreSQL storage. Safe for threads and processes: each keeps texts
    in memory (`memservice_sql.text_cache`).

    `budget` bounds the postings that one search reads once it has enough candidates. Beyond it, the
    most common terms are used for ranking only. In a workspace of more than `exact_documents`
    texts, numbers of frequent terms are estimated, and fewer rows are read.
    """

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def __init__(
        self,
        budget: int = 10_000,
        exact_documents: int = MAX_DOCUMENTS,
        cache: TextCache | None = None,
        counts: TermCounts | None = None,
    ) -> None:
        self._budget = budget
        self._exact_documents = exact_documents
        self._cache = cache or TextCache()
        self._counts = counts or TermCounts()

    def add(
        self, tx: Transaction | None, kind: str, workspace_key: int, rows: Sequence[TextRow]
    ) -> None:
        driver, code = driver_behind(tx), kind_code(kind)
        unique = {row.key * 4 + code: row for row in rows}
        if not unique:
            return
        prefix = _prefix(code, workspace_key)
        encoded = {id: _encoded(id, row, prefix) for id, row in unique.items()}
        shared = {"workspace": workspace_key, "kind": code, "sign": 1, "removal": 0}
        added_ids = {
            id
            for (id,) in driver.execute(
                _ADD,  # pyrefly: ignore[bad-argument-type]  # made of constants
                {
                    **shared,
                    "number": random_number(),
                    "rows": encode_rows(list(encoded.values())),
                },
            )
        }
        existing_ids = [id for id in encoded if id not in added_ids]
        if existing_ids:
            _remove(driver, existing_ids)
            driver.execute(
                _ADD,  # pyrefly: ignore[bad-argument-type]  # made of constants
                {
                    **shared,
                    "number": random_number(),
                    "rows": encode_rows([encoded[id] for id in existing_ids]),
                },
            )

    def remove(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> None:
        driver, code = driver_behind(tx), kind_code(kind)
        _remove(
            driver,
            [
                id
                for (id,) in driver.execute(
                    _MINE, ([key * 4 + code for key in keys], workspace_key)
                )
            ],
        )

    def indexed(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> list[int]:
        driver, code = driver_behind(tx), kind_code(kind)
        ids = [key * 4 + code for key in keys]
        return [(id - code) // 4 for (id,) in driver.execute(_MINE, (ids, workspace_key))]

    def drop(self, tx: Transaction | None, workspace_key: int, limit: int) -> int:
        driver = driver_behind(tx)
        removed = _remove(
            driver, [id for (id,) in driver.execute(_OF_WORKSPACE, (workspace_key, limit))]
        )
        if not removed:
            driver.execute(_DELETE_STATISTICS, (workspace_key,))
        return removed

    def sizes(
        self, tx: Transaction | None, kind: str, workspace_keys: Sequence[int]
    ) -> Mapping[int, int]:
        driver, code = driver_behind(tx), kind_code(kind)
        if len(workspace_keys) == 1:
            state = states_of(driver, tx).of(workspace_keys[0], code)
            return {state.workspace_key: state.documents}
        rows = driver.execute(_SIZES, (code, list(workspace_keys)))
        return {row[0]: row[1] for row in rows}

    def sweep(self) -> None:
        """Free the texts in memory that were not searched lately."""
        self._cache.sweep()

    def search(
        self,
        tx: Transaction | None,
        kind: str,
        workspace_key: int,
        terms: Sequence[str],
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
    ) -> TextMatches:
        driver, code = driver_behind(tx), kind_code(kind)
        prefix = _prefix(code, workspace_key)
        prefixed = {term: prefix + term[:MAX_TERM_LENGTH] for term in terms}
        names: dict[str, list[str]] = {}
        for term, stored_term in prefixed.items():
            names.setdefault(stored_term, []).append(term)
        texts = StoredTexts(
            driver,
            states_of(driver, tx),
            workspace_key,
            code,
            self._exact_documents,
            self._counts,
            is_reading(tx),
        )
        state, blocks, row_counts = self._cache.prepare(texts, names, self._budget)
        documents = state.documents
        frequencies = {term: row_counts.get(prefixed[term], 0) for term in terms}
        matches = TextMatches(documents, state.mean_length, frequencies)
        rarest_first = sorted((rows, term) for term, rows in row_counts.items() if rows)
        if not rarest_first or k <= 0:
            return matches
        search_terms = [
            _SearchTerm(
                term,
                rows,
                round(WEIGHT_SCALE * log(1 + max(0.0, documents - rows + 0.5) / (rows + 0.5))),
            )
            for rows, term in rarest_first
        ]
        workspace_parameters = {"workspace": workspace_key, "kind": code}
        query = _Query(driver, workspace_parameters, index_filter, search_terms, names)
        if ids is not None:
            hits = _best(query, _rows_of_keys(query, [key * 4 + code for key in ids]), k)
            return replace(matches, hits=hits)
        blocks, few_rows = self._cache.narrowed(
            texts, state, blocks, index_filter, partial(_few_rows, query, self._counts, state)
        )
        if blocks:
            return replace(matches, hits=best(blocks, query.words, index_filter, k))
        is_large = documents > self._exact_documents
        if few_rows is not None and (few_rows <= MAX_OF_SESSIONS or not is_large):
            hits = _best(query, query.execute(_IN_SESSIONS, {"limit": k}), k)
            return replace(matches, hits=hits)
        if is_large:
            # Of the postings of a term, those in the sessions count.
            share = 1.0 if few_rows is None else few_rows / documents
            return replace(matches, hits=self._hits_of_many(query, k, texts, self._budget / share))
        return replace(matches, hits=self._hits(query, k))

    def _hits(self, query: _Query, k: int) -> Sequence[TextHit]:
        """The `k` rows with the rarest terms, with the count of each term."""
        affordable_count = sum(
            total <= self._budget for total in accumulate(term.rows for term in query.terms)
        )
        rare_terms, common_terms = query.terms[:affordable_count], query.terms[affordable_count:]
        if not common_terms:
            return heaviest(_postings(query), k)
        rows: dict[int, Row] = {}

        def read(sql: str, limit: int, **values: Any) -> None:
            values |= {"found": list(rows), "limit": limit}
            rows.update({row[0]: row for row in query.execute(sql, values)})

        if rare_terms:
            rare = [term.term for term in rare_terms]
            read(_RAREST, 4 * k, rare=rare, rare_weights=[term.weight for term in rare_terms])
        if len(rows) < k and len(common_terms) > 1:
            # First the rows with the rarest of the common terms and another common term.
            read(
                _TWO_COMMON,
                max(4 * k, self._budget // 10),
                first=common_terms[0].term,
                others=[term.term for term in common_terms[1:]],
            )
        if len(rows) < k:
            read(_EACH, k - len(rows), terms=[term.term for term in common_terms])
        return _best(query, rows.values(), k)

    def _hits_of_many(self, query: _Query, k: int, texts: StoredTexts, budget: float) -> HitTable:
        """The same in a workspace of so many texts that it takes too long to read all rows of the
        rare terms: first those with several terms, then the newest with the rarest."""
        rows: dict[int, Row] = {}

        def read(sql: str, limit: int, **values: Sequence[str]) -> int:
            """Returns the number of rows."""
            new = query.execute(sql, {**values, "found": list(rows), "limit": limit})
            rows.update({row[0]: row for row in new})
            return len(new)

        names = [term.term for term in query.terms]
        totals = accumulate(term.rows for term in query.terms)
        affordable_count = max(1, sum(total <= budget for total in totals))
        totals = accumulate(term.rows for term in query.terms[affordable_count:])
        compared = names[: affordable_count + sum(total <= MAX_COMPARED for total in totals)]
        if len(compared) > 1:
            read(_SEVERAL, 4 * k, several=names[:affordable_count], compared=compared)
        hits = _best(query, rows.values(), k)
        # No row that only has the rarest term is better than `k` rows that weigh as much.
        if len(hits) == k and _weights(query, hits)[-1] >= query.terms[0].weight:
            return hits
        rare_count = _rare_count(query.terms, k)
        if rare_count:
            read(_EACH, k, terms=names[:rare_count])
            hits = _best(query, rows.values(), k)
        if rare_count < len(names):
            following = query.terms[rare_count]
            # Rows that only have this term rank behind those that weigh more.
            missing = k - int((_weights(query, hits) > following.weight).sum())
            ranges = _newest_ranges(query, following, missing, texts)
            newest = names[rare_count : rare_count + 1]
            if ranges:
                missing -= read(_NEWEST_OF_RANGES, missing, newest=newest, ranges=ranges)
            if missing and following.rows <= MAX_OF_RAREST:
                read(_NEWEST, missing, newest=newest)
        if len(rows) < k:
            read(_EACH, k - len(rows), terms=names)
        return _best(query, rows.values(), k)


class _SearchTerm(NamedTuple):
    term: str
    """The term as stored, with its prefix."""
    rows: int
    """The number of rows of the workspace that contain it."""
    weight: int
    """Its inverse document frequency, as in BM25, times `WEIGHT_SCALE`."""


class _Query(NamedTuple):
    """One search, and the connection that runs it."""

    driver: Driver
    workspace_parameters: Mapping[str, int]
    """The workspace and the kind."""
    index_filter: IndexFilter
    terms: Sequence[_SearchTerm]
    """Those that the workspace has, the rarest first."""
    names: Mapping[str, Sequence[str]]
    """Stored term → the terms of the query that are stored as it."""

    @property
    def words(self) -> list[SearchTerm]:
        return [SearchTerm(term.term, term.weight, self.names[term.term]) for term in self.terms]

    def execute(self, sql: str, values: Mapping[str, Any], binary: bool = False) -> list[Any]:
        """The rows of a statement with the filter in it, and with the counts of the terms."""
        terms = [term.term for term in self.terms]
        statement, filter_values = completed(sql, self.index_filter, len(terms))
        return self.driver.reader.rows(
            statement,
            {
                **self.workspace_parameters,
                **filter_values,
                "terms": terms,
                "wanted": terms,
                "weights": [term.weight for term in self.terms],
                **values,
            },
            binary=binary,
        )


def completed(sql: str, index_filter: IndexFilter, terms: int) -> tuple[str, dict[str, Any]]:
    """A statement with the filter in it, and with the counts of so many terms; the values of the
    filter."""
    fits, values = fitting(index_filter, _INDEXED_CONDITIONS)
    tested, _ = fitting(index_filter, _TESTED_CONDITIONS)
    if index_filter.sessions is not None:
        values["session_terms"] = [f"{SESSION_PREFIX}{key}" for key in index_filter.sessions]
    counts = _OF_QUERY if terms <= MAX_PICKED else _OF_ROW
    return sql.format(fits=fits, tested=tested, counts=counts, indexed=INDEXED), values


def _weights(query: _Query, hits: HitTable) -> NDArray[np.int64]:
    """The total weight of the terms of each hit."""
    columns = [hits.terms.index(query.names[term.term][0]) for term in query.terms]
    contains: Any = hits.counts[:, columns] > 0
    weights: NDArray[np.int64] = contains @ np.array(
        [term.weight for term in query.terms], np.int64
    )
    return weights


def _rare_count(terms: Sequence[_SearchTerm], k: int) -> int:
    """The number of terms, the rarest first, that together have fewer than `k` rows."""
    return sum(total < k for total in accumulate(term.rows for term in terms))


def _newest_ranges(query: _Query, term: _SearchTerm, limit: int, texts: StoredTexts) -> list[str]:
    """The newest ranges of ids, in which half as many rows again as needed have the term, if it is
    spread evenly; none if these are most of the workspace."""
    if query.index_filter != EVERYTHING:
        return []
    first, last = (id >> RANGE_BITS for id in texts.extent())
    count = ceil(1.5 * limit * (last - first + 1) / term.rows)
    if 2 * count > last - first or count > MAX_RANGES:
        return []
    prefix = _prefix(texts.kind, texts.workspace_key)
    return [_range(prefix, number) for number in range(last - count + 1, last + 1)]


def _postings(query: _Query) -> list[Postings]:
    """Of each term."""
    return [
        Postings(query.names[term.term], term.weight, *map(numbers, sent))
        for number, *sent in query.execute(_POSTINGS, {}, binary=True)
        for term in (query.terms[number - 1],)
    ]


def _rows_of_keys(query: _Query, ids: Sequence[int]) -> list[Row]:
    return query.execute(_OF_KEYS, {"ids": ids}) if ids else []


def _few_rows(query: _Query, counts: TermCounts, state: TextState) -> int | None:
    """The number of rows of the filter's sessions, if these are so few that they are kept in memory
    or all read: less than about a quarter of the postings of the terms."""
    if query.index_filter.sessions is None:
        return None
    enough = min(sum(term.rows for term in query.terms) // 4, MAX_DOCUMENTS) + 1
    sessions = list(query.index_filter.sessions)
    values = {**query.workspace_parameters, "sessions": sessions, "enough": enough}
    return counts.few_of_sessions(
        sessions, enough, state, lambda: query.driver.reader.rows(_SESSION_ROWS, values)[0][0]
    )


def _best(query: _Query, rows: Iterable[Row], k: int) -> HitTable:
    """The `k` rows whose terms have the greatest total weight (ties: newest first), with the count
    of each term."""
    names = [term.term for term in query.terms]
    ids: list[int] = []
    lengths: list[int] = []
    counts: list[list[int]] = []
    for id, length, row_counts, terms in rows:
        ids.append(id)
        lengths.append(length)
        if terms is None:
            counts.append(row_counts)
        else:
            count_of = dict(zip(terms, row_counts, strict=True))
            counts.append([count_of.get(name, 0) for name in names])
    return best_of_rows(
        np.array(ids, np.int64),
        np.array(lengths, np.int32),
        np.array(counts, np.int32).reshape(-1, len(names)),
        query.words,
        k,
    )


def _remove(driver: Driver, ids: list[int]) -> int:
    """Remove rows and their share of the statistics. Returns the number of rows."""
    if not ids:
        return 0
    number = random_number()
    values = {"ids": ids, "sign": -1, "number": number, "removal": number}
    # pyrefly: ignore[bad-argument-type]  # made of constants
    return int(driver.execute(_REMOVE, values).fetchall()[0][0])


def _encoded(id: int, row: TextRow, prefix: str) -> list[Any]:
    term_counts = Counter(term[:MAX_TERM_LENGTH] for term in chain(row.terms, row.related))
    counts = ",".join([*(str(min(count, MAX_COUNTED)) for count in term_counts.values()), "1"])
    stored_terms = [*(prefix + term for term in term_counts), _range(prefix, id >> RANGE_BITS)]
    terms = ",".join(map(_quoted, stored_terms))
    attributes = [row.session, row.author, row.observer, row.observed, row.level, row.at]
    return [id, *attributes, len(row.terms), f"{{{counts}}}", f"{{{terms}}}"]


def _range(prefix: str, number: int) -> str:
    """The stored term of a range of ids, which no word is stored as."""
    return f"{prefix.removesuffix('_')}#{number}"


def _quoted(term: str) -> str:
    """The term as an element of an array literal."""
    escaped = term.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _prefix(code: int, workspace_key: int) -> str:
    return f"{PREFIXES[code]}{workspace_key}_"
