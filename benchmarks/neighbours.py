"""How neighbouring messages had best enter full text: stored beside the own text, or given a share
of each hit at query time.

Runs in memory, on the analysis and the scoring that the product uses. Usage:

    python -m benchmarks.neighbours [--seeds 1,2,3] [--count 12] [--locomo PATH | --beam PATH]
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from memservice.domain.ranking import (
    K1,
    NEIGHBOUR_WEIGHT,
    WINDOW,
    B,
    Scores,
    bm25,
    bm25_with_neighbours,
    idf,
    normalise,
    ranked,
)
from memservice.domain.text.analysis import (
    analyse,
    candidate_name_tokens,
    dates_named,
    name_tokens,
    own_text,
)
from memservice.domain.tokens import count
from memservice.spi.text import TextHit, TextMatches
from memservice_bench.builtin import conversations
from memservice_bench.corpus import Conversation
from memservice_bench.metrics import MEASURES, difference, figure
from memservice_bench.public_sets import load_beam, load_locomo


def spread(
    scores: Mapping[int, float],
    positions: Mapping[int, tuple[int, int]],
    reach: int = WINDOW,
    share: float = NEIGHBOUR_WEIGHT,
) -> Scores:
    """Scores after each hit has given `share` of its own to the messages up to `reach` positions
    before and after it.

    `positions` maps keys to (session, seq), for the hits and for every message that may gain. A
    message adds up what it is given; what is given is not passed on. Neighbours without a position
    gain nothing, hits without one keep their score and give none.
    """
    at = {position: key for key, position in positions.items()}
    total: Scores = dict(scores)
    for key in sorted(scores):
        position = positions.get(key)
        if position is None:
            continue
        session, seq = position
        gift = scores[key] * share
        for step in range(-reach, reach + 1):
            neighbour = at.get((session, seq + step)) if step else None
            if neighbour is not None:
                total[neighbour] = total.get(neighbour, 0.0) + gift
    return total


class Position(NamedTuple):
    session_key: int
    seq: int
    tokens: int


@dataclass
class Indexed:
    """One conversation, analysed."""

    source: Conversation

    @cached_property
    def own(self) -> dict[int, Counter[str]]:
        """Term counts of each turn, with speaker and date."""
        return {
            turn.key: Counter(analyse(own_text(turn.speaker, turn.at, turn.text)))
            for turn in self.source.turns
        }

    @cached_property
    def raw(self) -> dict[int, Counter[str]]:
        return {turn.key: Counter(analyse(turn.text)) for turn in self.source.turns}

    @cached_property
    def head(self) -> dict[int, frozenset[str]]:
        """Terms that only say who spoke and when."""
        return {
            turn.key: frozenset(analyse(own_text(turn.speaker, turn.at, "")))
            for turn in self.source.turns
        }

    @cached_property
    def around(self) -> dict[int, Counter[str]]:
        """Term counts of the turns up to two before and after, as text without speaker and
        date."""
        at = {position: key for key, position in self.positions.items()}
        counts: dict[int, Counter[str]] = {}
        for key, (session, seq) in self.positions.items():
            near = [at.get((session, seq + step)) for step in range(-WINDOW, WINDOW + 1) if step]
            counts[key] = sum((self.raw[n] for n in near if n is not None), Counter())
        return counts

    @cached_property
    def positions(self) -> dict[int, tuple[int, int]]:
        return {turn.key: (turn.session, turn.seq) for turn in self.source.turns}

    @cached_property
    def sizes(self) -> dict[int, int]:
        return {
            turn.key: count(own_text(turn.speaker, turn.at, turn.text))
            for turn in self.source.turns
        }

    def matches(self, field: dict[int, Counter[str]], terms: set[str]) -> TextMatches:
        """What a text index would answer, without a limit."""
        hits = [
            TextHit(key, {t: counts[t] for t in terms if t in counts}, counts.total())
            for key, counts in field.items()
            if not terms.isdisjoint(counts)
        ]
        frequencies = Counter(term for hit in hits for term in hit.terms)
        return TextMatches(
            len(field), sum(c.total() for c in field.values()) / len(field), dict(frequencies), hits
        )


Method = Callable[[Indexed, set[str]], Scores]


def raw_text(data: Indexed, terms: set[str]) -> Scores:
    return bm25(data.matches(data.raw, terms))


def own_only(data: Indexed, terms: set[str]) -> Scores:
    return bm25(data.matches(data.own, terms))


def stored_field(data: Indexed, terms: set[str]) -> Scores:
    """BM25 over two fields as FTS5 computes it: occurrences weighted by field, length and document
    frequency of both together."""
    own, around = data.own, data.around
    lengths = {key: own[key].total() + around[key].total() for key in own}
    mean = sum(lengths.values()) / len(lengths)
    holders = {
        term: [key for key in own if term in own[key] or term in around[key]] for term in terms
    }
    scores: Scores = defaultdict(float)
    for term in sorted(terms):
        weight = idf(len(own), len(holders[term])) * (K1 + 1)
        for key in holders[term]:
            tf = own[key][term] + NEIGHBOUR_WEIGHT * around[key][term]
            scores[key] += weight * tf / (tf + K1 * (1 - B + B * lengths[key] / mean))
    return dict(scores)


def two_scores(data: Indexed, terms: set[str]) -> Scores:
    """The own field's score plus half that of a stored field of neighbours."""
    scores = own_only(data, terms)
    for key, score in bm25(data.matches(data.around, terms)).items():
        scores[key] = scores.get(key, 0.0) + NEIGHBOUR_WEIGHT * score
    return scores


def shared(data: Indexed, terms: set[str], depth: int | None = None) -> Scores:
    """Query time: each of the best `depth` hits gives half its score to its neighbours, gifts add
    up."""
    scores = own_only(data, terms)
    best = {key: scores[key] for key in ranked(scores, depth)}
    return spread(best, data.positions)


def lent(data: Indexed, terms: set[str], depth: int | None = None, heads: bool = True) -> Scores:
    """Query time: the best `depth` hits lend half of their term counts. `heads`: speaker and date
    are not lent."""
    matches = data.matches(data.own, terms)
    best = set(ranked(bm25(matches), depth))
    hits = [hit for hit in matches.hits if hit.key in best]
    at = {position: key for key, position in data.positions.items()}
    near = {
        key
        for hit in hits
        for step in range(-WINDOW, WINDOW + 1)
        if (key := at.get((data.positions[hit.key][0], data.positions[hit.key][1] + step)))
        is not None
    }
    near_positions = {key: Position(*data.positions[key], data.sizes[key]) for key in near}
    head = {hit.key: data.head[hit.key] for hit in hits} if heads else {}
    return bm25_with_neighbours(
        TextMatches(matches.documents, matches.mean_length, matches.frequencies, hits),
        near_positions,
        head,
    )


METHODS: dict[str, Method] = {
    "raw text": raw_text,
    "own (speaker, date)": own_only,
    "stored field, bm25f": stored_field,
    "stored field, own+half": two_scores,
    "query time, sum": shared,
    "query time, sum of best 200": partial(shared, depth=200),
    "query time, sum of best 100": partial(shared, depth=100),
    "query time, lent counts": lent,
    "... of best 400": partial(lent, depth=400),
    "... of best 200": partial(lent, depth=200),
    "... heads lent too": partial(lent, heads=False),
}


def boosted(data: Indexed, query: str, scores: Scores) -> Scores:
    """+ .2 for the author when one speaker is named, + .1 for the day when it is, on scores
    relative to the best."""
    candidates = set(candidate_name_tokens(query))
    named = [name for name in data.source.speakers if candidates & set(name_tokens(name))]
    days = dates_named(query)
    shares = normalise(scores)
    for turn in data.source.turns:
        if turn.key in shares:
            shares[turn.key] += 0.2 * (named == [turn.speaker]) + 0.1 * any(
                day.matches(turn.at) for day in days
            )
    return shares


def measure(
    corpus: Sequence[Conversation], methods: dict[str, Method], boost: bool
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Per-question values: method → measure → category → values, categories in the questions'
    order, with `all` among them."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {
        name: {m: defaultdict(list) for m in MEASURES} for name in methods
    }
    for source in corpus:
        data = Indexed(source)
        for question in source.questions:
            terms = set(analyse(question.text))
            for name, method in methods.items():
                scores = method(data, terms)
                order = ranked(boosted(data, question.text, scores) if boost else scores)
                for label, score in MEASURES.items():
                    value = score(order, question.evidence, data.sizes)
                    values[name][label]["all"].append(value)
                    values[name][label][question.category].append(value)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="1,2,3", help="seeds of the invented conversations")
    parser.add_argument("--count", type=int, default=12, help="conversations per seed")
    parser.add_argument(
        "--idle", type=int, default=120, help="exchanges without a fact per conversation"
    )
    parser.add_argument("--locomo", type=Path, help="LoCoMo's json")
    parser.add_argument("--beam", type=Path, help="BEAM's folder of chats of one size")
    parser.add_argument("--categories", action="store_true", help="r@10 by category as well")
    options = parser.parse_args()
    if options.locomo:
        corpus = load_locomo(options.locomo)
    elif options.beam:
        corpus = load_beam(options.beam)
    else:
        corpus = [
            c
            for seed in options.seeds.split(",")
            for c in conversations(int(seed), options.count, options.idle)
        ]
    print(
        f"{len(corpus)} conversations, {sum(len(c.turns) for c in corpus)} turns, "
        f"{sum(len(c.questions) for c in corpus)} questions"
    )
    for boost in (False, True):
        results = measure(corpus, METHODS, boost)
        print(
            f"\n{'with boosts' if boost else 'without boosts':30}"
            + "".join(f"{label:>14}" for label in MEASURES)
            + "   r@10 against stored bm25f"
        )
        base = results["stored field, bm25f"]["r@10"]["all"]
        for name, by_measure in results.items():
            change = difference(base, by_measure["r@10"]["all"])
            print(
                f"{name:30}"
                + "".join(f"{figure(v['all'])!s:>14}" for v in by_measure.values())
                + f"   {change.mean:+5.1f} ({change.low:+.1f}, {change.high:+.1f})"
            )
        if options.categories:
            for category in results["raw text"]["r@10"]:
                print(
                    f"  {category}: "
                    + ", ".join(
                        f"{n} {figure(r['r@10'][category]).mean:.1f}" for n, r in results.items()
                    )
                )


if __name__ == "__main__":
    main()
