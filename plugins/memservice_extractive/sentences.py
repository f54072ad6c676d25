"""Sentence boundaries: pysbd for languages with spaces, sentence-final marks for Chinese and
Japanese.

Every sentence is a substring of the text, so that stored statements are verbatim.
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
"""Maximum characters of a sentence. A longer one is cut at clause ends."""
_CHUNK = 600
"""Maximum characters per call of the segmenter, whose cost is quadratic."""

_SEGMENTED = frozenset({"en", "de", "fr", "es", "ru", "el", "ar", "hi"})
_OPAQUE = re.compile(r"https?://\S+|www\.\S+|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++|`[^`]+`")
_SIGNS = re.compile(r"[!?:;\u037e\u061f]{8,}+")
"""Runs of signs for which the segmenter is very slow."""
_FULL_STOPS = re.compile(r"(?:[。！？!?｡…]+|\.(?=\s|$))[」』”’）)\"']*\s*")
_PLAIN = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)])\s+")
_MARK = re.compile(r"[^\w\s,'’\"“”;:()/&+%$€£-]")
"""A sign that may be a boundary for the segmenter if words follow."""
_CLAUSE = re.compile(r"[;:,]\s|[；：，、。]|\s[–—-]\s")
_SPACE = re.compile(r"\s")
_CERTAIN_END = re.compile(r"(?<=\w{4})[.!?…]+[\"'”’)]*\s+|[。！？]+[」』”’）]*")  # not after "Dr."
_SIGN_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+(?=[^\sa-zß-öø-ÿа-яё])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[^\W\d_]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|approx|No|Nr|ca|bzw|Hr|Fr|Mme|Sra?|Dra?)"
    r"|\.[^\W\d_])\.$"
)
_DAY_END = re.compile(r"(?<![\d.])\d{1,2}\.\d{1,2}\.\s*$")
"""A day and a month, which end no sentence if a small letter follows: "am 30.5. hab ich"."""
_BRACKETS = {"「": "」", "『": "』", "“": "”"}
_MAX_CACHED = 1_000
"""Maximum characters of a text whose sentences are cached."""
_import_lock = threading.Lock()


@cache
def _segmenter_class() -> Any:
    # Its source has invalid escapes, which cause a warning when the module is compiled. Warning
    # filters are process-wide, hence the lock.
    with _import_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pysbd

        return pysbd.Segmenter


def split(text: str, language: str, *, exact: bool = True) -> list[str]:
    """Sentences of one paragraph, in order, trimmed, none longer than `MAX_LENGTH`, none empty.

    Not `exact`: ends are found by their signs, at a fraction of the segmenter's cost. It knows
    fewer abbreviations, and leaves a sentence that begins with a small letter with the one before.
    """
    sentences: list[str] = []
    segment = _segment if exact else _by_signs
    for chunk in _cut(text, _CHUNK, _CERTAIN_END):
        if language in UNSPACED:
            pieces = _by_full_stops(chunk)
        else:
            pieces = [
                part
                for sentence in segment(chunk, language)
                for part in _by_full_stops(sentence, "。！？｡")
            ]
        sentences.extend(
            part for piece in pieces for part in _cut(piece.strip(), MAX_LENGTH, _CLAUSE)
        )
    return [piece for piece in sentences if piece]


def _by_signs(text: str, language: str) -> list[str]:
    pieces, start = [], 0
    for end in _SIGN_END.finditer(text):
        if not _ABBREVIATION.search(text, max(start, end.start() - 8), end.start() + 1):
            pieces.append(text[start : end.end()])
            start = end.end()
    return [*pieces, text[start:]]


def _segment(text: str, language: str) -> Sequence[str]:
    if "\n" not in text.strip() and not _MARK.search(text, 0, end_of_words(text, "_")):
        return [text]  # most messages have one sentence, and the segmenter takes a millisecond
    return (
        _segmented_cached(text, language)
        if len(text) <= _MAX_CACHED
        else _segmented(text, language)
    )


@lru_cache(maxsize=2_048)
def _segmented_cached(text: str, language: str) -> tuple[str, ...]:
    """Cached: a message is split for its statements, and again for each of its summaries."""
    return tuple(_segmented(text, language))


def _segmented(text: str, language: str) -> list[str]:
    masked = _OPAQUE.sub(
        lambda m: (
            "x" * len(m.group().rstrip(".,;:!?")) + m.group()[len(m.group().rstrip(".,;:!?")) :]
        ),
        text,
    )
    masked = _SIGNS.sub(lambda m: "x" * (len(m.group()) - 3) + m.group()[-3:], masked)
    # A segmenter stores its current text, so threads cannot share one.
    parts: list[str] = _segmenter_class()(
        language=language if language in _SEGMENTED else "en", clean=False
    ).segment(masked)
    if "".join(parts) != masked:  # it changed the text, which happens with a few rare symbols
        return _PLAIN.split(text)
    sentences: list[str] = []
    start = 0
    for part in parts:
        if sentences and _DAY_END.search(sentences[-1]) and part[:1].islower():
            sentences[-1] += text[start : start + len(part)]
        else:
            sentences.append(text[start : start + len(part)])
        start += len(part)
    return sentences


def _by_full_stops(text: str, marks: str | None = None) -> list[str]:
    """Split after sentence-final marks outside brackets; with `marks`, only after those."""
    if marks and not any(mark in text for mark in marks):
        return [text]
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


def _cut(text: str, max_length: int, preferred: re.Pattern[str]) -> list[str]:
    """Pieces of at most `max_length` characters, cut in their second half after a `preferred`
    match, else after a clause or a word."""
    if len(text) <= max_length:
        return [text]
    pieces = []
    start, stop = 0, len(text.rstrip())
    while stop - start > max_length:
        cut = start + max_length
        for boundary in (preferred, _CLAUSE, _SPACE):
            boundaries = [
                match.end()
                for match in boundary.finditer(text, start + max_length // 2, start + max_length)
            ]
            if boundaries:
                cut = boundaries[-1]
                break
        pieces.append(text[start:cut].strip())
        start = cut
        while start < stop and text[start].isspace():
            start += 1
    return [*pieces, text[start:stop]]
