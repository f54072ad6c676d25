"""Facts of fixed form that a sentence states about its speaker: the kind of card line, and the slot
whose earlier value the fact can replace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from memservice_extractive import topics
from memservice_extractive.countries import is_large
from memservice_extractive.fact_forms import CARD_FORMS, SLOT_FORMS
from memservice_extractive.language import UNSPACED, detect
from memservice_extractive.more_fact_forms import MORE_CARD_FORMS, MORE_SLOT_FORMS
from memservice_extractive.sentences import MAX_LENGTH
from memservice_extractive.worth import core, judge, without_quotations

IDENTITY, ATTRIBUTE, RELATIONSHIP, INSTRUCTION = (
    "IDENTITY",
    "ATTRIBUTE",
    "RELATIONSHIP",
    "INSTRUCTION",
)
CARD_KINDS = (IDENTITY, ATTRIBUTE, RELATIONSHIP, INSTRUCTION)

_TIME_ADVERB = re.compile(
    r"^(?:now|currently|actually|these days|as of \w+|well|by the way"
    r"|jetzt|inzwischen|mittlerweile|aktuell|derzeit|现在|目前|今は|現在)[,，、]?\s*",
    re.I,
)
_MULTIPLE = re.compile(r"\b(?:and|or|und|oder|between|both|sowie)\b|[/&]|[和或]")
_PROPER = re.compile(
    r"(?:(?i:the|der|den|dem|die) )?[A-ZÀ-Þ0-9\u0370-\U0002ffff]\S*"
    r"(?: (?:of|de|del|da|do|la|le|los|las|el|am|an|der|im|ob|upon|[A-ZÀ-Þ0-9&]\S*))*"
)
_NEEDS_PROPER = ("residence", "employer", "name")


class Fact(Struct, frozen=True):
    """`slot` names a property with one value at a time, for instance ("residence",) or
    ("favourite", "tea"); None if several values can be true.

    `value` is folded. Only a plain sentence has a slot: no condition, no second value, no past."""

    kind: str
    slot: tuple[str, ...] | None = None
    value: str = ""


def read(sentence: str, names: Sequence[str] = ()) -> Fact | None:
    """The fact that a sentence states about its speaker, or about the observed peer by one of its
    `names`; None if there is none, or if the text is longer than a sentence."""
    if len(sentence) > MAX_LENGTH:
        return None
    language = detect(sentence)
    judgement = judge(sentence, language)
    if not judgement.keep:
        return None
    if judgement.kind == "instruction":
        return Fact(INSTRUCTION)
    text = core(
        without_quotations(" ".join(sentence.replace("’", "'").split())), language, vocatives=False
    )
    text = _TIME_ADVERB.sub("", text)
    subjects = tuple(sorted({name for name in names if name} | {"the user", "user"}))
    matches = (
        (slot, match)
        for slot, pattern in _slot_patterns(language, subjects)
        if (match := pattern.match(text))
    )
    first = next(matches, None)
    if first is not None and (fact := _slot_fact(*first)) is not None:
        return fact
    for kind, pattern in _card_patterns(language, subjects):
        if pattern.search(text):
            return Fact(kind)
    return Fact(IDENTITY) if topics.cues(language).name.match(text) else None


def comparable(slot: tuple[str, ...], one: str, other: str) -> bool:
    """Whether two values of one slot can replace each other. False if both can be true: a city and
    its country, or one value within the other."""
    if one == other or f" {one} " in f" {other} " or f" {other} " in f" {one} ":
        return False
    if slot[0] == "residence":
        head, tail = (value.split(",")[0].strip() for value in (one, other))
        return head != tail and is_large(one) == is_large(other)
    return True


def _slot_fact(slot: str, match: re.Match[str]) -> Fact | None:
    groups = match.groupdict()
    value = " ".join(groups["value"].split())
    kind = IDENTITY if slot == "name" else ATTRIBUTE
    is_single = not _MULTIPLE.search(value) and (
        slot not in _NEEDS_PROPER or bool(_PROPER.fullmatch(value))
    )
    if not value or (slot in _NEEDS_PROPER and not is_single):
        return None
    key = groups.get("key")
    slot_key = (slot, " ".join(key.casefold().split())) if key else (slot,)
    return Fact(kind, slot_key if is_single else None, value.casefold())


@lru_cache(maxsize=256)
def _slot_patterns(
    language: str, subjects: tuple[str, ...]
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (slot, _compiled(form, language, subjects))
        for slot, form in (SLOT_FORMS | MORE_SLOT_FORMS).get(language, ())
    )


@lru_cache(maxsize=256)
def _card_patterns(
    language: str, subjects: tuple[str, ...]
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (kind, _compiled(form, language, subjects))
        for kind, form in (CARD_FORMS | MORE_CARD_FORMS).get(language, ())
    )


def _compiled(form: str, language: str, subjects: tuple[str, ...]) -> re.Pattern[str]:
    """The pattern of a form of `fact_forms`, with its placeholders replaced."""
    subject = "|".join(re.escape(name) for name in subjects)
    if language not in UNSPACED:
        subject = f"(?i:{subject})"
    return re.compile(form.replace("<WHO>", subject))
