"""The evidence for an answer, formatted: each piece once, on one line, with its source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memservice.spi.reasoner import AnswerRequest
from memservice.spi.toolbox import Evidence
from memservice_extractive.language import detect, words
from memservice_extractive.sentences import split

PIECES = {"minimal": 3, "low": 8, "medium": 12, "high": 16, "max": 20}
"""Maximum pieces of evidence in an answer, by reasoning level."""
MAX_LENGTH = 600
"""Maximum characters of one piece. A longer text is cut to the sentences nearest to the
question."""


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    source: str
    """`[2023-05-08 10:00] bob` (UTC) for a message, `[2023-05-08] about bob` for a conclusion,
    `card of bob` for a line of a card."""

    @property
    def cited(self) -> str:
        return f"{self.source}: {self.text}"


def pieces(request: AnswerRequest) -> list[Piece]:
    """The best evidence, best first, then card lines and recent messages that share a word with the
    question."""
    query_terms = terms(request.question)
    pieces = [Piece(excerpt(item.content, query_terms), _source(item)) for item in request.evidence]
    for peer_id, lines in request.cards.items():
        pieces.extend(
            Piece(excerpt(line, query_terms), f"card of {peer_id}")
            for line in lines
            if terms(line) & query_terms
        )
    for message in reversed(request.recent):
        if terms(message.content) & query_terms:
            pieces.append(
                Piece(
                    excerpt(message.content, query_terms),
                    f"[{_minute(message.sent_at)}] {message.author}",
                )
            )
    return _first_of_each(pieces)[: PIECES.get(request.level, PIECES["low"])]


def terms(text: str) -> set[str]:
    """The terms of a text, as in search."""
    from memservice.domain.text.analysis import analyse

    return set(analyse(text))


def excerpt(content: str, query_terms: set[str]) -> str:
    """One line of at most `MAX_LENGTH` characters, with " … " in place of omitted sentences."""
    text = " ".join(content.split())
    if len(text) <= MAX_LENGTH:
        return text
    sentences = split(text, detect(text))
    order = sorted(
        range(len(sentences)),
        key=lambda index: (-len(terms(sentences[index]) & query_terms), index),
    )
    chosen: set[int] = set()
    remaining = MAX_LENGTH
    for index in order:
        if len(sentences[index]) + 3 <= remaining:
            chosen.add(index)
            remaining -= len(sentences[index]) + 3
    out, last = "", -1
    for index in sorted(chosen):
        out += ("" if not out else " " if index == last + 1 else " … ") + sentences[index]
        last = index
    return out or text[:MAX_LENGTH]


def _source(item: Evidence) -> str:
    if item.kind == "message":
        return (
            f"[{_minute(item.said_at)}] {item.author}"
            if item.author
            else f"[{_minute(item.said_at)}]"
        )
    return (
        f"[{_utc(item.said_at):%Y-%m-%d}] about {item.about}"
        if item.about
        else f"[{_utc(item.said_at):%Y-%m-%d}]"
    )


def _minute(at: datetime) -> str:
    return f"{_utc(at):%Y-%m-%d %H:%M}"


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


def _first_of_each(candidates: Iterable[Piece]) -> list[Piece]:
    keys: set[tuple[str, ...]] = set()
    pieces: list[Piece] = []
    for piece in candidates:
        key = tuple(words(piece.text)) or (piece.text,)
        if piece.text and key not in keys:
            keys.add(key)
            pieces.append(piece)
    return pieces


def cited(pieces: Sequence[Piece]) -> list[str]:
    return [piece.cited for piece in pieces]
