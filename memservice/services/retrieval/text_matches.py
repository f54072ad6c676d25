"""Texts that match the words of a query, or words that are related to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import ranking
from memservice.domain.ranking import TextHit, TextMatches, Word
from memservice.domain.text.relatives import QueryWord
from memservice.runtime import Runtime
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction

Readable = Callable[[Sequence[int]], Collection[int]]
"""Which of these rows the caller may read."""

MAX_NEAR = 50
"""Candidates that only have words of the same beginning. With 800, as many as of exact matches, a
search of 5,000 long messages for such words takes 28 ms instead of 19, with 10 it takes 18; other
forms of words are found alike with any number from 5 on (benchmarks/recall/related_words.py)."""


class TextCandidates(Struct, frozen=True):
    """Matching texts, and the terms of each word of the query by which they match."""

    matches: TextMatches
    words: Sequence[Word]
    is_complete: bool
    """Whether no other text matches."""

    def bm25(self) -> ranking.Scores:
        return ranking.bm25(self.matches, self.words)

    def best(self, count: int) -> TextCandidates:
        """The `count` candidates with the best scores of their own."""
        hits = self.matches.hits
        if len(hits) <= count:
            return self
        keys = set(ranking.ranked(self.bm25(), count))
        matches = replace(self.matches, hits=ranking.hits_among(hits, keys))
        return TextCandidates(matches, self.words, is_complete=False)


class TextSearch(Struct, frozen=True):
    """The words of a query, searched in the index of one kind of rows."""

    rt: Runtime
    tx: Transaction
    kind: str
    workspace_key: int
    words: Sequence[QueryWord]

    def exact(
        self, k: int, index_filter: IndexFilter, ids: Sequence[int] | None = None
    ) -> TextCandidates:
        """Texts with any of the words, in the form that was asked for or in another."""
        terms = list(dict.fromkeys(term for word in self.words for term in _forms(word)))
        matches = self._search(terms, k, index_filter, ids)
        forms = [_forms(word) for word in self.words]
        return TextCandidates(matches, forms, len(matches.hits) < k)

    def near(
        self,
        k: int,
        index_filter: IndexFilter,
        ids: Sequence[int] | None = None,
        *,
        readable: Readable | None = None,
    ) -> TextCandidates:
        """Like `exact`. Of a word that no text of the workspace has in any form, texts with words
        of the same beginning match too; of each word, if nothing else matches.

        `readable`: required if the caller may not read all texts. Then a word that no readable
        candidate has is such a word, so that the results do not tell which words the others have.
        """
        exact = self.exact(k, index_filter, ids)
        if not any(word.beginnings for word in self.words):
            return exact
        hits = exact.matches.hits
        present = {term for term, number in exact.matches.frequencies.items() if number}
        if readable is not None:
            hits = ranking.hits_among(hits, readable(ranking.keys_of(hits)))
            present = {term for hit in hits for term in hit.terms}
        missing = [
            word
            for word in self.words
            if word.beginnings and not (hits and not present.isdisjoint(_forms(word)))
        ]
        if not missing:
            return exact
        terms = list(dict.fromkeys(term for word in missing for term, _ in word.beginnings))
        near = self._search(terms, min(k, MAX_NEAR), index_filter, ids)
        forms = [
            _forms(word) | dict(word.beginnings) if word in missing else _forms(word)
            for word in self.words
        ]
        is_complete = exact.is_complete and len(near.hits) < min(k, MAX_NEAR)
        return TextCandidates(_merged(exact.matches, near), forms, is_complete)

    def _search(
        self, terms: Sequence[str], k: int, index_filter: IndexFilter, ids: Sequence[int] | None
    ) -> TextMatches:
        return self.rt.storage.text.search(
            self.tx, self.kind, self.workspace_key, terms, k, index_filter, ids
        )


def _forms(word: QueryWord) -> dict[str, float]:
    return {word.term: 1.0} | dict.fromkeys(word.stems, 1.0)


def _merged(exact: TextMatches, near: TextMatches) -> TextMatches:
    """The candidates of two searches of the same rows for different terms."""
    hits = {hit.key: hit for hit in exact.hits}
    for hit in near.hits:
        exact_terms = hits[hit.key].terms if hit.key in hits else {}
        terms = {**exact_terms, **hit.terms}
        hits[hit.key] = TextHit(hit.key, terms, hit.length)
    frequencies = {**exact.frequencies, **near.frequencies}
    return TextMatches(exact.documents, exact.mean_length, frequencies, list(hits.values()))
