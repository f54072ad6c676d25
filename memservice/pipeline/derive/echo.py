"""The echo guard: text of the service in a conversation does not become a conclusion about its
speaker.

An agent reads conclusions, summaries and cards, and repeats them. An echo is a sentence that
repeats stored text about *another* peer, if that text is older than the sentence. Two people may
say the same of themselves: a sentence in the first person is an echo only if it is a quotation, or
names the other one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

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

MIN_OVERLAP = 0.9
"""Share of a sentence's shingles in the stored text, from which it is an echo."""
CANDIDATES = 8
"""Conclusions that a sentence is compared with after a search."""
MAX_TERMS = 4
"""Terms of a search for candidates. An echo has nearly all terms of a sentence, so a few
distinctive ones are enough."""
ROWS_PER_SEARCH = 25
"""Reading this number of conclusions takes about the time of one search."""
_SENTENCES = re.compile(r"(?<=[.!?])(?=\s)|(?<=[.!?][\"'”»])(?=\s)|(?<=[。！？\n])")
"""Between two sentences, or two lines."""


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

    def prepare(self, statements: int) -> None:
        """Prepare for checking this number of statements: if it takes less time than one search per
        statement, read all conclusions about the others at once."""
        collections = (
            self._tx.conclusions.collections(
                self._session.workspace_key, equals(observed_key=self._others)
            )
            if self._others
            else []
        )
        if (
            sum(collection.explicit_count for collection in collections)
            > statements * ROWS_PER_SEARCH
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
        """The message without the sentences that only repeat older stored text about others."""
        parts = _SENTENCES.split(message.content)
        own = [
            part
            for part in parts
            if not part.strip() or not self.repeats(Statement(part, (message.key,)), [message])
        ]
        return message if len(own) == len(parts) else replace(message, content="".join(own).strip())

    def repeats(self, statement: Statement, messages: Sequence[Message]) -> bool:
        """Whether the statement only repeats stored text about others that is older than its
        messages."""
        if not self._others:
            return False
        sources = [message for message in messages if message.key in statement.message_keys]
        if not sources:
            return False
        seq, key = min(message.seq for message in sources), min(message.key for message in sources)
        text = statement.content
        if not self._is_about_others(text, sources):
            return False
        if any(shingles_overlap(text, line) >= MIN_OVERLAP for line in self._cards):
            return True
        if any(
            covered < seq and shingles_overlap(text, line) >= MIN_OVERLAP
            for covered, line in self._summaries
        ):
            return True
        return self._repeats_conclusion(text, key)

    def _is_about_others(self, text: str, sources: Sequence[Message]) -> bool:
        """Whether a sentence may be about another peer than its speaker. A sentence in the first
        person is about the speaker, even if another peer said the same about itself, unless it is
        a quotation, or names the other one."""
        if not is_first_person(text) or names_any(text, self._names):
            return True
        return any(is_quoted(text, message.content) for message in sources)

    def _repeats_conclusion(self, text: str, message_key: int) -> bool:
        if self._read is not None:
            shingle_index, conclusions = self._read
            return any(
                _is_older(conclusions[index], message_key)
                for index in shingle_index.repeating(text, MIN_OVERLAP)
            )
        # Long words and numbers are usually rare, and rare terms have few rows.
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
        candidates = self._tx.conclusions.by_keys(best).values()
        return any(
            _is_older(conclusion, message_key)
            and shingles_overlap(text, conclusion.content) >= MIN_OVERLAP
            for conclusion in candidates
        )


def _is_older(conclusion: Conclusion, message_key: int) -> bool:
    """Whether a conclusion was derived from a message before the one with this key, or comes from a
    caller."""
    return not conclusion.message_keys or min(conclusion.message_keys) < message_key
