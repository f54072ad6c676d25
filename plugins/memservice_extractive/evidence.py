"""One piece of evidence for an answer, formatted: on one line, with its source."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from memservice.spi.toolbox import Evidence
from memservice_extractive.language import detect
from memservice_extractive.sentences import split

MAX_LENGTH = 600
"""Maximum characters of one piece. A longer text is cut to the sentences nearest to the
question."""


class Piece(Struct, frozen=True):
    text: str
    source: str
    """`[2023-05-08 10:00] bob` (UTC) for a message, `[2023-05-08] about bob` for a conclusion,
    `card of bob` for a line of a card."""
    is_earlier: bool = False
    """Whether a newer statement has another value for what the question asks."""
    restated: tuple[str, str] | None = None
    """The day, as in `source`, and a conclusion in the third person: `[2023-05-08]` and `bob plays
    chess.`; None where that is not safe."""

    def cited(self, earlier: str = "earlier") -> str:
        mark = f", {earlier}:" if self.is_earlier else ""
        if self.restated is not None:
            day, statement = self.restated
            return f"{day}{mark} {statement}"
        return f"{self.source}{mark or ':'} {self.text}"


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


def source_of(item: Evidence) -> str:
    if item.kind == "message":
        return source_of_message(item.said_at, item.author)
    day = day_of(item)
    return f"{day} about {item.about}" if item.about else day


def day_of(item: Evidence) -> str:
    return f"[{_utc(item.said_at):%Y-%m-%d}]"


def source_of_message(at: datetime, author: str | None) -> str:
    minute = f"[{_utc(at):%Y-%m-%d %H:%M}]"
    return f"{minute} {author}" if author else minute


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)
