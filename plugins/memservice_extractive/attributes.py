"""Kind, time and certainty of a statement, by cues."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from re import Pattern

from memservice.domain.derived_rules import CERTAIN, HEDGED, HYPOTHETICAL
from memservice.domain.text.folding import fold
from memservice.domain.time_zones import time_zone
from memservice.spi.reasoner import Utterance
from memservice_extractive import topics
from memservice_extractive.facts import read
from memservice_extractive.kind_cues import KIND_CUES
from memservice_extractive.language import UNSPACED, detect
from memservice_extractive.subjects import is_unreal
from memservice_extractive.when import Span, span
from memservice_extractive.worth import Judgement


@dataclass(frozen=True, slots=True)
class Attributes:
    kind: str
    when: Span | None
    certainty: str


def attributes(sentence: str, judgement: Judgement, message: Utterance) -> Attributes:
    """`fact` is the kind of a statement without cues of another kind, and of one that gives a slot
    its value, such as a move, because cards and later values depend on it."""
    language = detect(sentence)
    today = local(message).date()
    time = span(sentence, today, language)
    certainty = CERTAIN
    if is_unreal(sentence, language):
        certainty = HYPOTHETICAL
    elif _has(sentence, language, "hedged"):
        certainty = HEDGED
    return Attributes(
        _kind(sentence, language, judgement, time, today.isoformat()), time, certainty
    )


def local(message: Utterance) -> datetime:
    """When a message was sent, in the time zone of its author."""
    zone = (time_zone(message.zone) if message.zone else None) or UTC
    try:
        return message.sent_at.astimezone(zone)
    except (OverflowError, ValueError):  # at the first or the last day of all times
        return message.sent_at


def _kind(sentence: str, language: str, judgement: Judgement, time: Span | None, today: str) -> str:
    if judgement.kind == "instruction":
        return "instruction"
    fact = read(sentence)
    if fact is not None and fact.slot is not None:
        return "fact"
    if _has(sentence, language, "preference"):
        return "preference"
    if _has(sentence, language, "plan") or (time and time[0] > today[: len(time[0])]):
        return "plan"
    if time and time[1] <= today[: len(time[1])]:
        return "event"
    if _has(sentence, language, "opinion"):
        return "opinion"
    return "fact"


def _has(sentence: str, language: str, kind: str) -> bool:
    pattern = _patterns(language).get(kind)
    return bool(pattern and pattern.search(fold(sentence)))


@cache
def _patterns(language: str) -> dict[str, Pattern[str]]:
    cues = KIND_CUES.get(language, {})
    has_spaces = language not in UNSPACED
    return {kind: topics.pattern(cue_list, has_spaces) for kind, cue_list in cues.items()}
