"""The echo guard: what the service itself put into a conversation is not learnt again as somebody's
own words.

An agent is given conclusions, summaries and cards, and repeats them. A sentence that repeats what
was known about *another* peer when it was said is such an echo. Two people may say the same of
themselves: a sentence in the first person is an echo only if it is quoted, or names the other one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memservice.domain import ranking
from memservice.domain.filters import equals
from memservice.domain.records import Card, Conclusion, Message, Peer, Session
from memservice.domain.text.analysis import analyse
from memservice.domain.text.shingles import ShingleIndex, shingles_overlap
from memservice.pipeline.derive.perspective import is_first_person, is_quoted, names_any
from memservice.runtime import Runtime
from memservice.services.indexing import CONCLUSION
from memservice.services.peers import display_name
from memservice.spi.index_filter import IndexFilter
from memservice.spi.reasoner import Statement
from memservice.spi.storage import Transaction

SAME = 0.9
"""The share of a sentence's shingles that is found again in an echo."""
CANDIDATES = 8
"""Conclusions that a sentence is compared with, where each is looked up."""
MAX_TERMS = 4
"""Terms that candidates are looked up by. An echo has nearly all of a sentence's terms, so a few
that tell much are enough."""
READ_PER_LOOKUP = 25
"""Conclusions that are read in about the time of one look-up."""
_SENTENCES = re.compile(r"(?<=[.!?])(?=\s)|(?<=[.!?][\"'”»])(?=\s)|(?<=[。！？\n])")
"""Between two sentences, or two lines."""


class EchoGuard:
    """For statements by one peer in one session. Lives inside one view."""

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
        self._cards = self._card_lines(tuple(member.peer for member in others))
        self._summaries = self._summary_lines()
        self._read: tuple[ShingleIndex, list[Conclusion]] | None = None

    def _card_lines(self, others: tuple[str, ...]) -> list[str]:
        if not others:
            return []
        observer_keys = (*self._others, self._speaker.key)
        cards = self._tx.rows.page(Card, equals(observer_key=observer_keys, target=others))
        return [line for card in cards for line in card.lines]

    def _summary_lines(self) -> list[tuple[int, str]]:
        """Lines of the session's summaries that are not the speaker's own, with the seq up to which
        they were known."""
        found = self._tx.summaries.of_session(self._session.key)
        covered = self._tx.messages.by_keys([summary.message_key for summary in found.values()])
        own = f"{self._speaker.slug}:"
        return [
            (covered[summary.message_key].seq, line)
            for summary in found.values()
            if summary.message_key in covered
            for line in summary.content.splitlines()
            if not line.startswith(own)
        ]

    def expect(self, statements: int) -> None:
        """So many statements will be asked about: for many, everything that is held about the
        others is read once, if that is less."""
        collections = (
            self._tx.conclusions.collections(
                self._session.workspace_key, equals(observed_key=self._others)
            )
            if self._others
            else []
        )
        if (
            sum(collection.explicit_count for collection in collections)
            > statements * READ_PER_LOOKUP
        ):
            return
        conclusions = (
            self._tx.conclusions.page(
                self._session.workspace_key, equals(observed_key=self._others), limit=None
            )
            if self._others
            else []
        )
        self._read = ShingleIndex(conclusion.content for conclusion in conclusions), conclusions

    def without(self, message: Message) -> Message:
        """The message without its sentences that only repeat what was known about others before."""
        parts = _SENTENCES.split(message.content)
        own = [
            part
            for part in parts
            if not part.strip() or not self.repeats(Statement(part, (message.key,)), [message])
        ]
        return message if len(own) == len(parts) else replace(message, content="".join(own).strip())

    def repeats(self, statement: Statement, messages: Sequence[Message]) -> bool:
        """Does the statement only repeat what was known about others before it was said?"""
        if not self._others:
            return False
        sources = [message for message in messages if message.key in statement.message_keys]
        if not sources:
            return False
        seq, key = min(message.seq for message in sources), min(message.key for message in sources)
        text = statement.content
        if not self._is_about_others(text, sources):
            return False
        if any(shingles_overlap(text, line) >= SAME for line in self._cards):
            return True
        if any(
            known < seq and shingles_overlap(text, line) >= SAME for known, line in self._summaries
        ):
            return True
        return self._repeats_conclusion(text, key)

    def _is_about_others(self, text: str, sources: Sequence[Message]) -> bool:
        """Whether a sentence may be about somebody else than its speaker. What people say of
        themselves in the first person is theirs, though somebody else said the same of itself;
        unless they quote it, or name the other one."""
        if not is_first_person(text) or names_any(text, self._names):
            return True
        return any(is_quoted(text, message.content) for message in sources)

    def _repeats_conclusion(self, text: str, said: int) -> bool:
        if self._read is not None:
            shingle_index, conclusions = self._read
            return any(
                _known_before(conclusions[index], said)
                for index in shingle_index.repeating(text, SAME)
            )
        # Long words and numbers are rare as a rule, and rare terms have few rows to look at.
        terms = tuple(
            sorted(set(analyse(text)), key=lambda term: (not term.isdecimal(), -len(term), term))[
                :MAX_TERMS
            ]
        )
        index_filter = IndexFilter(observed=self._others)
        matches = self._rt.storage.text.search(
            self._tx, CONCLUSION, self._session.workspace_key, terms, CANDIDATES * 8, index_filter
        )
        best = ranking.ranked(ranking.bm25(matches), CANDIDATES)
        found = self._tx.conclusions.by_keys(best).values()
        return any(
            _known_before(conclusion, said) and shingles_overlap(text, conclusion.content) >= SAME
            for conclusion in found
        )


def _known_before(conclusion: Conclusion, said: int) -> bool:
    """Was it derived from what came before the message of that key, or told to the service?"""
    return not conclusion.message_keys or min(conclusion.message_keys) < said
