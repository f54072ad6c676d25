"""The order of statements of which none certainly answers a question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil

from memservice.domain.text.folding import fold
from memservice_extractive import answer_types, topics
from memservice_extractive.language import UNSPACED, words
from memservice_extractive.relevance import STYLE, Question
from memservice_extractive.subjects import (
    is_about_other,
    is_reply,
    is_unreal,
    topics_told,
)
from memservice_extractive.worth import is_question

_BESIDE = {
    "home": "origin friend neighbour delivery",
    "origin": "home languages travel",
    "employer": "profession boss colleague study",
    "profession": "employer study project",
    "study": "learning profession languages deadline",
    "learning": "study languages leisure music sport",
    "languages": "learning origin",
    "food": "diet allergy drink dislike",
    "drink": "food diet allergy",
    "diet": "food allergy drink health",
    "allergy": "health food drink medication",
    "health": "medication allergy doctor sleep",
    "medication": "health allergy",
    "doctor": "appointment health",
    "appointment": "doctor health deadline",
    "sleep": "health",
    "partner": "wedding",
    "wedding": "partner",
    "children": "relatives",
    "leisure": "sport music game garden collection volunteering learning",
    "sport": "leisure team",
    "music": "leisure singer",
    "singer": "music",
    "author": "book",
    "book": "author",
    "favourite": "dislike",
    "dislike": "fear favourite",
    "fear": "dislike",
    "travel": "plans",
    "plans": "travel goal appointment",
    "goal": "plans money",
    "commute": "car",
    "car": "commute",
    "email": "contact",
    "phone": "contact device",
    "contact": "email phone",
    "device": "phone software",
    "software": "device project",
    "deadline": "appointment study",
    "age": "birthday",
    "birthday": "age",
    "delivery": "home contact",
    "nickname": "contact",
    "smoking": "health",
    "team": "sport",
    "project": "software employer",
}
"""Topic → those of which a statement can tell what is asked about it."""
_NEIGHBOURS: Mapping[str, frozenset[str]] = {
    topic: frozenset(others.split()) for topic, others in _BESIDE.items()
}
_BESIDE_TOPIC = 0.25
_WITH_TYPE = 0.2
"""What a value of the type that is asked for counts, and costs if it is missing."""
_PART = 0.35
"""What words in common with the question count, with those that say little by themselves."""
_MIN_PART = 4
_ENOUGH_CHARACTERS = 3
"""Characters that a statement in Chinese or Japanese shares with the question, for the maximum."""
_MIN_INNER = 6
"""Letters of a part that need not stand at the beginning of both words."""
_MAX_WORD = 40
"""Letters of the longest word whose parts are compared; the number of parts grows with the square
of the length."""
_PART_SHARE = 0.6
"""Share of a word of the question that a word of a statement has in common with it."""
_ANOTHER_TOPIC = 0.1
_NOT_OWN = 0.3
_UNSUITED = 0.3
"""Subtracted from fiction and from requests about answers."""
_INTRODUCTION = 0.15
"""Subtracted from a short sentence with the name of its speaker."""
_MAX_INTRODUCTION = 12
"""Words of such a sentence, or characters in Chinese and Japanese."""


def closeness(question: Question, sentence: str, language: str, *, is_own: bool) -> float:
    """What to add to the score of a statement for its place among the closest ones."""
    if is_question(sentence, language) and not is_reply(sentence):
        return -1.0
    topics_of_question = question.content.topics - {STYLE}
    beside = frozenset[str]().union(
        *(_NEIGHBOURS.get(topic, frozenset()) for topic in topics_of_question)
    )
    value = 0.0
    has_topic = bool(topics_told(sentence, language, topics_of_question))
    if beside and not has_topic:
        value += _BESIDE_TOPIC * bool(topics_told(sentence, language, beside - topics_of_question))
    for kind in question.types:
        value += _WITH_TYPE if answer_types.has_type(sentence, kind, language) else -_WITH_TYPE
    if question.asks_time:
        value += _WITH_TYPE if question.has_time(sentence) else -_WITH_TYPE
    value += _PART * _parts_in_common(question, sentence)
    if not is_own:
        value -= _NOT_OWN
    if is_unreal(sentence, language):
        value -= _UNSUITED
    if len(words(sentence)) <= _MAX_INTRODUCTION and question.introduces(sentence):
        value -= _INTRODUCTION
    asks_style = STYLE in question.content.topics
    if not (asks_style or has_topic) and topics_told(sentence, language, frozenset({STYLE})):
        value -= _UNSUITED
    if not topics_of_question & topics.RELATIVES and is_about_other(sentence, language):
        value -= _ANOTHER_TOPIC
    return value


def _parts_in_common(question: Question, sentence: str) -> float:
    """0 to 1: how much of the words of the question a statement has in other forms or compounds.
    For Chinese and Japanese, of their characters."""
    folded = fold(sentence)
    if question.language in UNSPACED:
        characters = question.forms
        return min(1.0, sum(each in folded for each in characters) / _ENOUGH_CHARACTERS)
    return min(1.0, sum(_part_in_common(word, folded) for word in question.forms))


def _part_in_common(word: str, folded: str) -> float:
    """The share of a word that the longest part of it in a folded text has; 0 if it is short, or if
    the word is longer than words are."""
    if len(word) > _MAX_WORD:
        return 0.0
    least = max(_MIN_PART, ceil(_PART_SHARE * len(word)))
    for length in range(len(word), least - 1, -1):
        if length < _MIN_INNER:
            if re.search(rf"(?<![^\W_]){re.escape(word[:length])}", folded):
                return length / len(word)
        elif any(word[at : at + length] in folded for at in range(len(word) - length + 1)):
            return length / len(word)
    return 0.0
