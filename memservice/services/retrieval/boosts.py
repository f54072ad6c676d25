"""What is added to the scores of messages for their author and their day."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from memservice.domain import ranking
from memservice.domain.positions import Position, PositionTable
from memservice.domain.ranking import TextMatches
from memservice.domain.text.analysis import analyse
from memservice.domain.text.persons import is_about_writer
from memservice.services.auth.bounds import Bounds
from memservice.services.retrieval.query import Query
from memservice.services.retrieval.trace import Boosts
from memservice.settings.sections import Search as SearchSettings
from memservice.spi.storage import Transaction

SAMPLED_HITS = 100
"""The best hits, from which messages of each author are sampled."""
SAMPLE = 10
"""Messages that tell whether an author speaks of itself. Reading them costs a search less than a
millisecond; 5 and 20 give the same results in our conversations (benchmarks/recall/README.md)."""
MIN_SHARE = 0.5
"""How often an author speaks of itself at least, relative to the one that does most, to be one who
may ask. People who talk with each other are all such, so nobody is preferred."""

MENTION: int = 2
"""The boost of a message that mentions a day which the query names, in boosts of a message of that
day: about twenty messages are of a day, and one or two are about it. Of the appointments for a day,
71 and 79 % are found with 0, 79 and 92 with 1, all with 2 or 3, and with 3 less of what was said on
the day (benchmarks/recall/appointments.py, without a semantic embedder)."""


class Boosting(Struct, frozen=True):
    """The boosts of one ranking. In each list, scores are relative to the best one before they are
    added."""

    settings: SearchSettings
    query: Query
    askers: frozenset[int] = frozenset()
    """Keys of the authors who may have asked a question about themselves."""
    mentions: frozenset[int] = frozenset()
    """Keys of the messages of other days that mention a day which the query names."""

    def _of(self, position: Position) -> tuple[float, float, float]:
        """For the peer that the query names, for the day, and for the asker."""
        named, author = self.query.named, position.author_key
        by_named = named is not None and author == named.key
        date_boost = 0.0
        if position.key in self.mentions:
            date_boost = MENTION * self.settings.date_boost
        elif self.query.is_of_day(position.created_at):
            date_boost = self.settings.date_boost
        return (
            self.settings.name_boost if by_named else 0.0,
            date_boost,
            self.settings.name_boost if author in self.askers else 0.0,
        )

    def ranked(self, scores: Mapping[int, float], positions: Mapping[int, Position]) -> list[int]:
        """The keys with a position, best first."""
        if not self._is_needed:
            if not scores.keys() <= positions.keys():
                scores = {key: score for key, score in scores.items() if key in positions}
            return ranking.ranked(scores)
        boosts = self._totals(positions)
        boosted = {
            key: score + boosts[key]
            for key, score in ranking.normalise(scores).items()
            if key in boosts
        }
        return ranking.ranked(boosted)

    def _totals(self, positions: Mapping[int, Position]) -> dict[int, float]:
        if isinstance(positions, PositionTable):  # without times: the query names no day
            authors = positions.authors()
            first = {author: key for key, author in authors.items()}
            of_author = {author: sum(self._of(positions[key])) for author, key in first.items()}
            return {key: of_author[author] for key, author in authors.items()}
        return {key: sum(self._of(position)) for key, position in positions.items()}

    def by_key(self, positions: Mapping[int, Position]) -> dict[int, Boosts]:
        """Those of the messages at these positions; empty if there are none for this query."""
        if not self._is_needed:
            return {}
        return {key: Boosts(*self._of(position)) for key, position in positions.items()}

    @property
    def _is_needed(self) -> bool:
        return self.query.named is not None or bool(self.query.dates) or bool(self.askers)


def askers(
    tx: Transaction,
    bounds: Bounds,
    query: Query,
    scores: Mapping[int, float],
    positions: Mapping[int, Position],
) -> frozenset[int]:
    """The authors who may have asked: for a question about its asker, those who speak of themselves
    most often in the messages that match it best.

    In a talk with an assistant that is the user, whose short statements would otherwise stand below
    long answers about the same subject. Empty if the query names a peer.
    """
    if query.named is not None or not query.is_about_asker:
        return frozenset()
    sample: dict[int, list[int]] = {}
    for key in ranking.ranked(scores, SAMPLED_HITS):
        position = positions.get(key)
        if position is not None and position.author_key is not None:
            keys = sample.setdefault(position.author_key, [])
            if len(keys) < SAMPLE:
                keys.append(key)
    if len(sample) < 2:
        return frozenset()
    sampled = [key for keys in sample.values() for key in keys]
    messages = tx.messages.matching(bounds.workspace, sampled, bounds.message_condition)
    shares = {
        author: sum(is_about_writer(messages[key].content) for key in keys if key in messages)
        / len(keys)
        for author, keys in sample.items()
    }
    minimum = MIN_SHARE * max(shares.values())
    return frozenset(author for author, share in shares.items() if share > minimum)


def mentions(
    query: Query, matches: TextMatches, positions: Mapping[int, Position]
) -> frozenset[int]:
    """The matching messages that mention a day which the query names ("The exam is on 4 October"),
    but are not of that day. The index has the date of each message among its words, so that one
    with the number of the day, sent in the same month, is taken for one that mentions it."""
    keys = {
        key
        for date in query.dates
        if date.day is not None
        for key in ranking.keys_with_all(matches.hits, set(analyse(date.words)))
    }
    return frozenset(
        key for key in keys if key in positions and not query.is_of_day(positions[key].created_at)
    )
