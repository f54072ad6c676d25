"""What an answer may rest on, made ready to be shown: each piece once, on one line, with its
source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memservice.spi.reasoner import AnswerRequest
from memservice.spi.toolbox import Evidence
from memservice_extractive.language import detect, words
from memservice_extractive.sentences import split

PIECES = {"minimal": 3, "low": 8, "medium": 12, "high": 16, "max": 20}
"""Pieces of evidence an answer uses, by reasoning level."""
MAX_LENGTH = 600
"""Characters of one piece; of a longer text the sentences nearest to the question are shown."""


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
    wanted = terms(request.question)
    pieces = [Piece(excerpt(item.content, wanted), _source(item)) for item in request.evidence]
    for peer_id, lines in request.cards.items():
        pieces.extend(
            Piece(excerpt(line, wanted), f"card of {peer_id}")
            for line in lines
            if terms(line) & wanted
        )
    for message in reversed(request.recent):
        if terms(message.content) & wanted:
            pieces.append(
                Piece(
                    excerpt(message.content, wanted),
                    f"[{_minute(message.sent_at)}] {message.author}",
                )
            )
    return _first_of_each(pieces)[: PIECES.get(request.level, PIECES["low"])]


def terms(text: str) -> set[str]:
    """Terms by which texts are compared, as search sees them."""
    from memservice.domain.text.analysis import analyse

    return set(analyse(text))


def excerpt(content: str, wanted: set[str]) -> str:
    """One line of at most `MAX_LENGTH` characters; left-out sentences show as " … "."""
    text = " ".join(content.split())
    if len(text) <= MAX_LENGTH:
        return text
    sentences = split(text, detect(text))
    order = sorted(range(len(sentences)), key=lambda at: (-len(terms(sentences[at]) & wanted), at))
    chosen: set[int] = set()
    remaining = MAX_LENGTH
    for at in order:
        if len(sentences[at]) + 3 <= remaining:
            chosen.add(at)
            remaining -= len(sentences[at]) + 3
    out, last = "", -1
    for at in sorted(chosen):
        out += ("" if not out else " " if at == last + 1 else " … ") + sentences[at]
        last = at
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


def _first_of_each(found: Iterable[Piece]) -> list[Piece]:
    seen: set[tuple[str, ...]] = set()
    pieces: list[Piece] = []
    for piece in found:
        key = tuple(words(piece.text)) or (piece.text,)
        if piece.text and key not in seen:
            seen.add(key)
            pieces.append(piece)
    return pieces


def cited(pieces: Sequence[Piece]) -> list[str]:
    return [piece.cited for piece in pieces]
