"""Which language a text is in, as far as the other modules need to know, and its words."""

from __future__ import annotations

import re
from collections import Counter

from memservice.domain.text.normal_forms import normalize
from memservice.domain.text.scripts import HAN_LETTERS, HANGUL_SYLLABLES, KANA_LETTERS
from memservice_extractive.lexicon import FIRST_PERSON, QUESTION_WORDS, STOP

_KANA_CHAR = re.compile(f"[{KANA_LETTERS}]")
_HAN_CHAR = re.compile(f"[{HAN_LETTERS}]")
_HANGUL_CHAR = re.compile(f"[{HANGUL_SYLLABLES}]")
_SCRIPTS = (
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
_LATIN = re.compile(r"[a-zA-ZÀ-ɏ]")
_WORD = re.compile(rf"[{HAN_LETTERS}{KANA_LETTERS}]|[^\W_{HAN_LETTERS}{KANA_LETTERS}]+")
_ASCII_WORD = re.compile("[a-z0-9]+")


def _languages_of() -> dict[str, list[str]]:
    """Word → the languages that it speaks for, twice if it is a first person or asks as well."""
    languages: dict[str, list[str]] = {}
    for listed in (STOP, FIRST_PERSON, QUESTION_WORDS, QUESTION_WORDS):
        for name, listed_words in listed.items():
            for word in listed_words:
                languages.setdefault(word, []).append(name)
    return languages


_LANGUAGES_OF = _languages_of()

UNSPACED = frozenset({"zh", "ja"})
"""Languages written without spaces between words."""


def fold(text: str) -> str:
    """The form in which words are compared: NFKC, case folded."""
    return normalize("NFKC", text).casefold()


def end_of_words(text: str, more: str = "") -> int:
    """The end of the last letter, digit or character of `more`; 0 if there is none.

    Used in place of patterns that end in `\\W*$`: they scan the rest of a run of signs from each of
    its signs.
    """
    end = len(text)
    while end and not (text[end - 1].isalnum() or text[end - 1] in more):
        end -= 1
    return end


def words(text: str) -> list[str]:
    """Folded words in order. Apostrophes separate words, and each Chinese or Japanese character is
    a word."""
    if text.isascii():
        # The same words at half the cost: the other pattern tests each letter for Chinese.
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(fold(text))


def detect(text: str, usual: str = "en") -> str:
    """`ja`, `zh`, `ko`, `ru`, `el`, `ar`, `hi` by script; `de`, `en`, `es`, `fr`, `it`, `pt` by
    function words. `usual` if it is one of several that have the most of them."""
    script = None if text.isascii() else _script(text)
    if script:
        return script
    scores = dict.fromkeys(STOP, 0)
    counts = Counter(words(text))
    for word in counts.keys() & _LANGUAGES_OF.keys():
        for name in _LANGUAGES_OF[word]:
            scores[name] += counts[word]
    return max(scores, key=lambda name: (scores[name], name == usual))


def _script(text: str) -> str | None:
    """The language of a script that is not Latin."""
    latin = len(_LATIN.findall(text))
    kana, han = len(_KANA_CHAR.findall(text)), len(_HAN_CHAR.findall(text))
    if 3 * (kana + han) > latin and kana + han:
        return "ja" if 8 * kana >= han else "zh"
    if len(_HANGUL_CHAR.findall(text)) * 2 > latin:
        return "ko"
    return next(
        (name for name, script in _SCRIPTS if len(script.findall(text)) > latin),
        None,
    )
