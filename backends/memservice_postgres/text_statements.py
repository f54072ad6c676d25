"""SQL of the text index: what writes texts and counts them, and what reads the rows of a search.

The statements of a search have `{fits}` for the condition of its filter, and `{counts}` for what is
read of each row.
"""

from __future__ import annotations

PARTS = 64
"""Parts of each workspace's statistics. A connection adds to one of them."""

COUNTED = f"""
    INSERT INTO text_statistics AS s
        (workspace_key, kind, part, documents, length, revision, removal)
    SELECT workspace_key, kind, pg_backend_pid() %% {PARTS},
        %(sign)s * count(*), %(sign)s * sum(length), %(number)s, %(removal)s
    FROM changed GROUP BY workspace_key, kind
    ON CONFLICT (workspace_key, kind, part)
    DO UPDATE SET documents = s.documents + excluded.documents, length = s.length + excluded.length,
        revision = excluded.revision, removal = coalesce(nullif(excluded.removal, 0), s.removal)
"""  # noqa: S608 - a constant
ADD = f"""
    WITH changed AS (
        INSERT INTO text_rows
        (id, workspace_key, kind, session_key, author_key, observer_key, observed_key, level,
        at, length, counts, terms)
        SELECT (v->>0)::bigint, %(workspace)s, %(kind)s, (v->>1)::bigint, (v->>2)::bigint,
        (v->>3)::bigint, (v->>4)::bigint, v->>5,
        (v->>6)::timestamptz, (v->>7)::integer, (v->>8)::smallint[], (v->>9)::text[]
        FROM json_array_elements(%(rows)s::json) v
        ON CONFLICT (id) DO NOTHING RETURNING id, workspace_key, kind, length
    ), counted AS ({COUNTED})
    SELECT id FROM changed
"""  # noqa: S608 - constants
REMOVE = f"""
    WITH changed AS (
        DELETE FROM text_rows WHERE id = ANY(%(ids)s) RETURNING workspace_key, kind, length
    ), counted AS ({COUNTED})
    SELECT count(*) FROM changed
"""  # noqa: S608 - constants
OF_WORKSPACE = "SELECT id FROM text_rows WHERE workspace_key = %s LIMIT %s"
MINE = "SELECT id FROM text_rows WHERE id = ANY(%s) AND workspace_key = %s"
SIZES = """
    SELECT workspace_key, sum(documents)::bigint FROM text_statistics
    WHERE kind = %s AND workspace_key = ANY(%s) GROUP BY workspace_key
"""
DELETE_STATISTICS = "DELETE FROM text_statistics WHERE workspace_key = %s"

SESSION_ROWS = """
    SELECT count(*) FROM (
        SELECT 1 FROM text_rows r
        WHERE r.workspace_key = %(workspace)s AND r.kind = %(kind)s
            AND r.session_key = ANY(%(sessions)s) LIMIT %(enough)s
    ) AS found
"""
# What is read of a row: its counts of the terms of the query, null for those that it lacks, or all
# of its counts and terms. The former is five times as fast, but takes long for many terms.
COUNTS_OF_QUERY = """
    ARRAY(SELECT r.counts[array_position(r.terms, wanted.term)]
        FROM unnest(%(wanted)s::text[]) WITH ORDINALITY AS wanted (term, number)
        ORDER BY wanted.number), NULL::text[]
"""
COUNTS_OF_ROW = "r.counts, r.terms"
IN_SESSIONS = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE r.workspace_key = %(workspace)s AND r.kind = %(kind)s {fits}
        AND (r.terms && %(terms)s::text[]) IS TRUE
    ORDER BY (
        SELECT sum(w.weight) FROM unnest(%(terms)s::text[], %(weights)s::bigint[]) AS w (term,
            weight) WHERE w.term = ANY(r.terms)
    ) DESC, r.id DESC LIMIT %(limit)s
"""
OF_KEYS = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE r.id = ANY(%(ids)s) AND r.workspace_key = %(workspace)s {fits}
        AND (r.terms && %(terms)s::text[]) IS TRUE
"""
# Each posting brings its row's count: the best rows are not read once more by their ids, for which
# the planner would read the whole table.
POSTINGS = """
    SELECT w.number::integer, array_send(array_agg(held.id)),
        array_send(array_agg(held.length::bigint)), array_send(array_agg(held.count::bigint))
    FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS w (term, number) CROSS JOIN LATERAL (
        SELECT r.id, r.length, r.counts[array_position(r.terms, w.term)] AS count
        FROM text_rows r WHERE r.terms @> ARRAY[w.term] {fits}
    ) AS held GROUP BY w.number ORDER BY w.number
"""
# The heaviest rows of the rare terms, with their counts of the common terms as well. The array is
# computed first, so the rows are read by their keys.
RAREST = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE r.id = ANY(ARRAY(
        SELECT held.id FROM unnest(%(rare)s::text[], %(rare_weights)s::bigint[]) AS w (term, weight)
        CROSS JOIN LATERAL (SELECT r.id FROM text_rows r WHERE r.terms @> ARRAY[w.term] {fits})
            AS held
        GROUP BY held.id ORDER BY sum(w.weight) DESC, held.id DESC LIMIT %(limit)s
    ))
"""
TWO_COMMON = """
    SELECT r.id, r.length, {counts} FROM text_rows r
    WHERE r.terms @> ARRAY[%(first)s] AND r.terms && %(others)s::text[] {fits} LIMIT %(limit)s
"""
EACH_COMMON = """
    SELECT held.* FROM unnest(%(terms)s::text[]) AS w (term) CROSS JOIN LATERAL (
        SELECT r.id, r.length, {counts} FROM text_rows r
            WHERE r.terms @> ARRAY[w.term] {fits} LIMIT %(limit)s
    ) AS held
"""

# In large workspaces. Rows with one of these terms and a more common one: the index reads only
# their postings, and only such rows are read from the table.
SEVERAL = """
    SELECT held.* FROM unnest(%(several)s::text[]) WITH ORDINALITY AS w (term, number)
    CROSS JOIN LATERAL (
        SELECT r.id, r.length, {counts} FROM text_rows r WHERE r.terms @> ARRAY[w.term]
            AND r.terms && (%(terms)s::text[])[w.number + 1:] {fits} LIMIT %(limit)s
    ) AS held
"""
# The newest rows with each of these terms. The sum keeps the planner from reading all rows from the
# newest one on.
NEWEST = """
    SELECT held.* FROM unnest(%(newest)s::text[]) AS w (term) CROSS JOIN LATERAL (
        SELECT r.id, r.length, {counts} FROM text_rows r WHERE r.id = ANY(ARRAY(
            SELECT r.id FROM text_rows r WHERE r.terms @> ARRAY[w.term] {fits}
            ORDER BY r.id + 0 DESC LIMIT %(limit)s
        ))
    ) AS held
"""
