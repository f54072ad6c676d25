"""Detection of duplicate conclusions, and the choice of the one that stays.

Two conclusions are duplicates only if nothing that carries meaning differs: the same words in the
same order, the same numbers, the same names. A similarity measure alone would merge "I like tea"
with "I do not like tea", and merging conclusions that only look similar loses memories.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from memservice.domain.text.particulars import NUMBER
from memservice.spi.reasoner import Known
from memservice_extractive.language import UNSPACED, detect, fold, words
from memservice_extractive.lexicon import STOP, vocabulary
from memservice_extractive.sentences import MAX_LENGTH
from memservice_extractive.worth import core

_NAME = re.compile(r"(?<!^)(?<![.!?] )\b(?!I\b)[A-ZÀ-Þ][\w'’-]+")
# Words that do not change the meaning. All words that are not listed here count.
_FREE: dict[str, frozenset[str]] = {
    "en": vocabulary("a an the really very so just also actually is am are m s have ve got"),
    "de": vocabulary(
        "der die das den dem ein eine einen einem einer wirklich sehr so halt eben auch "
        "eigentlich ja mal"
    ),
}
_FREE_UNSPACED = {
    "zh": re.compile("非常|真的|很|(?:了|啊|呀|吧)(?=[。！!]*$)"),
    "ja": re.compile("とても|すごく|本当に|(?<![ねよ])[ねよ]++(?=[。！!]*$)"),
}
# The text after one of these words only adds to the text before it.
_ADDS = vocabulary("and because since which who where und weil da")


class Meaning(Struct, frozen=True):
    """Equal for texts with the same meaning."""

    words: tuple[str, ...]
    """All significant words in order, including names."""
    numbers: tuple[str, ...]
    """With separators of fractions, times and dates, which `words` does not contain."""


def meaning(text: str) -> Meaning:
    """The meaning of a sentence, without greetings, articles and emphasis."""
    language = detect(text)
    plain = (core(text, language, vocatives=False) if len(text) <= MAX_LENGTH else text) or text
    numbers = tuple(NUMBER.findall(plain))
    folded = fold(plain)
    if language in UNSPACED:
        folded = _FREE_UNSPACED[language].sub("", folded)
    free = _FREE.get(language, frozenset())
    significant = tuple(word for word in words(folded) if word not in free)
    if all(word in STOP.get(language, frozenset()) for word in significant):
        significant = tuple(words(fold(text)))
    return Meaning(significant, numbers)


def merges(conclusions: Sequence[Known]) -> Iterator[tuple[Known, Known, str]]:
    """(old, new, reason): `new` says everything that `old` says. A row is `old` at most once, and
    no `new` is also an `old`."""
    rows_by_meaning: dict[Meaning, list[Known]] = defaultdict(list)
    for row in conclusions:
        rows_by_meaning[meaning(row.content)].append(row)
    survivors = {meaning: _survivor(rows) for meaning, rows in rows_by_meaning.items()}
    fuller = _fuller(survivors)
    for row_meaning, rows in rows_by_meaning.items():
        survivor = survivors[row_meaning]
        fullest = row_meaning
        while fullest in fuller:  # each step leads to a longer text
            fullest = fuller[fullest]
        for row in rows:
            if fullest is not row_meaning:
                yield row, survivors[fullest], "more informative"
            elif row.uid != survivor.uid:
                yield (
                    row,
                    survivor,
                    "duplicate"
                    if words(row.content) == words(survivor.content)
                    else "near-duplicate",
                )


def _survivor(rows: Sequence[Known]) -> Known:
    """The newest row; of rows with the same time the longest, then the last."""
    return max(enumerate(rows), key=lambda item: (item[1].said_at, len(item[1].content), item[0]))[
        1
    ]


def _fuller(survivors: dict[Meaning, Known]) -> dict[Meaning, Meaning]:
    """For each statement that a later one repeats with an addition ("…, because it calms me"): the
    longest such later statement."""
    by_words = {meaning.words: meaning for meaning in survivors}
    fuller: dict[Meaning, Meaning] = {}
    for meaning, row in survivors.items():
        # each "and" costs a comparison with all words before it
        if len(row.content) > MAX_LENGTH:
            continue
        for index, word in enumerate(meaning.words):
            other = by_words.get(meaning.words[:index]) if word in _ADDS and index >= 3 else None
            if (
                other is None
                or other.numbers != meaning.numbers
                or survivors[other].said_at > row.said_at
            ):
                continue
            if _names(survivors[other].content) != _names(row.content):
                continue
            if other not in fuller or len(meaning.words) > len(fuller[other].words):
                fuller[other] = meaning
    return fuller


def _names(text: str) -> list[str]:
    """Words with a capital letter inside a sentence (in German every noun, so fewer statements
    merge)."""
    return [name.casefold() for name in _NAME.findall(text)]
