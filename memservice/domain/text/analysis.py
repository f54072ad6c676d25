"""The text analysis for indexing and for queries.

Full-text engines store its terms unchanged and do not tokenise again, so that all backends find the
same rows.
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
"""The name of this analysis. It changes whenever the terms of any text change; an index built under
another name must be rebuilt."""

_SUFFIXES = frozenset(("s", "t", "d", "m", "re", "ve", "ll", "em", "all"))
"""English endings after an apostrophe that are not words."""


@cache
def _new_stemmer() -> Callable[[], Callable[[str], str]]:
    """A factory of stemmers. It is imported at first use, because the package loads all its
    languages."""
    from snowballstemmer.english_stemmer import EnglishStemmer

    return lambda: EnglishStemmer().stemWord


def _parts(word: str) -> tuple[str, ...]:
    """The words in a word with apostrophes: caroline's → caroline, isn't → is,
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
    """The terms of one segmented word: none for a stop word, usually one."""
    terms: list[str] = []
    for part in _parts(word) if "'" in word else (word,):
        if part in STOP_WORDS:
            continue
        part = part[:MAX_TERM]
        if len(part) > 2 and part.isascii() and part.isalpha():
            part = _new_stemmer()()(part)
        terms.append(part)
    return tuple(terms)


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

    NFKC, case and accents folded; without English stop words and English endings; with numbers;
    Chinese, Japanese, Korean, Thai and similar scripts as overlapping pairs. Punctuation and quotes
    only separate words.
    """
    terms: list[str] = []
    for word in segment(fold(text)):
        terms += _terms(word if len(word) <= MAX_TERM else word[:256])
    return terms


def own_text(name: str, at: datetime, content: str) -> str:
    """The text that is indexed for a message: `[8 May 2023] Caroline: text`, the date in UTC."""
    day = at.astimezone(UTC)
    return f"[{day.day} {MONTHS[day.month - 1]} {day.year}] {name}: {content}"
