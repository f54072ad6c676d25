"""The echo guard: text of the service in a conversation does not become a conclusion about its
speaker.

An agent reads conclusions, summaries and cards, and repeats them. An echo is a sentence that
repeats stored text about *another* peer, if that text is older than the sentence. Two people may
say the same of themselves: a sentence in the first person is an echo only if it is a quotation, or
names the other one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import ranking
from memservice.domain.filters import equals
from memservice.domain.ranking import TextHit
from memservice.domain.records import Card, Conclusion, Message, Peer, Session
from memservice.domain.text.analysis import analyse
from memservice.domain.text.shingles import ShingleIndex, shingle_count, shingles_overlap
from memservice.pipeline.derive.perspective import is_first_person, is_quoted, names_any
from memservice.runtime import Runtime
from memservice.services.indexing import CONCLUSION
from memservice.services.peers import display_name
from memservice.spi.index_filter import IndexFilter
from memservice.spi.reasoner import Statement
from memservice.spi.storage import Transaction

MIN_OVERLAP = 0.9
"""Share of a sentence's shingles in the stored text, from which it is an echo."""
AT_ONCE = 1_000
"""Maximum number of results of one search for all sentences. If there are as many, some may be
missing: then each sentence is searched by itself."""
CANDIDATES = 64
"""Conclusions that a sentence is compared with at most, if there are more. Those with all of its
terms come first."""
MAX_TERMS = 4
"""Terms of a sentence that are searched. An echo has nearly all terms of a sentence, so a few
distinctive ones are enough."""
_SENTENCES = re.compile(r"(?<=[.!?])(?=\s)|(?<=[.!?][\"'”»])(?=\s)|(?<=[。！？\n])")
"""Between two sentences, or two lines."""


class _Sentence(Struct, frozen=True):
    """What may be an echo."""

    text: str
    sources: Sequence[Message]
    """The messages that it is from."""

    @property
    def seq(self) -> int:
        return min(message.seq for message in self.sources)

    @property
    def message_key(self) -> int:
        return min(message.key for message in self.sources)


class EchoGuard:
    """Finds echoes among the statements of one peer in one session. Use it within one
    transaction."""

    def __init__(self, rt: Runtime, tx: Transaction, session: Session, speaker: Peer) -> None:
        self._rt, self._tx, self._session, self._speaker = rt, tx, session, speaker
        others = [
            member
            for member in tx.members.of_session(session.key, active=False)
            if member.peer_key != speaker.key
        ]
        self._others = tuple(member.peer_key for member in others)
        peers = tx.peers.by_keys(sorted(self._others))
        self._names = {
            name for peer in peers.values() for name in (peer.slug, display_name(peer)) if name
        }
        self._cards = ShingleIndex(self._card_lines(tuple(member.peer for member in others)))
        summaries = self._summary_lines()
        self._covered = [seq for seq, _ in summaries]
        self._summaries = ShingleIndex(line for _, line in summaries)

    def _card_lines(self, others: tuple[str, ...]) -> list[str]:
        if not others:
            return []
        observer_keys = (*self._others, self._speaker.key)
        cards = self._tx.rows.page(Card, equals(observer_key=observer_keys, target=others))
        return [line for card in cards for line in card.lines]

    def _summary_lines(self) -> list[tuple[int, str]]:
        """Lines of the session's summaries except the speaker's own, each with the seq of the last
        message that its summary covers."""
        summaries = self._tx.summaries.of_session(self._session.key)
        covered = self._tx.messages.by_keys([summary.message_key for summary in summaries.values()])
        own = f"{self._speaker.slug}:"
        return [
            (covered[summary.message_key].seq, line)
            for summary in summaries.values()
            if summary.message_key in covered
            for line in summary.content.splitlines()
            if not line.startswith(own)
        ]

    def without_echoes(self, messages: Sequence[Message]) -> list[Message]:
        """The messages without the sentences that only repeat older stored text about others."""
        parts = [
            _Sentence(part, (message,))
            for message in messages
            for part in _SENTENCES.split(message.content)
        ]
        own: dict[int, list[str]] = {message.key: [] for message in messages}
        echoes = self._echoes(parts)
        for number, part in enumerate(parts):
            if number not in echoes:
                own[part.message_key].append(part.text)
        changed = {parts[number].message_key for number in echoes}
        return [
            replace(message, content="".join(own[message.key]).strip())
            if message.key in changed
            else message
            for message in messages
        ]

    def new(self, statements: Sequence[Statement], messages: Sequence[Message]) -> list[Statement]:
        """The statements that do more than repeat stored text about others that is older than
        their messages."""
        echoes = self._echoes(
            [
                _Sentence(
                    statement.content,
                    [message for message in messages if message.key in statement.message_keys],
                )
                for statement in statements
            ]
        )
        return [each for number, each in enumerate(statements) if number not in echoes]

    def _echoes(self, sentences: Sequence[_Sentence]) -> set[int]:
        """The numbers of the sentences that are echoes."""
        if not self._others:
            return set()
        echoes: set[int] = set()
        others: dict[int, _Sentence] = {}
        for number, sentence in enumerate(sentences):
            if not sentence.text.strip() or not self._is_about_others(sentence):
                continue
            if self._repeats_card_or_summary(sentence):
                echoes.add(number)
            else:
                others[number] = sentence
        return echoes | self._repeating_conclusions(others)

    def _is_about_others(self, sentence: _Sentence) -> bool:
        """Whether a sentence may be about another peer than its speaker. A sentence in the first
        person is about the speaker, even if another peer said the same about itself, unless it is
        a quotation, or names the other one."""
        if not sentence.sources:
            return False
        text = sentence.text
        if not is_first_person(text) or names_any(text, self._names):
            return True
        return any(is_quoted(text, message.content) for message in sentence.sources)

    def _repeats_card_or_summary(self, sentence: _Sentence) -> bool:
        return bool(self._cards.repeating(sentence.text, MIN_OVERLAP)) or any(
            self._covered[line] < sentence.seq
            for line in self._summaries.repeating(sentence.text, MIN_OVERLAP)
        )

    def _repeating_conclusions(self, sentences: Mapping[int, _Sentence]) -> set[int]:
        terms = {number: _terms(sentence.text) for number, sentence in sentences.items()}
        every_hit: Sequence[TextHit] | None = None
        if len(sentences) > 1:
            hits = self._hits(set().union(*terms.values()), AT_ONCE)
            every_hit = hits if len(hits) < AT_ONCE else None
        candidates = {
            number: _with_terms(
                every_hit if every_hit is not None else self._hits(terms[number], CANDIDATES),
                terms[number],
                sentence.text,
            )
            for number, sentence in sentences.items()
        }
        conclusions = self._tx.conclusions.by_keys(sorted(set().union(*candidates.values())))
        return {
            number
            for number, sentence in sentences.items()
            if any(
                _is_older(conclusion, sentence.message_key)
                and shingles_overlap(sentence.text, conclusion.content) >= MIN_OVERLAP
                for conclusion in map(conclusions.get, candidates[number])
                if conclusion is not None
            )
        }

    def _hits(self, terms: Collection[str], limit: int) -> Sequence[TextHit]:
        """Conclusions about the others with these terms, those with the rarest terms first."""
        index_filter = IndexFilter(observed=self._others)
        return self._rt.storage.text.search(
            self._tx, CONCLUSION, self._session.workspace_key, sorted(terms), limit, index_filter
        ).hits


def _terms(text: str) -> frozenset[str]:
    """Long words and numbers: they are usually rare, and rare terms have few rows."""
    distinctive = sorted(
        set(analyse(text)), key=lambda term: (not term.isdecimal(), -len(term), term)
    )
    return frozenset(distinctive[:MAX_TERMS])


def _with_terms(hits: Sequence[TextHit], terms: Collection[str], text: str) -> list[int]:
    """The keys of the hits that a text may be an echo of. A text that lacks none of its shingles
    has all of its terms; a character that differs changes two terms of a script without spaces."""
    if not terms:
        return []
    lacking = int(shingle_count(text) * (1 - MIN_OVERLAP) + 1e-9)
    return ranking.keys_with(hits, terms, max(1, len(terms) - 2 * lacking))


def _is_older(conclusion: Conclusion, message_key: int) -> bool:
    """Whether a conclusion was derived from a message before the one with this key, or comes from a
    caller."""
    return not conclusion.message_keys or min(conclusion.message_keys) < message_key
