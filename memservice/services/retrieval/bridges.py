"""The messages that derived conclusions rest on.

A question over several messages may share no word with them, but with what was concluded from them.
Explicit conclusions are left out: without a model they repeat their message, and a search in talks
with an assistant loses 5 points by them (benchmarks/recall/README.md, "Conclusions as bridges").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.ranking import Word
from memservice.domain.records import EXPLICIT, LEVELS, LIVE, SUPERSEDED, Conclusion
from memservice.runtime import Runtime
from memservice.services.auth.bounds import Bounds
from memservice.services.indexing import CONCLUSION
from memservice.services.retrieval.query import Query
from memservice.services.retrieval.text_matches import TextSearch
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction

MAX_CONCLUSIONS = 3
"""The best conclusions, whose sources are added. See `MIN_COVERED`."""
MIN_COVERED = 0.6
"""The least share of the query's words. With 3 and 0.6, a search for what no single message says
finds 51 points more between people and 32 in talks with an assistant, and other searches no less;
with 0.5, other searches between people find 3 points less than with 0.6, and 1 conclusion finds as
much as 3 (benchmarks/recall/README.md, "Conclusions as bridges")."""
MAX_CANDIDATES = 40
"""Matching conclusions that are compared."""
DERIVED = tuple(level for level in LEVELS if level != EXPLICIT)


def sources(
    rt: Runtime, tx: Transaction, bounds: Bounds, query: Query, condition: Condition
) -> dict[int, float]:
    """Keys of messages within the bounds that match `condition`, in the order of the conclusions
    that rest on them, each with the share of the query's words that its conclusion has."""
    if bounds.no_conclusions or not bounds.has_chains or not query.words:
        return {}
    shares: dict[int, float] = {}
    conclusions = _best(rt, tx, bounds, query)
    premises = _premises(tx, bounds, [row for row, _ in conclusions])
    for row, covered in conclusions:
        for each in (row, *(premises[uid] for uid in row.source_ids or () if uid in premises)):
            for key in each.message_keys:
                shares.setdefault(key, covered)
    # What the caller cannot read must not take the place of what it can.
    readable = tx.messages.matching(bounds.workspace, list(shares), condition) if shares else {}
    return {key: share for key, share in shares.items() if key in readable}


def _best(
    rt: Runtime, tx: Transaction, bounds: Bounds, query: Query
) -> list[tuple[Conclusion, float]]:
    """The derived conclusions that have most of the query's words, with the share of the words."""
    derived = bounds.with_conclusions(equals(level=DERIVED), IndexFilter(levels=DERIVED))
    text = TextSearch(rt, tx, CONCLUSION, bounds.workspace, query.words)
    candidates = text.exact(MAX_CANDIDATES, derived.narrowed)
    covered = {hit.key: _covered(hit.terms, candidates.words) for hit in candidates.matches.hits}
    scores = candidates.bm25()
    keys = sorted(
        (key for key, share in covered.items() if share >= MIN_COVERED),
        key=lambda key: (-covered[key], -scores[key], key),
    )
    condition = all_of(equals(workspace_key=bounds.workspace), derived.condition)
    rows = tx.conclusions.by_keys(keys, condition, bounds.standing) if keys else {}
    # Several observers may have the same one.
    distinct: dict[tuple[int, str], Conclusion] = {}
    for row in (rows[key] for key in keys if key in rows):
        distinct.setdefault((row.observed_key, row.fingerprint), row)
    return [(row, covered[row.key]) for row in list(distinct.values())[:MAX_CONCLUSIONS]]


def _covered(terms: Collection[str], words: Sequence[Word]) -> float:
    return sum(not word.keys().isdisjoint(terms) for word in words) / len(words)


def _premises(tx: Transaction, bounds: Bounds, rows: Sequence[Conclusion]) -> dict[str, Conclusion]:
    """The conclusions within the bounds that these rest on, by uid."""
    uids = tuple({uid for row in rows for uid in row.source_ids or ()})
    if not uids:
        return {}
    condition = equals(workspace_key=bounds.workspace, uid=uids, state=(LIVE, SUPERSEDED))
    page = tx.rows.page(Conclusion, all_of(condition, bounds.condition))
    return {row.uid: row for row in page}
