"""Sentence boundaries: pysbd for languages with spaces, sentence-final marks for Chinese and
Japanese.

Every sentence is a substring of the text, so that what is stored is what was said.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from memservice_extractive.language import UNSPACED, end_of_words

MAX_LENGTH = 500
"""Characters of one sentence; a longer one is cut at clause ends into several."""
_CHUNK = 600
"""Characters that the segmenter is given at once: its cost grows with the square."""

_SEGMENTED = frozenset({"en", "de", "fr", "es", "ru", "el", "ar", "hi"})
_OPAQUE = re.compile(r"https?://\S+|www\.\S+|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++|`[^`]+`")
_SIGNS = re.compile(r"[!?:;\u037e\u061f]{8,}+")
"""Runs that the segmenter is very slow at."""
_FULL_STOPS = re.compile(r"(?:[。！？!?｡…]+|\.(?=\s|$))[」』”’）)\"']*\s*")
_PLAIN = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)])\s+")
_MARK = re.compile(r"[^\w\s,'’\"“”;:()/&+%$€£-]")
"""A sign at which a segmenter might see a boundary, if there are words after it."""
_CLAUSE = re.compile(r"[;:,]\s|[；：，、。]|\s[–—-]\s")
_SPACE = re.compile(r"\s")
_SURE_END = re.compile(r"(?<=\w{4})[.!?…]+[\"'”’)]*\s+|[。！？]+[」』”’）]*")  # not after "Dr."
_BRACKETS = {"「": "」", "『": "』", "“": "”"}
_SHORT = 1_000
"""Longest text, in characters, whose sentences are remembered."""
_loading = threading.Lock()


@cache
def _segmenter_class() -> Any:
    # Its source has invalid escapes, which Python warns about whenever the module is compiled;
    # filters are process-wide, hence the lock.
    with _loading, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pysbd

        return pysbd.Segmenter


def split(text: str, language: str) -> list[str]:
    """Sentences of one paragraph, in order, trimmed, none longer than `MAX_LENGTH`, none empty."""
    found: list[str] = []
    for chunk in _cut(text, _CHUNK, _SURE_END):
        if language in UNSPACED:
            pieces = _by_full_stops(chunk)
        else:
            pieces = [
                part
                for sentence in _segment(chunk, language)
                for part in _by_full_stops(sentence, "。！？｡")
            ]
        found.extend(part for piece in pieces for part in _cut(piece.strip(), MAX_LENGTH, _CLAUSE))
    return [piece for piece in found if piece]


def _segment(text: str, language: str) -> Sequence[str]:
    if "\n" not in text.strip() and not _MARK.search(text, 0, end_of_words(text, "_")):
        return [text]  # most messages are one sentence, and the segmenter costs a millisecond
    return _remembered(text, language) if len(text) <= _SHORT else _segmented(text, language)


@lru_cache(maxsize=2_048)
def _remembered(text: str, language: str) -> tuple[str, ...]:
    """A message is split for its statements, and again for each summary that it goes into."""
    return tuple(_segmented(text, language))


def _segmented(text: str, language: str) -> list[str]:
    masked = _OPAQUE.sub(
        lambda m: (
            "x" * len(m.group().rstrip(".,;:!?")) + m.group()[len(m.group().rstrip(".,;:!?")) :]
        ),
        text,
    )
    masked = _SIGNS.sub(lambda m: "x" * (len(m.group()) - 3) + m.group()[-3:], masked)
    # A segmenter keeps the text that it works on, so threads do not share one.
    parts: list[str] = _segmenter_class()(
        language=language if language in _SEGMENTED else "en", clean=False
    ).segment(masked)
    if "".join(parts) != masked:  # it lost or changed something, as it does with a few rare symbols
        return _PLAIN.split(text)
    sentences, start = [], 0
    for part in parts:
        sentences.append(text[start : start + len(part)])
        start += len(part)
    return sentences


def _by_full_stops(text: str, marks: str | None = None) -> list[str]:
    """Split after sentence-final marks outside brackets; with `marks`, only after those."""
    pieces: list[str] = []
    depth: list[str] = []
    last = {closing: text.rfind(closing) for closing in _BRACKETS.values()}
    start = index = 0
    while index < len(text):
        char = text[index]
        closes = bool(depth) and char == depth[-1]
        if closes:
            depth.pop()
        elif char in _BRACKETS and last[_BRACKETS[char]] > index:
            depth.append(_BRACKETS[char])
        stop = None if depth or (marks and char not in marks) else _FULL_STOPS.match(text, index)
        if stop:
            pieces.append(text[start : stop.end()])
            start = index = stop.end()
            continue
        index += 1
        # A quotation with its own full stop ends the sentence, unless the sentence goes on:
        # 「…。」と言った.
        if (
            closes
            and not depth
            and not marks
            and text[index - 2] in "。！？"
            and text[index : index + 1] not in "と，、,"
        ):
            pieces.append(text[start:index])
            start = index
    pieces.append(text[start:])
    return pieces


def _cut(text: str, longest: int, preferred: re.Pattern[str]) -> list[str]:
    """Pieces of at most `longest` characters, cut in the second half after what is `preferred`,
    else after a clause or a word."""
    if len(text) <= longest:
        return [text]
    pieces = []
    start, stop = 0, len(text.rstrip())
    while stop - start > longest:
        at = start + longest
        for end in (preferred, _CLAUSE, _SPACE):
            ends = [
                match.end() for match in end.finditer(text, start + longest // 2, start + longest)
            ]
            if ends:
                at = ends[-1]
                break
        pieces.append(text[start:at].strip())
        start = at
        while start < stop and text[start].isspace():
            start += 1
    return [*pieces, text[start:stop]]
