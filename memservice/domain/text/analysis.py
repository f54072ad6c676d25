"""The one text analysis: what every full-text engine indexes, and what every query is turned into.

Engines store the terms as they are and never tokenise again, so that all backends find the same
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache

from memservice.domain.text.dates import NamedDate, dates_named
from memservice.domain.text.folding import MAX_TERM, fold, segment
from memservice.domain.text.names import candidate_name_tokens, name_tokens, without_names
from memservice.domain.text.words import CONTRACTIONS, MONTHS, ORDINARY_WORDS, STOP_WORDS

__all__ = [
    "ANALYSER",
    "MAX_TERM",
    "ORDINARY_WORDS",
    "NamedDate",
    "analyse",
    "candidate_name_tokens",
    "dates_named",
    "name_tokens",
    "own_text",
    "without_names",
    "words",
]

ANALYSER = "english-1"
"""Names this analysis; it changes whenever the terms of any text change, and an index made under
another name must be rebuilt."""

_SUFFIXES = frozenset(("s", "t", "d", "m", "re", "ve", "ll", "em", "all"))
"""What follows an apostrophe in English without being a word."""


@cache
def _new_stemmer() -> Callable[[], Callable[[str], str]]:
    """Makes stemmers. Imported at first use: the package loads all of its languages."""
    from snowballstemmer.english_stemmer import EnglishStemmer

    return lambda: EnglishStemmer().stemWord


def _parts(word: str) -> tuple[str, ...]:
    """A word with apostrophes as the words that it holds: caroline's → caroline, isn't → is,
    l'amour → amour, o'brien → o, brien."""
    if word in CONTRACTIONS:
        return ()
    if word.endswith("n't"):
        return (word[:-3],)
    head, *tail = word.split("'")
    pieces = [head, *(piece for piece in tail if piece not in _SUFFIXES)]
    if len(pieces) > 1 and pieces[0] in ("l", "d", "j", "n", "m", "s", "c", "t", "qu"):
        pieces = pieces[1:]
    return tuple(piece for piece in pieces if piece)


@lru_cache(maxsize=65536)
def _terms(word: str) -> tuple[str, ...]:
    """The terms of one segmented word: none for a stop word, one as a rule."""
    found: list[str] = []
    for part in _parts(word) if "'" in word else (word,):
        if part in STOP_WORDS:
            continue
        part = part[:MAX_TERM]
        if len(part) > 2 and part.isascii() and part.isalpha():
            part = _new_stemmer()()(part)
        found.append(part)
    return tuple(found)


def words(text: str) -> list[str]:
    """Folded words of the text in order, before stop words and stemming; scripts without spaces as
    overlapping pairs."""
    return [
        part[:MAX_TERM]
        for word in segment(fold(text))
        for part in (_parts(word[:256]) if "'" in word else (word,))
    ]


def analyse(text: str) -> list[str]:
    """The terms of a text in order, with repetitions: letters and digits only, at most 64
    characters each.

    NFKC, case and accents folded; English stop words out and English endings off; numbers kept;
    Chinese, Japanese, Korean, Thai and their like as overlapping pairs. Punctuation and quotes
    separate words and mean nothing else.
    """
    terms: list[str] = []
    for word in segment(fold(text)):
        terms += _terms(word if len(word) <= MAX_TERM else word[:256])
    return terms


def own_text(name: str, at: datetime, content: str) -> str:
    """What full text indexes of a message: `[8 May 2023] Caroline: text`, the date in UTC."""
    day = at.astimezone(UTC)
    return f"[{day.day} {MONTHS[day.month - 1]} {day.year}] {name}: {content}"
