"""Whom a statement is about, and which topics it tells of."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED
from memservice_extractive.question_content import WORD
from memservice_extractive.requests import asks_for_fiction

CLAUSE_END = re.compile(
    r"[,;:.!?，。；！？]\s*|\s(?:and|but|und|aber|y|pero|et|mais|e|ma|mas|и|а|но)\s"
)
"""Between the clauses of a sentence."""
_JA_SUBJECT = re.compile(r"[^、。と]{1,8}?[はが]")
"""A relative that is the subject of its sentence, in Japanese: not "with my sister"."""
REPLY_MARK = " – "
"""Between a question and its reply, in one statement."""
_FIRST_WORDS = 3
"""A relative among the first words of a sentence is its subject."""


def is_reply(sentence: str) -> bool:
    return REPLY_MARK in sentence


def is_about_other(sentence: str, language: str) -> bool:
    """Whether a relative, and not its speaker, is the subject of a sentence."""
    folded = fold(sentence)
    head, starts = _relatives_at_start(folded, language, topics.RELATIVES)
    if not starts:
        return False
    if language == "ja":
        return any(_JA_SUBJECT.match(folded, start) for start in starts)
    return not topics.cues(language).subject.search(folded, len(head))


def is_about_other_relative(sentence: str, language: str, relatives: Collection[str]) -> bool:
    """Whether the subject of a sentence is a relative, and none of those that are asked about."""
    folded = fold(sentence)
    starts = _relatives_at_start(folded, language, topics.RELATIVES)[1]
    asked_starts = _relatives_at_start(folded, language, relatives)[1]
    return bool(starts) and min(starts) not in asked_starts


def _relatives_at_start(
    folded: str, language: str, among: Collection[str]
) -> tuple[str, list[int]]:
    """The first words of a sentence, and where these relatives are in them."""
    statements = topics.cues(language).statements
    question, dash, _ = folded.partition(REPLY_MARK)
    if dash:
        head = question
    elif language in UNSPACED:
        head = folded[:6]
    else:
        words = list(WORD.finditer(folded))[:_FIRST_WORDS]
        head = folded[: words[-1].end()] if words else ""
    starts = [
        match.start()
        for topic in among
        if topic in statements and (match := statements[topic].search(head))
    ]
    return head, starts


@lru_cache(maxsize=2_048)
def topics_told(sentence: str, language: str, among: frozenset[str]) -> frozenset[str]:
    """Those of the topics that a sentence is about, or that the question of a reply asks for: "How
    old are you? – 34"."""
    cues = topics.cues(language)
    folded = cues.with_heads(fold(sentence))
    question, dash, _ = folded.partition(REPLY_MARK)
    return frozenset(
        topic
        for topic in among
        if topic in cues.statements
        and (
            cues.statements[topic].search(folded)
            or (dash and cues.questions[topic].search(question))
        )
    )


def is_unreal(sentence: str, language: str) -> bool:
    """Whether a sentence is a condition, fiction or a dream."""
    return bool(topics.cues(language).unreal.search(fold(sentence))) or asks_for_fiction(sentence)
