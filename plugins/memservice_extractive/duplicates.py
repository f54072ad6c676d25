"""Which stored conclusions say the same, and which of them stays.

Two say the same only if nothing that carries meaning differs: the same words in the same order, the
same numbers, the same names. A measure of likeness alone would merge "I like tea" with "I do not
like tea", and merging what merely looks alike loses memories.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memservice.spi.reasoner import Known
from memservice_extractive.language import UNSPACED, detect, fold, words
from memservice_extractive.lexicon import STOP, vocabulary
from memservice_extractive.sentences import MAX_LENGTH
from memservice_extractive.worth import core

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME = re.compile(r"(?<!^)(?<![.!?] )\b(?!I\b)[A-ZÀ-Þ][\w'’-]+")
# Words that change nothing when they come or go. Whatever is not listed counts.
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
# After these the rest only adds to what was said before them.
_ADDS = vocabulary("and because since which who where und weil da")


@dataclass(frozen=True, slots=True)
class Meaning:
    """Equal for texts that say the same."""

    words: tuple[str, ...]
    """All that matter, in order, so the names too."""
    numbers: tuple[str, ...]
    """With their signs of fraction, time and date, which words leave out."""


def meaning(text: str) -> Meaning:
    """What a sentence says, without greetings, articles and emphasis."""
    language = detect(text)
    plain = (core(text, language, vocatives=False) if len(text) <= MAX_LENGTH else text) or text
    numbers = tuple(_NUMBER.findall(plain))
    folded = fold(plain)
    if language in UNSPACED:
        folded = _FREE_UNSPACED[language].sub("", folded)
    free = _FREE.get(language, frozenset())
    kept = tuple(word for word in words(folded) if word not in free)
    if all(word in STOP.get(language, frozenset()) for word in kept):
        kept = tuple(words(fold(text)))
    return Meaning(kept, numbers)


def merges(known: Sequence[Known]) -> Iterator[tuple[Known, Known, str]]:
    """(old, new, reason): `old` says nothing that `new` does not. `new` is never itself an `old`; a
    row is an `old` at most once."""
    alike: dict[Meaning, list[Known]] = defaultdict(list)
    for row in known:
        alike[meaning(row.content)].append(row)
    kept = {meaning: _survivor(rows) for meaning, rows in alike.items()}
    fuller = _fuller(kept)
    for meant, rows in alike.items():
        stays = kept[meant]
        end = meant
        while end in fuller:  # each step is to a longer text
            end = fuller[end]
        for row in rows:
            if end is not meant:
                yield row, kept[end], "more informative"
            elif row.uid != stays.uid:
                yield (
                    row,
                    stays,
                    "duplicate" if words(row.content) == words(stays.content) else "near-duplicate",
                )


def _survivor(rows: Sequence[Known]) -> Known:
    """The newest; among those of one moment the longest, then the last."""
    return max(enumerate(rows), key=lambda item: (item[1].said_at, len(item[1].content), item[0]))[
        1
    ]


def _fuller(kept: dict[Meaning, Known]) -> dict[Meaning, Meaning]:
    """For a statement that a later one repeats and only adds to ("…, because it calms me"): that
    later one, the longest."""
    short = {meaning.words: meaning for meaning in kept}
    found: dict[Meaning, Meaning] = {}
    for meaning, row in kept.items():
        # each "and" would be a comparison with all that stands before it
        if len(row.content) > MAX_LENGTH:
            continue
        for index, word in enumerate(meaning.words):
            other = short.get(meaning.words[:index]) if word in _ADDS and index >= 3 else None
            if (
                other is None
                or other.numbers != meaning.numbers
                or kept[other].said_at > row.said_at
            ):
                continue
            if _names(kept[other].content) != _names(row.content):
                continue
            if other not in found or len(meaning.words) > len(found[other].words):
                found[other] = meaning
    return found


def _names(text: str) -> list[str]:
    """Words with a capital letter inside a sentence (in German every noun: there fewer merge)."""
    return [name.casefold() for name in _NAME.findall(text)]
