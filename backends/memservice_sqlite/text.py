"""Full text in FTS5: rows of one workspace, searched by their rarest terms first.

Every term is indexed with a prefix for its kind and workspace ("m12_axolotl"), so that postings,
document frequencies and cost depend on that workspace only. FTS5 stores which rows contain a term;
the number of occurrences is read from the stored terms of the returned rows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, compress
from math import log
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection

from memservice.domain.ranking import HitTable
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextMatches, TextRow
from memservice_sql.term_counts import TermCounts
from memservice_sql.text_cache import (
    MAX_DOCUMENTS,
    TextCache,
    TextState,
    is_reading,
    random_number,
)
from memservice_sqlite import text_merges
from memservice_sqlite.narrowing import FITS, array, connection_of, micros, parameters
from memservice_sqlite.stored_texts import StoredTexts, rows_of, states_of

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice_sql.text_blocks import SearchTerm

KINDS = {"message": 0, "conclusion": 1, "document": 2}
PREFIXES = "mcd"
MAX_COMPARED = 100_000
"""Postings of common terms that are compared with those of the rare ones in a large workspace: FTS5
does so in 0.04 µs each."""
MAX_TERM_LENGTH = 200
"""Maximum indexed characters of a term; the rest is cut. FTS5 truncates tokens at 32 kB."""

_STORED = re.compile("([^ ]+)=[0-9]+ ")
"""A token in the terms of a row (`_encoded`), which have no spaces but those between them."""
_UNSAFE = re.compile(r"[\x00-\x2f\x3a-\x60\x7b-\x7f]")

_ADD_STATISTICS = """
    INSERT INTO text_statistics (workspace_key, kind, documents, length, revision, removal)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (workspace_key, kind) DO UPDATE
        SET documents = documents + excluded.documents, length = length + excluded.length,
            revision = excluded.revision, removal = coalesce(nullif(excluded.removal, 0), removal)
"""
_SIZES = """
    SELECT workspace_key, documents FROM text_statistics
    WHERE kind = ? AND workspace_key IN (SELECT value FROM json_each(?))
"""
_DROP_STATISTICS = "DELETE FROM text_statistics WHERE workspace_key = ?"
REMOVED = (0, 0)
"""The row of the statistics that belongs to no workspace: it counts removed texts whose words are
still in the index (`memservice_sqlite.reclaiming`)."""
# The ids of each query are concatenated in one string, which halves the cost of a long list.
_POSTINGS = """
    SELECT (
        SELECT group_concat(id) FROM (
            SELECT rowid AS id FROM text_index WHERE text_index MATCH wanted.value {newest}
        )
    ) FROM json_each(:matches) wanted ORDER BY wanted.key
"""
_POSTINGS_THAT_FIT = f"""
    SELECT (
        SELECT group_concat(id) FROM (
            SELECT r.id AS id FROM text_index CROSS JOIN text_rows r ON r.id = text_index.rowid
            WHERE text_index MATCH wanted.value AND {FITS} {{newest}}
        )
    ) FROM json_each(:matches) wanted ORDER BY wanted.key
"""  # noqa: S608 - two constants
# For a list that is cut off. FTS5 reads a whole list in half of the time from the oldest row on.
_NEWEST = "ORDER BY text_index.rowid DESC LIMIT :limit"
_ROWS_OF_SESSIONS = """
    SELECT count(*) FROM (
        SELECT 1 FROM text_rows INDEXED BY text_rows_place
        WHERE workspace_key = ? AND kind = ? AND session_key IN (SELECT value FROM json_each(?))
            LIMIT ?
    )
"""
_FITTING_ROWS_OF_SESSIONS = f"""
    SELECT t.id, t.length, t.terms
    FROM text_rows r INDEXED BY text_rows_place CROSS JOIN text_terms t ON t.id = r.id
    WHERE r.workspace_key = :workspace AND r.kind = :kind AND {FITS}
    AND r.session_key IN (SELECT value FROM json_each(:sessions))
"""  # noqa: S608 - two constants
_FITTING_ROWS = f"""
    SELECT t.id, t.length, t.terms FROM json_each(:ids) wanted
    CROSS JOIN text_rows r ON r.id = wanted.value CROSS JOIN text_terms t ON t.id = r.id
    WHERE r.workspace_key = :workspace AND {FITS}
"""  # noqa: S608 - two constants
_ROWS = """
    SELECT t.id, t.length, t.terms FROM json_each(?) wanted CROSS JOIN text_terms t
        ON t.id = wanted.value
"""
_INDEXED = """
    SELECT r.id, r.workspace_key, r.kind, t.length, t.terms FROM json_each(?) wanted
    CROSS JOIN text_rows r ON r.id = wanted.value CROSS JOIN text_terms t ON t.id = r.id
"""
# A row can remain in one table only: every table is asked, and the index by its own keys.
_PRESENT = """
    SELECT wanted.value FROM json_each(:ids) wanted
    LEFT JOIN text_rows r ON r.id = wanted.value LEFT JOIN text_terms t ON t.id = wanted.value
    WHERE r.workspace_key = :workspace OR (r.id IS NULL AND t.id IS NOT NULL)
"""
_OF_WORKSPACE = """
    SELECT r.id, r.workspace_key, r.kind, t.length, t.terms
    FROM text_rows r CROSS JOIN text_terms t ON t.id = r.id WHERE r.workspace_key = ? LIMIT ?
"""
_ADD_ROW = """
    INSERT INTO text_rows
    (id, workspace_key, kind, session_key, author_key, observer_key, observed_key, level, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_TERMS = "INSERT INTO text_terms (id, length, terms) VALUES (?, ?, ?)"
_ADD_POSTINGS = "INSERT INTO text_index (rowid, terms) VALUES (?, ?)"
_REMOVE_POSTINGS = "INSERT INTO text_index (text_index, rowid, terms) VALUES ('delete', ?, ?)"
_REMOVE_TERMS = "DELETE FROM text_terms WHERE id IN (SELECT value FROM json_each(?))"
_REMOVE_ROWS = "DELETE FROM text_rows WHERE id IN (SELECT value FROM json_each(?))"


def token(term: str) -> str:
    """The term in characters that FTS5's tokenizer does not change: ASCII other than a-z and 0-9
    becomes "_" and two hex digits.

    Distinct terms have distinct tokens, except terms longer than `MAX_TERM_LENGTH`, which are cut.
    """
    return _UNSAFE.sub(lambda match: f"_{ord(match[0]):02x}", term[:MAX_TERM_LENGTH])


def kind_code(kind: str) -> int:
    try:
        return KINDS[kind]
    except KeyError:
        raise ValueError(f"unknown kind of text {kind!r}; known: {', '.join(KINDS)}") from None


class SqliteTextIndex:
    """The `TextIndex` of the SQLite storage. Safe for threads and processes: each keeps texts in
    memory (`memservice_sql.text_cache`).

    `budget` bounds the postings that one search reads once it has enough candidates. Beyond it, the
    most common terms are used for ranking only. In a workspace of more than `exact_documents`
    texts, fewer rows are read.
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
        connection, code = connection_of(tx), kind_code(kind)
        unique = {row.key * 4 + code: row for row in rows}
        if not unique:
            return
        _remove_rows(connection, connection.exec_driver_sql(_INDEXED, (array(unique),)).all())
        counts = {
            id: Counter(map(token, chain(row.terms, row.related))) for id, row in unique.items()
        }
        connection.exec_driver_sql(
            _ADD_ROW,
            [
                (
                    id,
                    workspace_key,
                    code,
                    r.session,
                    r.author,
                    r.observer,
                    r.observed,
                    r.level,
                    micros(r.at),
                )
                for id, r in unique.items()
            ],
        )
        connection.exec_driver_sql(
            _ADD_TERMS,
            [
                (id, len(unique[id].terms), _encoded(term_counts))
                for id, term_counts in counts.items()
            ],
        )
        prefix = _prefix(code, workspace_key)
        _write_postings(
            connection,
            _ADD_POSTINGS,
            [(id, _tokens(prefix, term_counts)) for id, term_counts in counts.items()],
        )
        total = sum(len(row.terms) for row in unique.values())
        connection.exec_driver_sql(
            _ADD_STATISTICS, (workspace_key, code, len(unique), total, random_number(), 0)
        )

    def remove(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> None:
        connection, code = connection_of(tx), kind_code(kind)
        rows = connection.exec_driver_sql(
            _INDEXED, (array({key * 4 + code for key in keys}),)
        ).all()
        _remove_rows(connection, [row for row in rows if row[1] == workspace_key])

    def indexed(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> list[int]:
        connection, code = connection_of(tx), kind_code(kind)
        ids = array({key * 4 + code for key in keys})
        rows = connection.exec_driver_sql(_PRESENT, {"ids": ids, "workspace": workspace_key})
        return [(id - code) // 4 for (id,) in rows.all()]

    def drop(self, tx: Transaction | None, workspace_key: int, limit: int) -> int:
        connection = connection_of(tx)
        dropped = _remove_rows(
            connection, connection.exec_driver_sql(_OF_WORKSPACE, (workspace_key, limit)).all()
        )
        if not dropped:
            connection.exec_driver_sql(_DROP_STATISTICS, (workspace_key,))
        return dropped

    def sizes(
        self, tx: Transaction | None, kind: str, workspace_keys: Sequence[int]
    ) -> Mapping[int, int]:
        connection, code = connection_of(tx), kind_code(kind)
        if len(workspace_keys) == 1:
            state = states_of(connection, tx).of(workspace_keys[0], code)
            return {state.workspace_key: state.documents}
        rows = connection.exec_driver_sql(_SIZES, (code, json.dumps(list(workspace_keys))))
        return {row[0]: row[1] for row in rows.all()}

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
        connection, code = connection_of(tx), kind_code(kind)
        prefix = _prefix(code, workspace_key)
        # `token` encodes upper case too, so these are exactly the tokens that FTS5 stores.
        tokens = {term: token(term) for term in terms}
        states = states_of(connection, tx)
        texts = StoredTexts(
            connection, states, workspace_key, code, prefix, self._counts, is_reading(tx)
        )
        state, blocks, rows_of_token = self._cache.prepare(
            texts, set(tokens.values()), self._budget
        )
        documents = state.documents
        frequencies = {term: rows_of_token.get(tokens[term], 0) for term in terms}
        matches = TextMatches(documents, state.mean_length, frequencies)
        rarest_first = sorted(
            (rows, term_token) for term_token, rows in rows_of_token.items() if rows
        )
        if not rarest_first or k <= 0:
            return matches
        search_terms = [
            _SearchTerm(term_token, rows, log(1 + (documents - rows + 0.5) / (rows + 0.5)))
            for rows, term_token in rarest_first
        ]
        term_of_token = {term_token: term for term, term_token in tokens.items()}
        if ids is not None:
            rows = _rows_of_keys(connection, code, workspace_key, ids, index_filter)
            return replace(matches, hits=_best(rows, search_terms, term_of_token, k))
        postings = sum(rows_of_token.values())
        blocks, few_rows = self._cache.narrowed(
            texts,
            state,
            blocks,
            index_filter,
            lambda: _few_rows(connection, state, postings, index_filter, self._counts),
        )
        if blocks:
            # Imports numpy at the first search.
            from memservice_sql.text_blocks import best

            search_words = _search_words(search_terms, term_of_token)
            return replace(matches, hits=best(blocks, search_words, index_filter, k))
        if few_rows is not None:
            rows = _rows_of_sessions(connection, code, workspace_key, index_filter)
        else:
            is_large = documents > self._exact_documents
            rows = self._candidates(connection, prefix, search_terms, k, index_filter, is_large)
        return replace(matches, hits=_best(rows, search_terms, term_of_token, k))

    def _candidates(
        self,
        connection: Connection,
        prefix: str,
        search_terms: Sequence[_SearchTerm],
        k: int,
        index_filter: IndexFilter,
        is_large: bool,
    ) -> list[_Candidate]:
        """Rows with the rarest terms: the best `k` if all terms count for them, else up to `4 * k`.
        Always `k` in a large workspace, where more of the common terms count, and nearly every row
        is on another page."""
        # Imports numpy at the first search.
        from memservice_sqlite.postings import Postings

        sql = _POSTINGS if index_filter == EVERYTHING else _POSTINGS_THAT_FIT
        named = {} if index_filter == EVERYTHING else parameters(index_filter)
        postings = Postings()

        def read(matches: Mapping[str, float], limit: int | None = None) -> None:
            """Add each query's weight to the rows that match it, or to the newest of them."""
            values = named | {"matches": array(matches), "limit": limit}
            newest = "" if limit is None else _NEWEST
            rows = rows_of(connection, sql.format(newest=newest), values)
            for (ids,), weight in zip(rows, matches.values(), strict=True):
                postings.add(ids, weight)

        queries = {f'"{prefix}{term.token}"': term.weight for term in search_terms}
        affordable_count = sum(
            total <= self._budget for total in accumulate(term.rows for term in search_terms)
        )
        read(dict(list(queries.items())[:affordable_count]))
        common_queries = list(queries)[affordable_count:]
        is_enough = is_large or not common_queries
        if is_large and affordable_count:
            rare = " OR ".join(list(queries)[:affordable_count])
            totals = accumulate(term.rows for term in search_terms[affordable_count:])
            compared = [
                query
                for query, total in zip(common_queries, totals, strict=True)
                if total <= MAX_COMPARED
            ]
            read({f"({rare}) AND {query}": queries[query] for query in compared})
        if len(common_queries) > 1 and postings.rows < k:
            # First the rows with the rarest of the common terms and another common term.
            rarest, *others = common_queries
            read({f"{rarest} AND ({' OR '.join(others)})": queries[rarest]}, self._budget)
        if common_queries and postings.rows < k:
            read(dict.fromkeys(common_queries, 0.0), k)
        best = postings.best(k if is_enough else 4 * k)
        return rows_of(connection, _ROWS, (array(best),)) if best else []


class _SearchTerm(NamedTuple):
    token: str
    rows: int
    """The number of rows of the workspace that contain it."""
    weight: float
    """Its inverse document frequency, as in BM25."""


_Candidate = tuple[int, int, str]
"""Id, length, and terms as `_encoded` returns them."""


def _rows_of_keys(
    connection: Connection,
    code: int,
    workspace_key: int,
    keys: Sequence[int],
    index_filter: IndexFilter,
) -> list[_Candidate]:
    named = parameters(index_filter) | {
        "workspace": workspace_key,
        "ids": array({key * 4 + code for key in keys}),
    }
    return rows_of(connection, _FITTING_ROWS, named)


def _few_rows(
    connection: Connection,
    state: TextState,
    postings: int,
    index_filter: IndexFilter,
    counts: TermCounts,
) -> int | None:
    """The number of rows of the filter's sessions, if these are so few that it is faster to read
    them than the postings of the terms: less than about a quarter as many. None for more than are
    kept in memory: of many postings, not all are read."""
    if index_filter.sessions is None:
        return None
    enough = min(postings // 4, MAX_DOCUMENTS) + 1
    values = (state.workspace_key, state.kind, array(index_filter.sessions), enough)
    return counts.few_of_sessions(
        index_filter.sessions,
        enough,
        state,
        lambda: connection.exec_driver_sql(_ROWS_OF_SESSIONS, values).scalar_one(),
    )


def _rows_of_sessions(
    connection: Connection, code: int, workspace_key: int, index_filter: IndexFilter
) -> list[_Candidate]:
    """All rows of the filter's sessions that fit."""
    named = parameters(index_filter) | {"workspace": workspace_key, "kind": code}
    return rows_of(connection, _FITTING_ROWS_OF_SESSIONS, named)


def _search_words(
    search_terms: Sequence[_SearchTerm], term_of_token: Mapping[str, str]
) -> list[SearchTerm]:
    from memservice_sql.text_blocks import SearchTerm

    return [
        SearchTerm(each.token, each.weight, (term_of_token[each.token],)) for each in search_terms
    ]


def _best(
    rows: Sequence[_Candidate],
    search_terms: Sequence[_SearchTerm],
    term_of_token: Mapping[str, str],
    k: int,
) -> HitTable:
    """The `k` rows whose terms have the greatest total weight (ties: newest first), with the count
    of each term."""
    import numpy as np

    from memservice_sql.text_blocks import best_of_rows

    counts = np.zeros((len(rows), len(search_terms)), np.int32)
    for number, term in enumerate(search_terms):
        mark = f" {term.token}="
        has_term = [mark in terms for _, _, terms in rows]
        for row in compress(range(len(rows)), has_term):
            terms = rows[row][2]
            start = terms.index(mark) + len(mark)
            counts[row, number] = int(terms[start : terms.index(" ", start)])
    return best_of_rows(
        np.array([id for id, _, _ in rows], np.int64),
        np.array([length for _, length, _ in rows], np.int32),
        counts,
        _search_words(search_terms, term_of_token),
        k,
    )


def _remove_rows(connection: Connection, rows: Iterable[tuple[int, int, int, int, str]]) -> int:
    """Remove rows (id, workspace, kind, length, terms), their postings and their share of the
    statistics. Returns the number of rows."""
    removed: list[tuple[int, str]] = []
    statistics: dict[tuple[int, int], tuple[int, int]] = {}
    for id, workspace_key, code, length, terms in rows:
        removed.append((id, _tokens(_prefix(code, workspace_key), _STORED.findall(terms))))
        documents, total = statistics.get((workspace_key, code), (0, 0))
        statistics[workspace_key, code] = documents - 1, total - length
    if removed:
        ids = array(id for id, _ in removed)
        _write_postings(connection, _REMOVE_POSTINGS, removed)
        connection.exec_driver_sql(_REMOVE_TERMS, (ids,))
        connection.exec_driver_sql(_REMOVE_ROWS, (ids,))
        number = random_number()
        changes = [(*position, *change, number, number) for position, change in statistics.items()]
        connection.exec_driver_sql(_ADD_STATISTICS, [*changes, (*REMOVED, len(removed), 0, 0, 0)])
    return len(removed)


def _write_postings(connection: Connection, sql: str, postings: list[tuple[int, str]]) -> None:
    # In the order of ids: FTS5 begins a new block whenever an id is less than the one before.
    connection.exec_driver_sql(sql, sorted(postings))
    text_merges.merge(connection, sum(len(tokens) for _, tokens in postings))


def _prefix(code: int, workspace_key: int) -> str:
    return f"{PREFIXES[code]}{workspace_key}_"


def _tokens(prefix: str, tokens: Iterable[str]) -> str:
    joined = f" {prefix}".join(tokens)
    return prefix + joined if joined else ""


def _encoded(counts: Mapping[str, int]) -> str:
    return "".join(f" {term_token}={count}" for term_token, count in counts.items()) + " "
