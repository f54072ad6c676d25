"""Scores and orders: pure functions of the results of the indexes. Higher is better; ties are
ordered by key, ascending, so the order is total."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol, overload

from msgspec import Struct, field

from memservice.domain.positions import KEY, SEQ, SESSION, TOKENS, PositionTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K1 = 1.2
"""How soon repetitions of a term saturate. With 0.9 and with 1.6, some searches in talks with an
assistant lose significantly (benchmarks/recall/README.md, "Constants of the ranking", as for the
next three)."""
B = 0.75
"""How much the length of a text lowers its score, 0 to 1. With 0.6 and with 0.9, the same."""
WINDOW = 2
"""Messages before and after a hit that share its score. With 1, talks between people lose 1.5
points; with 3, no set gains."""
NEIGHBOUR_WEIGHT = 0.5
"""The share of a hit's term counts that the messages beside it get. A message one further away gets
this share of that: if all get the same, searches find 2 to 4 points less. With 0.25, 0.4 and 0.65,
some searches lose significantly."""
MAX_SHARED = 20.0
"""Terms beyond which a text shares less of each of its terms with its neighbours: an answer of 600
terms contains so many that they say little about the messages around it. Without this limit, a
search of conversations with long answers finds 15 points less, and one of short messages the same;
between 12 and 40 the figures hardly change (benchmarks/recall/README.md)."""
MAX_SHORT = 60
"""Tokens of a message that shares its similarity with the ones before and after it, if they are as
short. With this limit, searches in talks with an assistant do not change."""
SIMILARITY_SHARE = 0.3
"""The share. A search between people with MiniLM finds 4 points more than without on the tuning
set, and with 0.5 as much (benchmarks/recall/README.md, "Similarities of neighbours")."""
RRF_K = 20
"""Smoothing of reciprocal ranks: a smaller value favours the first ranks. With MiniLM, 10 finds
about as much, and 60 up to 4 points less (benchmarks/recall/README.md)."""

Scores = dict[int, float]

Word = Mapping[str, float]
"""The terms of one word of a query with their weights: the word itself has 1, a term of its
relatives less. Each text gets the score of the best of them."""


class TextHit(NamedTuple):
    """One candidate: `terms` counts each query term in it, `length` all its terms."""

    key: int
    terms: Mapping[str, int]
    length: int


class HitTable(Sequence[TextHit]):
    """Candidates as arrays: scores of thousands are computed without an object for each."""

    def __init__(
        self,
        keys: NDArray[np.int64],
        lengths: NDArray[np.int32],
        terms: Sequence[str],
        counts: NDArray[np.int32],
    ) -> None:
        """`counts`: candidates × terms, how often each contains each term; 0: not at all."""
        self.keys, self.lengths, self.terms, self.counts = keys, lengths, terms, counts

    def only(self, chosen: NDArray[np.bool_]) -> HitTable:
        return HitTable(self.keys[chosen], self.lengths[chosen], self.terms, self.counts[chosen])

    def __len__(self) -> int:
        return len(self.keys)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> TextHit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TextHit]: ...
    def __getitem__(self, index: int | slice) -> TextHit | Sequence[TextHit]:
        return list(self)[index]

    def __iter__(self) -> Iterator[TextHit]:
        columns = zip(self.keys.tolist(), self.counts.tolist(), self.lengths.tolist(), strict=True)
        for key, counts, length in columns:
            terms = {
                term: number for term, number in zip(self.terms, counts, strict=True) if number
            }
            yield TextHit(key, terms, length)


def keys_of(hits: Sequence[TextHit]) -> list[int]:
    return hits.keys.tolist() if isinstance(hits, HitTable) else [hit.key for hit in hits]


def hits_among(hits: Sequence[TextHit], keys: Container[int]) -> Sequence[TextHit]:
    """The hits with one of these keys."""
    chosen = [key in keys for key in keys_of(hits)]
    if all(chosen):
        return hits
    if isinstance(hits, HitTable):
        import numpy as np

        return hits.only(np.array(chosen))
    return list(compress(hits, chosen))


def keys_with_all(hits: Sequence[TextHit], terms: Collection[str]) -> list[int]:
    """The keys of the hits that contain each of these terms."""
    return keys_with(hits, terms, len(terms))


def keys_with(hits: Sequence[TextHit], terms: Collection[str], number: int) -> list[int]:
    """The keys of the hits that contain at least this number of these terms."""
    if not isinstance(hits, HitTable):
        return [
            hit.key for hit in hits if sum(hit.terms.get(term, 0) > 0 for term in terms) >= number
        ]
    columns = [column for column, term in enumerate(hits.terms) if term in terms]
    enough = (hits.counts[:, columns] > 0).sum(axis=1) >= number
    return [int(key) for key in hits.keys[enough]]


class TextMatches(Struct, frozen=True):
    """Candidates in no particular order, with the workspace's own statistics for this kind of row.

    `documents` and `mean_length` describe all rows of the workspace; `frequencies` is the number of
    those that contain each term. They depend neither on the index filter nor on the text of other
    workspaces.
    """

    documents: int
    mean_length: float
    frequencies: Mapping[str, int] = field(default_factory=dict)
    hits: Sequence[TextHit] = ()


def idf(documents: int, frequency: int) -> float:
    """The weight of a term that `frequency` of `documents` texts contain. Never negative, even if
    the counts are a little stale."""
    return math.log1p(max(0.0, documents - frequency + 0.5) / (max(0, frequency) + 0.5))


def bm25(
    matches: TextMatches, words: Sequence[Word] | None = None, k1: float = K1, b: float = B
) -> Scores:
    """The score of each hit, by the workspace's own statistics. A term without a frequency counts
    as if one text contained it. `words`: those of the query; without them each term is one."""
    mean = matches.mean_length if matches.mean_length > 0 else 1.0
    weights: dict[str, float] = {}
    for term, frequency in matches.frequencies.items():
        weights[term] = idf(matches.documents, frequency) * (k1 + 1)
    unknown = idf(matches.documents, 1) * (k1 + 1)
    related = [word for word in words or () if len(word) > 1]
    of_related = {term for word in related for term in word}
    if isinstance(matches.hits, HitTable):
        return _bm25_of_table(matches.hits, weights, unknown, related, mean, k1, b)
    scores: Scores = {}
    for key, terms, length in matches.hits:
        norm = k1 * (1 - b + b * length / mean)
        score = 0.0
        for term, tf in terms.items():
            if tf > 0 and term not in of_related:
                score += weights.get(term, unknown) * tf / (tf + norm)
        for word in related:
            score += max(
                (
                    weight * weights.get(term, unknown) * terms[term] / (terms[term] + norm)
                    for term, weight in word.items()
                    if terms.get(term, 0) > 0
                ),
                default=0.0,
            )
        scores[key] = score
    return scores


def _bm25_of_table(
    hits: HitTable,
    weights: Mapping[str, float],
    unknown: float,
    related: Sequence[Word],
    mean: float,
    k1: float,
    b: float,
) -> Scores:
    """As `bm25`, with the same operations in the same order, so that equal scores stay equal."""
    import numpy as np

    norm = k1 * (1 - b + b * hits.lengths / mean)
    column = {term: number for number, term in enumerate(hits.terms)}
    of_related = {term for word in related for term in word}

    def part(term: str, share: float = 1.0) -> NDArray[np.float64]:
        tf = hits.counts[:, column[term]]
        score: NDArray[np.float64] = share * weights.get(term, unknown) * tf / (tf + norm)
        return score

    scores = np.zeros(len(hits))
    for term in hits.terms:
        if term not in of_related:
            scores += part(term)
    for word in related:
        parts = [part(term, share) for term, share in word.items() if term in column]
        if parts:
            scores += np.maximum.reduce(parts)
    return dict(zip(hits.keys.tolist(), scores.tolist(), strict=True))


def best_coverage(matches: TextMatches, words: Sequence[Word]) -> float:
    """The largest share of the words that one hit contains, each weighted by its rarity, from 0 to
    1; relatives of a word count by their weight. 0 without hits or words."""
    import numpy as np

    if not matches.hits or not words:
        return 0.0
    hits = _table(matches.hits)
    column = {term: number for number, term in enumerate(hits.terms)}
    covered, total = np.zeros(len(hits)), 0.0
    for word in words:
        weight = max(idf(matches.documents, matches.frequencies.get(term, 1)) for term in word)
        total += weight
        parts = [
            share * (hits.counts[:, column[term]] > 0)
            for term, share in word.items()
            if term in column
        ]
        if parts:
            covered += weight * np.maximum.reduce(parts)
    return float(covered.max()) / total if total else 0.0


class MessagePosition(Protocol):
    """The position of a message in its session, and its length in tokens."""

    @property
    def session_key(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def tokens(self) -> int: ...


_SESSION = 1 << 32
"""The distance between two sessions in one number line: longer than any session."""

NO_HEADER_TERMS: Mapping[int, Collection[str]] = {}


def bm25_with_neighbours(
    matches: TextMatches,
    positions: Mapping[int, MessagePosition],
    header_terms: Mapping[int, Collection[str]] = NO_HEADER_TERMS,
    words: Sequence[Word] | None = None,
    reach: int = WINDOW,
    share: float = NEIGHBOUR_WEIGHT,
    k1: float = K1,
    b: float = B,
) -> Scores:
    """BM25 in which each hit adds `share` of its term counts to the messages right before and after
    it, and `share` of that to each one further, up to `reach` positions away.

    Counts are added before repetitions saturate, and the length of a text includes its neighbours,
    as in an indexed field with the text of all of them. Between short messages that is all. A
    neighbour of more than `MAX_SHARED` terms shares its counts and its length in proportion less,
    and `b` rises towards 1 with the mean length beyond that: without the rise, long answers take
    the room in a prompt of messages that state something.

    `positions` has the hits and the messages around them. A message that is missing there has the
    mean length and gets nothing. `header_terms` are the terms of a hit that only name its author
    and time: they count for the hit itself, once each, and are not shared. `words` as in `bm25`.
    """
    import numpy as np

    if not matches.hits:
        return {}
    mean = matches.mean_length if matches.mean_length > 0 else 1.0
    hits = _table(matches.hits)
    column = {term: number for number, term in enumerate(hits.terms)}
    # Rows: every message with a position, ordered by (session, seq) as one number; then hits
    # without a position.
    positioned = len(positions)
    keys, at, seqs, sizes = _columns(positions)
    at = at * _SESSION + seqs
    order = np.argsort(at, kind="stable")
    at, sizes = at[order], np.maximum(sizes[order], 1).astype(np.float64)
    keys, hit_rows = _rows(keys[order], hits.keys)
    counts = np.zeros((len(keys), len(hits.terms)))
    counts[hit_rows] = hits.counts
    shared_counts = counts.copy()
    row_of_hit = dict(zip(hits.keys.tolist(), hit_rows.tolist(), strict=True))
    for key, head in header_terms.items():
        for term in head:
            if key in row_of_hit and term in column:
                here = row_of_hit[key], column[term]
                shared_counts[here] -= counts[here] > 0
    lengths = np.full(len(keys), mean)
    hit_lengths = hits.lengths.astype(np.float64)
    with_position = hit_rows < positioned
    measured_tokens = float(sizes[hit_rows[with_position]].sum())
    if measured_tokens:
        lengths[:positioned] = sizes * (float(hit_lengths[with_position].sum()) / measured_tokens)
    lengths[hit_rows] = hit_lengths
    shared = np.minimum(1.0, MAX_SHARED / np.maximum(lengths, 1.0))
    # A missing neighbour counts like one of mean length: the ends of a session gain nothing.
    typical = min(mean, MAX_SHARED)
    nearness = {step: share ** (abs(step) - 1) for step in range(-reach, reach + 1) if step}
    typical_around = typical * sum(nearness.values())
    around = lengths + typical_around
    for step, near in nearness.items() if positioned else ():
        other = np.minimum(np.searchsorted(at, at + step), positioned - 1)
        targets = np.flatnonzero(at[other] == at + step)
        part = near * shared[other[targets]]
        counts[targets] += share * part[:, None] * shared_counts[other[targets]]
        around[targets] += part * lengths[other[targets]] - near * typical
    b = 1 - (1 - b) * typical / mean
    norm = k1 * (1 - b + b * around / (mean + typical_around))
    unknown = idf(matches.documents, 1)
    scored = np.zeros(len(keys))
    for word in words if words is not None else [{term: 1.0} for term in sorted(hits.terms)]:
        # Column by column, not as one matrix product, which may round equal rows differently: ties
        # have to stay ties.
        parts = [
            share_of_word
            * (
                idf(matches.documents, matches.frequencies[term])
                if term in matches.frequencies
                else unknown
            )
            * (k1 + 1)
            * (counts[:, column[term]] / (counts[:, column[term]] + norm))
            for term, share_of_word in word.items()
            if term in column
        ]
        if parts:
            scored += parts[0] if len(parts) == 1 else np.maximum.reduce(parts)
    matching = np.flatnonzero(counts.any(axis=1))
    return dict(zip(keys[matching].tolist(), scored[matching].tolist(), strict=True))


def _rows(
    positioned: NDArray[np.int64], hits: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The keys of all rows, which are those with a position and then the other hits; and the row of
    each hit."""
    import numpy as np

    by_key = np.argsort(positioned)
    nearest = np.searchsorted(positioned, hits, sorter=by_key)
    rows = np.append(by_key, -1)[nearest]
    other = np.append(positioned, -1)[rows] != hits
    rows[other] = len(positioned) + np.arange(np.count_nonzero(other))
    return np.concatenate([positioned, hits[other]]), rows


def _columns(positions: Mapping[int, MessagePosition]) -> tuple[NDArray[np.int64], ...]:
    """Keys of messages, their sessions, positions and lengths in tokens."""
    import numpy as np

    if isinstance(positions, PositionTable):
        return tuple(positions.columns[[KEY, SESSION, SEQ, TOKENS]])
    number = len(positions)
    names = ("session_key", "seq", "tokens")
    values = (map(attrgetter(name), positions.values()) for name in names)
    return tuple(np.fromiter(each, np.int64, number) for each in (positions, *values))


def _table(hits: Sequence[TextHit]) -> HitTable:
    if isinstance(hits, HitTable):
        return hits
    import numpy as np

    terms = list(dict.fromkeys(term for hit in hits for term in hit.terms))
    counts = [[hit.terms.get(term, 0) for term in terms] for hit in hits]
    return HitTable(
        np.array([hit.key for hit in hits], np.int64),
        np.array([hit.length for hit in hits], np.int32),
        terms,
        np.array(counts, np.int32).reshape(len(hits), len(terms)),
    )


def share_similarities(
    similarities: Mapping[int, float], positions: Mapping[int, MessagePosition]
) -> Scores:
    """Similarities to a query, with a share of those of the messages just before and after: a reply
    of a few words does not say what it answers. Only between short messages of these."""
    if isinstance(positions, PositionTable):
        rows = positions.rows(similarities)
        key_at = {(row[SESSION], row[SEQ]): row[KEY] for row in rows if row[TOKENS] <= MAX_SHORT}
    else:
        key_at = {
            (position.session_key, position.seq): key
            for key in similarities
            if (position := positions.get(key)) is not None and position.tokens <= MAX_SHORT
        }
    shared = dict(similarities)
    for (session_key, seq), key in key_at.items():
        for neighbour in (key_at.get((session_key, seq - 1)), key_at.get((session_key, seq + 1))):
            if neighbour is not None:
                shared[key] += SIMILARITY_SHARE * similarities[neighbour]
    return shared


def normalise(scores: Mapping[int, float]) -> Scores:
    """Scores as shares of the best one; all zero if no score is above zero."""
    best = max(scores.values(), default=0.0)
    return {key: max(0.0, score) / best if best > 0 else 0.0 for key, score in scores.items()}


def ranked(scores: Mapping[int, float], limit: int | None = None) -> list[int]:
    """Keys, best first, ties by key."""
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:limit]


def fuse(
    lists: Iterable[Sequence[int]],
    k: int = RRF_K,
    limit: int | None = None,
    *,
    weighted: Mapping[int, float] | None = None,
) -> list[int]:
    """Reciprocal rank fusion: the score of a key is the sum of 1 / (k + rank) over the lists that
    contain it, ranks from 1.

    The sum does not depend on the order of the lists. Within a list only the first occurrence of a
    key counts. `weighted` is one more list, best first, with a factor for the share of each key.
    """
    shares: dict[int, list[float]] = {}
    for ranking in lists:
        for rank, key in enumerate(dict.fromkeys(ranking), 1):
            shares.setdefault(key, []).append(1.0 / (k + rank))
    for rank, (key, weight) in enumerate((weighted or {}).items(), 1):
        shares.setdefault(key, []).append(weight / (k + rank))
    return ranked({key: math.fsum(parts) for key, parts in shares.items()}, limit)
