"""Kind, time and certainty of a statement, by cues."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from memservice.domain.time_zones import time_zone
from memservice.spi.reasoner import Utterance
from memservice_extractive.certainty import certainty, has_cue
from memservice_extractive.facts import read
from memservice_extractive.language import detect
from memservice_extractive.when import Span, span
from memservice_extractive.worth import Judgement


class Attributes(Struct, frozen=True):
    kind: str
    when: Span | None
    certainty: str


def attributes(sentence: str, judgement: Judgement, message: Utterance) -> Attributes:
    """`fact` is the kind of a statement without cues of another kind, and of one that gives a slot
    its value, such as a move, because cards and later values depend on it."""
    language = detect(sentence)
    today = local(message).date()
    time = span(sentence, today, language)
    kind = _kind(sentence, language, judgement, time, today.isoformat())
    return Attributes(kind, time, certainty(sentence, language))


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
    if has_cue(sentence, language, "preference"):
        return "preference"
    if has_cue(sentence, language, "plan") or (time and time[0] > today[: len(time[0])]):
        return "plan"
    if time and time[1] <= today[: len(time[1])]:
        return "event"
    if has_cue(sentence, language, "opinion"):
        return "opinion"
    return "fact"
