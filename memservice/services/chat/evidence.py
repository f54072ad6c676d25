"""Evidence of an answer: retrieved, ordered, and reported afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import zip_longest

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain import ranking
from memservice.domain.filters import TRUE, all_of, equals
from memservice.domain.records import (
    EXPLICIT,
    PEER,
    Conclusion,
    Message,
    Peer,
    Session,
)
from memservice.domain.text.analysis import analyse
from memservice.domain.text.words import MONTHS
from memservice.runtime import Runtime
from memservice.services import moments
from memservice.services.auth.bounds import Bounds
from memservice.services.indexing import CONCLUSION
from memservice.services.peers import spoken_name
from memservice.services.retrieval import query_embedding
from memservice.services.retrieval.bridges import DERIVED
from memservice.services.retrieval.conclusion_ranking import ConclusionHit
from memservice.services.retrieval.query import Query
from memservice.services.retrieval.search import Search
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.spi.reasoner import Reasoner
from memservice.spi.repositories.base import NEWEST
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction
from memservice.spi.toolbox import Evidence

PER_KIND = {"minimal": 10}
"""Number of conclusions, and of messages, that are retrieved for a question, by reasoning level."""
DEFAULT_PER_KIND = 25
PREFETCHED_MESSAGES = 10
"""Number of messages that are retrieved in advance for a reasoner with tools."""

SAME_SUBJECT = 0.5
"""Minimum cosine similarity of texts on the same subject without a common word, for an embedder
without paraphrases."""


MAX_REPLACED = 100
"""Replaced conclusions that are shown with their successors."""
MAX_WORDS = 64
"""Maximum number of words of a query that are tried as the id of a peer."""

_WORD = re.compile(r"[A-Za-z0-9_-]{1,512}")
_QUESTION = frozenset("?？؟")


class ToolCall(Struct, frozen=True):
    """A tool call of the reasoner; retrieval in advance does not count."""

    tool_name: str
    tool_input: dict[str, object] = field(default_factory=dict)


class Collated(Struct, frozen=True):
    """Everything that was read for an answer, without duplicates, in the order of reading. More
    than what the answer cites."""

    conclusions: Sequence[Conclusion] = ()
    """Their `source_ids` are lists here, never null."""
    messages: Sequence[Message] = ()
    tool_calls: Sequence[ToolCall] = ()
    reasoning_trace_id: str | None = None


class Gathered(Struct, frozen=True):
    """The results for a question, each kind best first, and the latest messages of the session,
    oldest first."""

    conclusions: Sequence[Conclusion]
    messages: Sequence[Message]
    recent: Sequence[Message] = ()
    replaced: Mapping[int, Sequence[Conclusion]] = field(default_factory=dict)
    """Conclusions that those replaced, by the key of the successor, newest first."""

    def ranked(self) -> list[Evidence]:
        """Both kinds in one order, by rank."""
        conclusions = [
            of_conclusion(row, self.replaced.get(row.key, ())) for row in self.conclusions
        ]
        pairs = zip_longest(conclusions, map(of_message, self.messages))
        return [item for pair in pairs for item in pair if item is not None]

    def collated(self) -> Collated:
        messages = {message.key: message for message in (*self.messages, *self.recent)}
        rows = [
            version
            for row in self.conclusions
            for version in (row, *self.replaced.get(row.key, ()))
        ]
        return Collated(
            [replace(row, source_ids=row.source_ids or []) for row in rows],
            list(messages.values()),
        )


def replaced_by(
    tx: Transaction, bounds: Bounds, rows: Sequence[Conclusion]
) -> dict[int, list[Conclusion]]:
    """The conclusions within the bounds that these replaced directly, by the key of the successor,
    newest first. At most `MAX_REPLACED` in total."""
    if not rows:
        return {}
    condition = equals(
        workspace_key=bounds.workspace,
        collection_key=tuple({row.collection_key for row in rows}),
        superseded_by=tuple(row.key for row in rows),
    )
    rows_replaced = tx.rows.page(
        Conclusion,
        all_of(condition, moments.superseded(bounds.moment), bounds.condition),
        (Order("key", descending=True),),
        MAX_REPLACED,
    )
    replaced: dict[int, list[Conclusion]] = {}
    for row in sorted(rows_replaced, key=lambda row: (row.said_at, row.key), reverse=True):
        if row.superseded_by is not None:
            replaced.setdefault(row.superseded_by, []).append(row)
    return replaced


def of_conclusion(row: Conclusion, replaced: Sequence[Conclusion] = ()) -> Evidence:
    return Evidence(
        "conclusion",
        row.uid,
        row.content,
        row.said_at,
        about=row.observed,
        level=row.level,
        observer=row.observer,
        session=row.session,
        source_ids=tuple(row.source_ids or ()),
        replaced=tuple(of_conclusion(earlier) for earlier in replaced),
        when=None if row.when is None else (row.when.get("start"), row.when.get("end")),
    )


def of_message(row: Message, asked_for: bool = True) -> Evidence:
    return Evidence(
        "message",
        row.uid,
        row.content,
        row.created_at,
        author=row.author,
        session=row.session,
        asked_for=asked_for,
    )


def gather(
    rt: Runtime,
    reasoner: Reasoner,
    tx: Transaction,
    bounds: Bounds,
    lookup: Search,
    level: str,
    recent: Sequence[Message],
) -> Gathered:
    """The best conclusions and messages for a question; for a general question, the newest about
    its subject.

    A reasoner with a model decides itself which results are relevant. It gets as many explicit as
    derived conclusions, so that neither displace the others.
    """
    number = PER_KIND.get(level, DEFAULT_PER_KIND)
    question = lookup.query(tx, bounds.workspace)
    rule = _RelevanceRule(
        question,
        bounds.subject or question.named or _peer_with_id_in(tx, bounds.workspace, lookup.text),
    )
    asks_model = Capability.COSTLY in reasoner.capabilities
    if rule.is_general:
        conclusions = _newest_conclusions(tx, bounds, rule, number)
        messages = _newest_messages(rt, tx, bounds, rule, number)
        replaced = replaced_by(tx, bounds, conclusions) if asks_model else {}
        return Gathered(conclusions, messages, recent, replaced)
    if asks_model:
        explicit = _conclusions(tx, bounds, lookup, number, (EXPLICIT,))
        derived = _conclusions(tx, bounds, lookup, number, DERIVED)
        messages = lookup.messages(tx, bounds, PREFETCHED_MESSAGES)
        conclusions = [*explicit, *derived]
        return Gathered(conclusions, messages, recent, replaced_by(tx, bounds, conclusions))
    hits = _conclusion_hits(tx, bounds, lookup, number)
    messages = lookup.messages(tx, bounds, number)
    if not query_embedding.understands(rt, tx.spaces.active(bounds.workspace, CONCLUSION)):
        hits = [item for item in hits if rule.matches_conclusion(item)]
        messages = rule.relevant_messages(messages)
    return Gathered(distinct([item.conclusion for item in hits])[:number], messages, recent)


def _peer_with_id_in(tx: Transaction, workspace_key: int, query: str) -> Peer | None:
    """The one peer whose id is a word of the query. This finds ids that are ordinary words too,
    which are not treated as names elsewhere."""
    words = dict.fromkeys(_WORD.findall(query))
    peers = [
        peer
        for peer in tx.peers.by_slugs(workspace_key, list(words)[:MAX_WORDS]).values()
        if peer.kind == PEER
    ]
    return peers[0] if len(peers) == 1 else None


def _conclusion_hits(
    tx: Transaction,
    bounds: Bounds,
    lookup: Search,
    number: int,
    levels: tuple[str, ...] = (),
) -> list[ConclusionHit]:
    """Twice as many conclusions as necessary, since several observers may have the same one."""
    if bounds.no_conclusions:
        return []
    if levels:
        bounds = bounds.with_conclusions(equals(level=levels), IndexFilter(levels=levels))
    return lookup.conclusions(tx, bounds, number * 2)


def _conclusions(
    tx: Transaction,
    bounds: Bounds,
    lookup: Search,
    number: int,
    levels: tuple[str, ...],
) -> list[Conclusion]:
    return distinct(
        [item.conclusion for item in _conclusion_hits(tx, bounds, lookup, number, levels)]
    )[:number]


def distinct(rows: Sequence[Conclusion]) -> list[Conclusion]:
    unique: dict[tuple[int, str], Conclusion] = {}
    for row in rows:
        unique.setdefault((row.observed_key, row.fingerprint), row)
    return list(unique.values())


def _newest_conclusions(
    tx: Transaction, bounds: Bounds, rule: _RelevanceRule, number: int
) -> list[Conclusion]:
    if bounds.no_conclusions:
        return []
    about = TRUE if rule.subject is None else equals(observed_key=rule.subject.key)
    return distinct(
        tx.conclusions.page(
            bounds.workspace,
            all_of(bounds.condition, about),
            NEWEST,
            limit=number * 2,
            standing=bounds.standing,
        )
    )[:number]


def _newest_messages(
    rt: Runtime, tx: Transaction, bounds: Bounds, rule: _RelevanceRule, number: int
) -> list[Message]:
    condition = TRUE if rule.subject is None else equals(author_key=rule.subject.key)
    return Search(rt, "").messages(tx, bounds.with_messages(condition), number)


@cache
def _generic_terms() -> frozenset[str]:
    """Terms of questions about anything that is known."""
    return frozenset(
        analyse(
            "know known tell describe description summarize summarise summary overview "
            "remember recall learn learned person people user "
            "peer information info detail details fact facts anything something everything "
            "thing things"
        )
    )


class _RelevanceRule:
    """Decides which results are relevant to a question and not just the nearest.

    Compares words only. For reasoners without a model: a search always returns something, and an
    answer made of irrelevant results would be wrong.
    """

    def __init__(self, question: Query, subject: Peer | None) -> None:
        self.subject = subject
        own = (
            frozenset(analyse(f"{subject.slug} {spoken_name(subject)}"))
            if subject is not None
            else frozenset()
        )
        terms = frozenset(question.terms) - own - _generic_terms()
        self._named = {
            key: terms
            for key, terms in question.names.items()
            if subject is None or key != subject.key
        }
        self._names = frozenset(term for terms in self._named.values() for term in terms)
        self._terms = terms - self._names
        self.is_general = not terms

    def matches_conclusion(self, item: ConclusionHit) -> bool:
        near = item.similarity is not None and item.similarity >= SAME_SUBJECT
        return near or not (self._terms or self._names).isdisjoint(analyse(item.conclusion.content))

    def relevant_messages(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with a word of the question, and those that follow such a message with a
        question mark: an answer need not repeat its question."""
        matching = [message for message in messages if self._matches_message(message)]
        positions = {(message.session_key, message.seq) for message in matching}
        questions = [message for message in matching if not _QUESTION.isdisjoint(message.content)]
        positions |= {
            (message.session_key, message.seq + step)
            for message in questions
            for step in range(1, ranking.WINDOW + 1)
        }
        return [message for message in messages if (message.session_key, message.seq) in positions]

    def _matches_message(self, message: Message) -> bool:
        if not self._terms and message.author_key in self._named:
            return True
        day = message.created_at
        terms = analyse(f"{day.day} {MONTHS[day.month - 1]} {day.year} {message.content}")
        return not (self._terms or self._names).isdisjoint(terms)


def tail(tx: Transaction, session: Session, budget: int, bounds: Bounds) -> Sequence[Message]:
    """The latest messages of a session that have at most `budget` tokens together, oldest first:
    of those stored at the moment of the bounds, without those of peers being erased."""
    last, total = moments.extent(tx, session, bounds.moment)
    if budget <= 0 or last == 0:
        return []
    before = tx.messages.seq_reaching(session.key, total - budget) if total > budget else 0
    first = last + 1 if before is None else before + 1
    rows = moments.only_stored(tx.messages.run(session.key, first, last), bounds.moment)
    return [row for row in rows if row.author_key not in bounds.erased]
