"""Full text in FTS5: the terms of one workspace's rows, found by rarest term first.

Every term is indexed under its kind's and workspace's prefix ("m12_axolotl"), so that postings,
document frequencies and cost are the workspace's own. FTS5 keeps only which rows hold which term;
how often is read from the stored terms of the rows that are returned.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import log
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection

from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.text import TextHit, TextMatches, TextRow
from memservice_sqlite.narrowing import FITS, array, connection_of, micros, parameters

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction

KINDS = {"message": 0, "conclusion": 1, "document": 2}
PREFIXES = "mcd"
MAX_TERM_LENGTH = 200
"""Characters of a term that count: FTS5 cuts tokens off at 32 kB, and nobody searches for a
kilobyte without a space."""

_UNSAFE = re.compile(r"[\x00-\x2f\x3a-\x60\x7b-\x7f]")

_ADD_STATISTICS = """
    INSERT INTO text_statistics (workspace_key, kind, documents, length) VALUES (?, ?, ?, ?)
    ON CONFLICT (workspace_key, kind) DO UPDATE
        SET documents = documents + excluded.documents, length = length + excluded.length
"""
_DROP_STATISTICS = "DELETE FROM text_statistics WHERE workspace_key = ?"
REMOVED = (0, 0)
"""The row of the statistics that is no workspace's: how many texts were removed whose words the
index still holds (`memservice_sqlite.reclaiming`)."""
_STATISTICS = """
    SELECT NULL, documents, length FROM text_statistics WHERE workspace_key = ? AND kind = ?
    UNION ALL
    SELECT term, doc, 0 FROM text_vocabulary WHERE term IN (SELECT value FROM json_each(?))
"""
# Each query's ids come as one string: it halves the cost of a long list. Newest first, for the day
# a list is cut off.
_POSTINGS = """
    SELECT (
        SELECT group_concat(id) FROM (
            SELECT rowid AS id FROM text_index WHERE text_index MATCH wanted.value
                ORDER BY rowid DESC LIMIT :limit
        )
    ) FROM json_each(:matches) wanted ORDER BY wanted.key
"""
_POSTINGS_THAT_FIT = f"""
    SELECT (
        SELECT group_concat(id) FROM (
            SELECT r.id AS id FROM text_index CROSS JOIN text_rows r ON r.id = text_index.rowid
            WHERE text_index MATCH wanted.value AND {FITS}
            ORDER BY text_index.rowid DESC LIMIT :limit
        )
    ) FROM json_each(:matches) wanted ORDER BY wanted.key
"""  # noqa: S608 - two constants
_ROWS_OF_SESSIONS = """
    SELECT count(*) FROM (
        SELECT 1 FROM text_rows
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
    """A term in characters that FTS5's tokenizer keeps as they are: ASCII other than a-z and 0-9
    becomes "_" and two hex digits.

    One to one, but for terms longer than `MAX_TERM_LENGTH`, which are cut.
    """
    return _UNSAFE.sub(lambda match: f"_{ord(match[0]):02x}", term[:MAX_TERM_LENGTH])


def kind_code(kind: str) -> int:
    try:
        return KINDS[kind]
    except KeyError:
        raise ValueError(f"unknown kind of text {kind!r}; known: {', '.join(KINDS)}") from None


class SqliteTextIndex:
    """The `TextIndex` of the SQLite storage. Holds no state: safe for threads and processes.

    `budget` bounds the postings that one search reads once it has enough candidates; past it the
    commonest terms only rank.
    """

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def __init__(self, budget: int = 10_000) -> None:
        self._budget = budget

    def add(
        self, tx: Transaction | None, kind: str, workspace_key: int, rows: Sequence[TextRow]
    ) -> None:
        connection, code = connection_of(tx), kind_code(kind)
        unique = {row.key * 4 + code: row for row in rows}
        if not unique:
            return
        _forget(connection, connection.exec_driver_sql(_INDEXED, (array(unique),)).all())
        counts = {id: Counter(map(token, row.terms)) for id, row in unique.items()}
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
            _ADD_TERMS, [(id, len(unique[id].terms), _written(held)) for id, held in counts.items()]
        )
        prefix = _prefix(code, workspace_key)
        connection.exec_driver_sql(
            _ADD_POSTINGS, [(id, _tokens(prefix, held)) for id, held in counts.items()]
        )
        total = sum(len(row.terms) for row in unique.values())
        connection.exec_driver_sql(_ADD_STATISTICS, (workspace_key, code, len(unique), total))

    def remove(
        self, tx: Transaction | None, kind: str, workspace_key: int, keys: Sequence[int]
    ) -> None:
        connection, code = connection_of(tx), kind_code(kind)
        found = connection.exec_driver_sql(
            _INDEXED, (array({key * 4 + code for key in keys}),)
        ).all()
        _forget(connection, [row for row in found if row[1] == workspace_key])

    def drop(self, tx: Transaction | None, workspace_key: int, limit: int) -> int:
        connection = connection_of(tx)
        dropped = _forget(
            connection, connection.exec_driver_sql(_OF_WORKSPACE, (workspace_key, limit)).all()
        )
        if not dropped:
            connection.exec_driver_sql(_DROP_STATISTICS, (workspace_key,))
        return dropped

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
        # Upper case is a character like any other to `token`, so what FTS5 stores is exactly what
        # is asked for here.
        tokens = {term: token(term) for term in terms}
        wanted = array({prefix + written for written in tokens.values()})
        documents, mean_length = 0, 0.0
        by_token: dict[str, int] = {}
        for term, count, length in connection.exec_driver_sql(
            _STATISTICS, (workspace_key, code, wanted)
        ).all():
            if term is not None:
                by_token[term[len(prefix) :]] = count
            elif count:
                documents, mean_length = count, length / count
        frequencies = {term: by_token.get(written, 0) for term, written in tokens.items()}
        if not by_token or k <= 0:
            return TextMatches(documents, mean_length, frequencies)
        rarest_first = sorted(by_token, key=lambda written: (by_token[written], written))
        sought = [
            _Sought(
                written,
                by_token[written],
                log(1 + (documents - by_token[written] + 0.5) / (by_token[written] + 0.5)),
            )
            for written in rarest_first
        ]
        if ids is None:
            rows = _rows_of_sessions(
                connection, code, workspace_key, sum(by_token.values()), index_filter
            )
        else:
            rows = _rows_of_keys(connection, code, workspace_key, ids, index_filter)
        if rows is None:
            rows = self._candidates(connection, prefix, sought, k, index_filter)
        spelling = {written: term for term, written in tokens.items()}
        return TextMatches(documents, mean_length, frequencies, _best(rows, sought, spelling, k))

    def _candidates(
        self,
        connection: Connection,
        prefix: str,
        sought: Sequence[_Sought],
        k: int,
        index_filter: IndexFilter,
    ) -> list[_Candidate]:
        """Rows that hold the rarest terms: `k` of them if the postings of all terms were read, some
        more if not."""
        sql = _POSTINGS if index_filter == EVERYTHING else _POSTINGS_THAT_FIT
        named = {} if index_filter == EVERYTHING else parameters(index_filter)
        held: dict[int, int] = {}

        def read(matches: Mapping[str, int], limit: int = -1) -> None:
            """Note each query's bits for the rows that match it."""
            lists = (
                connection.exec_driver_sql(sql, named | {"matches": array(matches), "limit": limit})
                .scalars()
                .all()
            )
            for ids, bits in zip(lists, matches.values(), strict=True):
                for id in json.loads(f"[{ids or ''}]"):
                    held[id] = held.get(id, 0) | bits

        queries = [f'"{prefix}{one.token}"' for one in sought]
        affordable = sum(total <= self._budget for total in accumulate(one.rows for one in sought))
        read({query: 1 << bit for bit, query in enumerate(queries[:affordable])})
        common = queries[affordable:]
        if len(held) < k and len(common) > 1:
            # Of the common terms, first the rows that hold the rarest of them and another one.
            read({f"{common[0]} AND ({' OR '.join(common[1:])})": 1 << affordable}, self._budget)
        if common and len(held) < k:
            read(dict.fromkeys(common, 0), k)
        weights = {mask: _weight(sought, mask) for mask in set(held.values())}
        best = sorted([(weights[mask], id) for id, mask in held.items()], reverse=True)[
            : 4 * k if common else k
        ]
        unread = (1 << len(queries)) - (1 << affordable)
        rows = connection.exec_driver_sql(_ROWS, (array(id for _, id in best),)).all()
        return [_Candidate(id, length, stored, held[id] | unread) for id, length, stored in rows]


class _Sought(NamedTuple):
    token: str
    rows: int
    """In how many rows of the workspace it occurs."""
    weight: float
    """Its inverse document frequency, as in BM25."""


class _Candidate(NamedTuple):
    id: int
    length: int
    stored: str
    """As written by `_written`."""
    mask: int
    """Bit n is set if it may hold the n-th of the sought terms."""


def _weight(sought: Sequence[_Sought], mask: int) -> float:
    return sum(one.weight for bit, one in enumerate(sought) if mask >> bit & 1)


def _rows_of_keys(
    connection: Connection,
    code: int,
    workspace_key: int,
    keys: Sequence[int],
    index_filter: IndexFilter,
) -> list[_Candidate] | None:
    named = parameters(index_filter) | {
        "workspace": workspace_key,
        "ids": array({key * 4 + code for key in keys}),
    }
    return [
        _Candidate(id, length, stored, -1)
        for id, length, stored in connection.exec_driver_sql(_FITTING_ROWS, named).all()
    ]


def _rows_of_sessions(
    connection: Connection, code: int, workspace_key: int, postings: int, index_filter: IndexFilter
) -> list[_Candidate] | None:
    """All rows that fit, if the sessions asked for hold clearly fewer rows than the terms have
    postings; else None."""
    if index_filter.sessions is None:
        return None
    enough = postings // 4 + 1
    if (
        connection.exec_driver_sql(
            _ROWS_OF_SESSIONS, (workspace_key, code, array(index_filter.sessions), enough)
        ).scalar_one()
        >= enough
    ):
        return None
    named = parameters(index_filter) | {"workspace": workspace_key, "kind": code}
    return [
        _Candidate(id, length, stored, -1)
        for id, length, stored in connection.exec_driver_sql(_FITTING_ROWS_OF_SESSIONS, named).all()
    ]


def _best(
    rows: Sequence[_Candidate], sought: Sequence[_Sought], spelling: Mapping[str, str], k: int
) -> list[TextHit]:
    """The `k` rows with the greatest weight of terms held (ties: newest), with the count of each
    term."""
    all_marks = [(spelling[one.token], f" {one.token}=", one.weight) for one in sought]
    marks_of = {
        mask: [mark for bit, mark in enumerate(all_marks) if mask >> bit & 1]
        for mask in {row.mask for row in rows}
    }
    ranked: list[tuple[float, int, int, dict[str, int]]] = []
    for id, length, stored, mask in rows:
        held: dict[str, int] = {}
        weight = 0.0
        for term, mark, value in marks_of[mask]:
            at = stored.find(mark)
            if at >= 0:
                start = at + len(mark)
                held[term] = int(stored[start : stored.index(" ", start)])
                weight += value
        if held:
            ranked.append((weight, id, length, held))
    ranked.sort(reverse=True)  # by weight and id, which no two share
    return [TextHit(id // 4, held, length) for _, id, length, held in ranked[:k]]


def _forget(connection: Connection, rows: Iterable[tuple[int, int, int, int, str]]) -> int:
    """Remove rows (id, workspace, kind, length, stored terms) with all their postings and their
    share of the statistics."""
    gone: list[tuple[int, str]] = []
    statistics: dict[tuple[int, int], tuple[int, int]] = {}
    for id, workspace_key, code, length, stored in rows:
        held = (pair.rpartition("=")[0] for pair in stored.split(" ") if pair)
        gone.append((id, _tokens(_prefix(code, workspace_key), held)))
        documents, total = statistics.get((workspace_key, code), (0, 0))
        statistics[workspace_key, code] = documents - 1, total - length
    if gone:
        ids = array(id for id, _ in gone)
        connection.exec_driver_sql(_REMOVE_POSTINGS, gone)
        connection.exec_driver_sql(_REMOVE_TERMS, (ids,))
        connection.exec_driver_sql(_REMOVE_ROWS, (ids,))
        changes = [(*position, *change) for position, change in statistics.items()]
        connection.exec_driver_sql(_ADD_STATISTICS, [*changes, (*REMOVED, len(gone), 0)])
    return len(gone)


def _prefix(code: int, workspace_key: int) -> str:
    return f"{PREFIXES[code]}{workspace_key}_"


def _tokens(prefix: str, written: Iterable[str]) -> str:
    return " ".join(prefix + one for one in written)


def _written(counts: Mapping[str, int]) -> str:
    return "".join(f" {written}={count}" for written, count in counts.items()) + " "
