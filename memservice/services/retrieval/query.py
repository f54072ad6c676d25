"""A query, analysed against the names of a workspace's peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from memservice.domain.records import Peer
from memservice.domain.text.analysis import analyse
from memservice.domain.text.dates import NamedDate, dates_named
from memservice.domain.text.names import candidate_name_tokens, without_names
from memservice.domain.text.persons import asks_about_asker
from memservice.domain.text.relatives import QueryWord, query_words
from memservice.domain.values import strip_nul
from memservice.services.peers import spoken_name
from memservice.spi.storage import Transaction

MAX_TERMS = 64
"""Maximum number of distinct terms of a query that count; further ones do not improve a ranking."""


class Query(Struct, frozen=True):
    """The parts of a query that rankings use."""

    text: str
    terms: tuple[str, ...]
    """Those of all words."""
    words: Sequence[QueryWord]
    """The words that carry information, and their relatives."""
    named: Peer | None
    """The one peer that the query names."""
    dates: Sequence[NamedDate]
    names: Mapping[int, frozenset[str]]
    """Peer key → the terms of that peer's name, for each peer that the query names."""
    is_about_asker: bool
    """Whether it is a question about the one who asks it."""
    unnamed: str
    """The query without the names of the workspace's peers: a short message that mentions a name is
    usually by the other speaker."""

    def is_of_day(self, at: datetime | None) -> bool:
        """Whether the query names this day, or its month."""
        return at is not None and any(date.matches(at) for date in self.dates)

    @property
    def all_words(self) -> list[QueryWord]:
        """With the stop words, which find something in a statement that shares no other word."""
        spoken = {word.term for word in self.words}
        return [*self.words, *(QueryWord(term) for term in self.terms if term not in spoken)]


def analyse_query(tx: Transaction, workspace_key: int, query: str) -> Query:
    text: str = strip_nul(query)
    terms = tuple(dict.fromkeys(analyse(text)))[:MAX_TERMS]
    words = query_words(text)[:MAX_TERMS]
    namesakes = tx.peers.named(workspace_key, candidate_name_tokens(text))
    peers = {peer.key: peer for several in namesakes.values() for peer in several}
    named = next(iter(peers.values())) if len(peers) == 1 else None
    names = {peer.key: frozenset(analyse(spoken_name(peer))) for peer in peers.values()}
    return Query(
        text,
        terms,
        words,
        named,
        dates_named(text),
        names,
        asks_about_asker(text),
        without_names(text, namesakes),
    )
