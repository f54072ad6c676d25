"""Splits a long text into pieces that fit into a message."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from msgspec import Struct

_BREAKS = (("\n\n", "\n\r\n"), ("\n",), (". ", "。"), (" ",))
"""The breaks after which a text is cut, the best first: a blank line, the end of a line, of a
sentence, of a word."""
_MAX_STEP_BACK = 64
"""Characters by which a cut inside a word may move back to keep a letter and its marks together."""


class Chunk(Struct, frozen=True):
    """A piece, and its range in the whole text: characters from `start` up to `end`, exclusive."""

    start: int
    end: int
    text: str


def chunks(text: str, size: int) -> Iterator[Chunk]:
    """The text in pieces of at most `size` characters. Joined, they are the text. An empty text is
    one empty piece."""
    start = 0
    while len(text) - start > size:
        end = _cut(text, start, start + size)
        yield Chunk(start, end, text[start:end])
        start = end
    yield Chunk(start, len(text), text[start:])


def _cut(text: str, start: int, limit: int) -> int:
    """The position of the cut, after `start` and not after `limit`: behind the last break of the
    best kind."""
    for alike in _BREAKS:
        ends = [
            index + len(mark) for mark in alike if (index := text.rfind(mark, start, limit)) >= 0
        ]
        if ends:
            return max(ends)
    for end in range(limit, max(start, limit - _MAX_STEP_BACK), -1):
        if not _continues(text, end):
            return end
    return limit


def _continues(text: str, at: int) -> bool:
    """Whether the character at this position belongs to the one before it."""
    character = text[at]
    return (
        unicodedata.combining(character) > 0
        or character in "\u200d\ufe0f"
        or text[at - 1] == "\u200d"
    )
