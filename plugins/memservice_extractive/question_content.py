"""What a question is about: topics, and the stems of its other words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from msgspec import Struct

from memservice.domain.text.folding import fold
from memservice.domain.text.scripts import HIRAGANA_LETTERS
from memservice.domain.text.stems import stem
from memservice_extractive import topics
from memservice_extractive.asked_values import asks_time
from memservice_extractive.language import UNSPACED
from memservice_extractive.lexicon import QUESTION_WORDS, STOP
from memservice_extractive.own_names import forms_pattern

WORD = re.compile(r"[^\W_]+")
COVERED = {
    "deadline": ("delivery",),
    "home": ("delivery", "email", "phone", "profession"),
    "money": ("employer", "profession"),
    "phone": ("device",),
    "friend": ("partner",),
    "partner": ("pets",),
    "profession": ("relation",),
}
"""Topics whose words can be part of an expression of another: "address" in "e-mail address"."""
BROADER = {
    "allergy": frozenset({"food", "drink", "health"}),
    "delivery": frozenset({"home"}),
    "medication": frozenset({"health"}),
    "travel": frozenset({"car", "commute"}),
    "wedding": frozenset({"partner"}),
}
"""Topics that only tell the kind of what another one asks for: "What food is she allergic to?"."""
ALIKE = (
    frozenset({"employer", "profession"}),
    frozenset({"food", "diet"}),
    frozenset({"leisure", "sport"}),
    frozenset({"car", "commute"}),
)
"""Topics that a question names together for one thing: "What does she work as?"."""
MIN_PART = 5
"""Letters of a stem that can be a form or a part of another."""
_SHARED_PART = 0.7
RELATION = "relation"
"""The topic of questions such as "Who is Vera?", which statements that name her and a relative
answer."""
_HIRAGANA_RUN = re.compile(f"[{HIRAGANA_LETTERS}]+")
_RUN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")
"""Successive characters of one kind, in Chinese and Japanese."""
_FREE_DAYS = re.compile(
    r"week-?ends?|wochenende\w?|fin(?:es)? de semana|fine settimana|fins? de semana"
    r"|выходн\w+|周末|週末|休日|休みの日"
)
"""The days of leisure, for folded text."""
_FAVOURITE = re.compile(r"(?<![^\W_])lieblings(?=[^\W\d_]{3})")


class Content(Struct, frozen=True):
    """What a sentence or question is about."""

    topics: frozenset[str]
    choices: Sequence[frozenset[str]]
    """Its topics by the words that stand for them: "phone" can be a number or a device, and a
    statement about either is about it."""
    words: frozenset[str]
    """Stems of its other words that carry information; for Chinese and Japanese pairs of
    characters."""
    first: frozenset[str]
    """For Chinese and Japanese, those of its words at its beginning, which can be a name."""
    relatives: frozenset[str]
    """Its words for relatives that share the topic `relatives`, such as an aunt and a nephew:
    statements about one of them do not answer questions about another."""


def _mask(pattern: re.Pattern[str], folded: str, mask: bytearray) -> bool:
    """Mark the characters of all matches; whether there is one."""
    has_match = False
    for match in pattern.finditer(folded):
        has_match = True
        mask[match.start() : match.end()] = b"\1" * (match.end() - match.start())
    return has_match


def content_asked(folded: str, language: str, names: Collection[str]) -> Content:
    cues = topics.cues(language)
    length = len(folded)
    folded = cues.with_heads(folded)
    mask = bytearray(len(folded))
    spans = {
        topic: [match.span() for match in pattern.finditer(folded)]
        for topic, pattern in cues.questions.items()
    }
    spans = {topic: each for topic, each in spans.items() if each}
    for start, end in (span for each in spans.values() for span in each):
        mask[start:end] = b"\1" * (end - start)
    for topic in spans.keys() & COVERED.keys():
        longer = [span for each in COVERED[topic] for span in spans.get(each, ())]
        spans[topic] = [span for span in spans[topic] if not _is_within(span, longer)]
    spans = {topic: each for topic, each in spans.items() if each}
    if spans.get("wedding") == spans.get("partner") and not asks_time(folded, language):
        spans.pop("wedding", None)  # "Whom is she married to?", not "When does she marry?"
    for topic in spans.keys() & BROADER.keys():
        spans = {each: matches for each, matches in spans.items() if each not in BROADER[topic]}
    if ("brother" in spans) != ("sister" in spans):
        spans.pop("siblings", None)  # a statement about the other is no answer
    if len(spans) > 1:
        spans.pop(RELATION, None)
    _mask(cues.weak, folded, mask)
    if language in UNSPACED:
        for name in names:
            _mask(re.compile(re.escape(name)), folded, mask)
    elif own := forms_pattern({word for name in names for word in WORD.findall(name)}):
        _mask(own, folded, mask)
    rest = "".join(" " if mask[index] else char for index, char in enumerate(folded[:length]))
    words = frozenset(rest_stems(rest, language))
    if words and all(map(_FREE_DAYS.fullmatch, _texts(folded, spans.get("leisure", ())))):
        spans.pop("leisure", None)  # only when something is done, which other words tell
    relatives = frozenset(folded[start:end] for start, end in spans.get("relatives", ()))
    if any(map(topics.ANY_RELATIVE.match, relatives)):
        relatives = frozenset()
    beginning, _, _ = rest.partition(" ")
    first = rest_stems(beginning, language) if language in UNSPACED else ()
    return Content(frozenset(spans), _choices(spans), words, frozenset(first), relatives)


def _texts(folded: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    return [folded[start:end] for start, end in spans]


def parted(folded: str, language: str) -> str:
    """The text with a space between German "Lieblings" and what is liked, so that both are read."""
    return _FAVOURITE.sub(r"\g<0> ", folded) if language == "de" else folded


def _is_within(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    """Whether it is part of a longer one."""
    return any(a <= span[0] and span[1] <= b and (a, b) != span for a, b in others)


def _choices(spans: Mapping[str, Sequence[tuple[int, int]]]) -> list[frozenset[str]]:
    """The topics that share a word of the question, together; a relative and what is asked about it
    stay apart."""
    choices: list[tuple[set[str], list[tuple[int, int]]]] = []
    for topic, topic_spans in spans.items():
        joined, joined_spans = {topic}, list(topic_spans)
        separate = []
        for choice in choices:
            is_alike = (topic in topics.RELATIVES) == (not choice[0].isdisjoint(topics.RELATIVES))
            if is_alike and any(a < d and c < b for a, b in joined_spans for c, d in choice[1]):
                joined |= choice[0]
                joined_spans += choice[1]
            else:
                separate.append(choice)
        choices = [*separate, (joined, joined_spans)]
    matches = [frozenset(each) for each, _ in choices]
    for alike in ALIKE:
        together = [each for each in matches if each & alike]
        if len(together) > 1:
            matches = [each for each in matches if not each & alike]
            matches.append(frozenset[str]().union(*together))
    return matches


def rest_stems(folded: str, language: str) -> set[str]:
    if language in UNSPACED:
        # A run of Hiragana alone is grammar.
        runs = [run for run in _RUN.findall(folded) if not _HIRAGANA_RUN.fullmatch(run)]
        return {part for run in runs for part in _parts(run)}
    stop = folded_stop(language)
    return {stem(word, language) for word in WORD.findall(folded) if word not in stop}


def stems_of(sentence: str, language: str) -> set[str]:
    folded = fold(sentence)
    if language in UNSPACED:
        return _pairs(folded)
    return {stem(word, language) for word in WORD.findall(folded)}


def _parts(run: str) -> set[str]:
    """A run of Latin letters and digits as a whole, another run as overlapping pairs."""
    if run.isascii() or len(run) == 1:
        return {run}
    return {run[index : index + 2] for index in range(len(run) - 1)}


def _pairs(folded: str) -> set[str]:
    """All parts of a text in Chinese or Japanese, and its single characters."""
    pairs = {pair for run in _RUN.findall(folded) for pair in _parts(run)}
    return pairs | {char for char in folded if not char.isascii()}


@lru_cache(maxsize=16)
def folded_stop(language: str) -> frozenset[str]:
    listed = STOP.get(language, STOP["en"]) | QUESTION_WORDS.get(language, frozenset())
    return frozenset(part for word in listed for part in WORD.findall(fold(word))) | {"s"}


def share_beginning(one: str, other: str) -> bool:
    """Whether two stems have most of their letters in common, from the first on."""
    pairs = zip(one, other, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared >= MIN_PART and shared >= _SHARED_PART * max(len(one), len(other))
