"""Full text in a GIN index: the terms of one workspace's rows, found by rarest term first.

Every term is indexed under its kind's and workspace's prefix ("m12_axolotl"), so that postings,
document frequencies and cost are the workspace's own. The index keeps which rows hold which term;
how often is read from the rows that are returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.text import TextHit, TextMatches, TextRow
from memservice_postgres.connections import Driver
from memservice_postgres.json_text import encode_rows
from memservice_postgres.narrowing import driver_behind, fitting

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction

KINDS = {"message": 0, "conclusion": 1, "document": 2}
PREFIXES = "mcd"
MAX_TERM_LENGTH = 200
"""Characters of a term that count: nobody searches for a kilobyte without a space, and an index
entry has a limit."""
MAX_COUNTED = 32_767
"""Occurrences of a term in one text that count."""
PARTS = 64
"""Of each workspace's statistics; a connection adds to one of them."""
FINE = 1_000_000
"""Weights are compared as whole numbers of this part, so that their sums do not depend on the order
of adding."""

_COUNTED = f"""
    INSERT INTO text_statistics AS s (workspace_key, kind, part, documents, length)
    SELECT workspace_key, kind, pg_backend_pid() %% {PARTS},
        %(sign)s * count(*), %(sign)s * sum(length)
    FROM changed GROUP BY workspace_key, kind
    ON CONFLICT (workspace_key, kind, part)
    DO UPDATE SET documents = s.documents + excluded.documents, length = s.length + excluded.length
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
_FORGET_STATISTICS = "DELETE FROM text_statistics WHERE workspace_key = %s"

# How many rows hold each term: counted up to a limit, in the order in which rows lie in the table,
# which is about that in which they came. Beyond it the rest is estimated from how far through the
# workspace's rows the limit was reached.
_STATISTICS = """
    SELECT NULL, sum(documents)::bigint, sum(length)::bigint, 0, 0
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
_SESSION_ROWS = """
    SELECT count(*) FROM (
        SELECT 1 FROM text_rows r
        WHERE r.workspace_key = %(workspace)s AND r.kind = %(kind)s
            AND r.session_key = ANY(%(sessions)s) LIMIT %(enough)s
    ) AS found
"""
_IN_SESSIONS = """
    SELECT r.id, r.length, r.counts, r.terms FROM text_rows r
    WHERE r.workspace_key = %(workspace)s AND r.kind = %(kind)s {fits}
        AND (r.terms && %(terms)s::text[]) IS TRUE
    ORDER BY (
        SELECT sum(w.weight) FROM unnest(%(terms)s::text[], %(weights)s::bigint[]) AS w (term,
            weight) WHERE w.term = ANY(r.terms)
    ) DESC, r.id DESC LIMIT %(limit)s
"""
_OF_KEYS = """
    SELECT r.id, r.length, r.counts, r.terms FROM text_rows r
    WHERE r.id = ANY(%(ids)s) AND r.workspace_key = %(workspace)s {fits}
        AND (r.terms && %(terms)s::text[]) IS TRUE
"""
_HEAVIEST = """
    SELECT r.id, r.length, r.counts, r.terms FROM (
        SELECT held.id, sum(w.weight) AS weight
        FROM unnest(%(terms)s::text[], %(weights)s::bigint[]) AS w (term, weight)
        CROSS JOIN LATERAL (SELECT r.id FROM text_rows r
            WHERE r.terms @> ARRAY[w.term] {fits}) AS held
        GROUP BY held.id ORDER BY weight DESC, held.id DESC LIMIT %(limit)s
    ) AS best JOIN text_rows r ON r.id = best.id
"""
_TWO_COMMON = """
    SELECT r.id, r.length, r.counts, r.terms FROM text_rows r
    WHERE r.terms @> ARRAY[%(first)s] AND r.terms && %(others)s::text[] {fits} LIMIT %(limit)s
"""
_EACH_COMMON = """
    SELECT held.* FROM unnest(%(terms)s::text[]) AS w (term) CROSS JOIN LATERAL (
        SELECT r.id, r.length, r.counts, r.terms FROM text_rows r
            WHERE r.terms @> ARRAY[w.term] {fits} LIMIT %(limit)s
    ) AS held
"""

Row = tuple[int, int, list[int], list[str]]
"""Id, length, how often each term occurs, and the terms."""


def kind_code(kind: str) -> int:
    try:
        return KINDS[kind]
    except KeyError:
        raise ValueError(f"unknown kind of text {kind!r}; known: {', '.join(KINDS)}") from None


class PostgresTextIndex:
    """The `TextIndex` of the PostgreSQL storage. Holds no state: safe for threads and processes.

    `budget` bounds the postings that one search reads once it has enough candidates; past it the
    commonest terms only rank. Rows that hold a term are counted up to `counted`; what lies beyond
    is estimated.
    """

    capabilities = frozenset({Capability.TRANSACTIONAL})

    def __init__(self, budget: int = 10_000, counted: int = 10_000) -> None:
        self._budget = budget
        self._counted = counted

    def add(
        self, tx: Transaction | None, kind: str, workspace_key: int, rows: Sequence[TextRow]
    ) -> None:
        driver, code = driver_behind(tx), kind_code(kind)
        given = {row.key * 4 + code: row for row in rows}
        if not given:
            return
        prefix = _prefix(code, workspace_key)
        written = {id: _written(id, row, prefix) for id, row in given.items()}
        shared = {"workspace": workspace_key, "kind": code, "sign": 1}
        added = {
            id
            for (id,) in driver.execute(
                _ADD, {**shared, "rows": encode_rows(list(written.values()))}
            )
        }
        there = [id for id in written if id not in added]
        if there:
            _remove(driver, there)
            driver.execute(_ADD, {**shared, "rows": encode_rows([written[id] for id in there])})

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

    def drop(self, tx: Transaction | None, workspace_key: int, limit: int) -> int:
        driver = driver_behind(tx)
        gone = _remove(
            driver, [id for (id,) in driver.execute(_OF_WORKSPACE, (workspace_key, limit))]
        )
        if not gone:
            driver.execute(_FORGET_STATISTICS, (workspace_key,))
        return gone

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
        written = {term: prefix + term[:MAX_TERM_LENGTH] for term in terms}
        place = {"workspace": workspace_key, "kind": code}
        limit = self._counted + 1
        (_, documents, length, *_), *found = driver.execute(
            _STATISTICS, {**place, "terms": list(dict.fromkeys(written.values())), "limit": limit}
        ).fetchall()
        held = {term: rows for term, rows, *_ in found if rows}
        documents = documents or 0
        if any(rows == limit for rows in held.values()):
            held = _estimated(driver, place, found, documents, limit)
        frequencies = {term: held.get(one, 0) for term, one in written.items()}
        mean_length = length / documents if documents else 0.0
        if not held or k <= 0:
            return TextMatches(documents, mean_length, frequencies)
        sought = [
            _Sought(
                one,
                held[one],
                round(FINE * log(1 + max(0.0, documents - held[one] + 0.5) / (held[one] + 0.5))),
            )
            for one in sorted(held, key=lambda one: (held[one], one))
        ]
        if ids is None:
            rows = self._rows(driver, place, sought, k, index_filter)
        else:
            fits, named = fitting(index_filter)
            named |= {"ids": [key * 4 + code for key in ids], "terms": [one.term for one in sought]}
            rows = driver.execute(_OF_KEYS.format(fits=fits), {**place, **named}).fetchall()
        return TextMatches(documents, mean_length, frequencies, _best(rows, sought, written, k))

    def _rows(
        self,
        driver: Driver,
        place: dict[str, int],
        sought: Sequence[_Sought],
        k: int,
        index_filter: IndexFilter,
    ) -> list[Row]:
        """Rows that hold the rarest terms: the best `k` of them if the postings of all terms were
        read, some more if not."""
        fits, named = fitting(index_filter)
        all_terms: dict[str, Any] = {
            "terms": [one.term for one in sought],
            "weights": [one.weight for one in sought],
        }
        if index_filter.sessions is not None:
            # Sessions that hold clearly fewer rows than the terms have postings are read instead.
            enough = sum(one.rows for one in sought) // 4 + 1
            if (
                driver.execute(
                    _SESSION_ROWS, {**place, "sessions": named["sessions"], "enough": enough}
                ).fetchall()[0][0]
                < enough
            ):
                return driver.execute(
                    _IN_SESSIONS.format(fits=fits), {**place, **named, **all_terms, "limit": k}
                ).fetchall()
        affordable = sum(total <= self._budget for total in accumulate(one.rows for one in sought))
        common = [one.term for one in sought[affordable:]]
        rare: dict[str, Any] = {name: values[:affordable] for name, values in all_terms.items()}
        limit = 4 * k if common else k
        found: dict[int, Row] = {}

        def read(sql: str, limit: int, **values: Any) -> None:
            found.update(
                {
                    row[0]: row
                    for row in driver.execute(sql, {**named, **values, "limit": limit}).fetchall()
                }
            )

        if affordable:
            read(_HEAVIEST.format(fits=fits), limit, **rare)
        if len(found) < k and len(common) > 1:
            # Of the common terms, first the rows that hold the rarest of them and another one.
            read(
                _TWO_COMMON.format(fits=fits),
                max(limit, self._budget // 10),
                first=common[0],
                others=common[1:],
            )
        if len(found) < k and common:
            read(_EACH_COMMON.format(fits=fits), k, terms=common)
        return list(found.values())


class _Sought(NamedTuple):
    term: str
    """As it is stored."""
    rows: int
    """In how many rows of the workspace it occurs."""
    weight: int
    """Its inverse document frequency, as in BM25, in parts of `FINE`."""


def _estimated(
    driver: Driver, place: dict[str, int], found: Sequence[Any], documents: int, limit: int
) -> dict[str, int]:
    """Frequencies, of those terms that were not counted to the end by how soon the limit was
    reached."""
    first, last = driver.execute(_EXTENT, (place["workspace"], place["kind"])).fetchall()[0]
    held: dict[str, int] = {}
    for term, rows, _, lowest, highest in found:
        if rows == limit:
            share = min(1.0, (highest - lowest + 1) / (last - first + 1))
            rows = min(max(documents, rows), round(rows / share))
        if rows:
            held[term] = rows
    return held


def _best(
    rows: Iterable[Row], sought: Sequence[_Sought], written: dict[str, str], k: int
) -> list[TextHit]:
    """The `k` rows with the greatest weight of terms held (ties: newest), with the count of each
    term."""
    weights = {one.term: one.weight for one in sought}
    asked: dict[str, list[str]] = {}
    for term, one in written.items():
        asked.setdefault(one, []).append(term)
    ranked: list[tuple[int, int, TextHit]] = []
    for id, length, counts, terms in rows:
        held = {term: count for term, count in zip(terms, counts, strict=True) if term in weights}
        hit = TextHit(
            id // 4,
            {spelled: count for term, count in held.items() for spelled in asked[term]},
            length,
        )
        ranked.append((sum(weights[term] for term in held), id, hit))
    ranked.sort(key=lambda entry: entry[:2], reverse=True)
    return [hit for _, _, hit in ranked[:k]]


def _remove(driver: Driver, ids: list[int]) -> int:
    """Forget rows, and their share of the statistics; returns how many."""
    if not ids:
        return 0
    return int(driver.execute(_REMOVE, {"ids": ids, "sign": -1}).fetchall()[0][0])


def _written(id: int, row: TextRow, prefix: str) -> list[Any]:
    held = Counter(term[:MAX_TERM_LENGTH] for term in row.terms)
    counts = ",".join(str(min(count, MAX_COUNTED)) for count in held.values())
    terms = ",".join(_quoted(prefix + term) for term in held)
    place = [row.session, row.author, row.observer, row.observed, row.level, row.at]
    return [id, *place, len(row.terms), f"{{{counts}}}", f"{{{terms}}}"]


def _quoted(term: str) -> str:
    """As an element of an array in text."""
    escaped = term.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _prefix(code: int, workspace_key: int) -> str:
    return f"{PREFIXES[code]}{workspace_key}_"
