"""Whom a statement is about, and which topics it tells of."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache

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
_DETERMINER = {
    "de": (
        r"(?<!bin )(?<!als )(?:der|die|den|dem|beim|zum|zur|vom|meine?[mnr]?|unsere?[mnr]?"
        r"|jede[mnrs])"
    ),
    "en": r"(?<!am )(?<!i'm )(?<!as )(?:the|my|our|his|her|their)",
    "es": r"(?<!soy )(?<!como )(?:el|la|los|las|del|al|mis?|nuestr[oa]s?)",
    "fr": r"(?<!suis )(?<!comme )(?:les?|la|du|aux?|mon|ma|mes|notre|nos)",
    "it": (
        r"(?<!faccio )(?<!sono )(?<!come )(?:il|lo|la|i|gli|le|d?al|d?all[oa]|dell?[oa]?|mi[oa]"
        r"|nostr[oa])"
    ),
    "pt": r"(?<!sou )(?<!como )(?:os?|as?|d[oa]s?|aos?|n[oa]|meus?|minhas?|noss[oa]s?)",
}
_ACTS = {
    "ru": r"\s(?:\w+\s)?(?:говорит|пишет|\w{3,}(?:ла?|ли))(?![^\W_])",
    "zh": r"(?:说|让|叫|告诉|建议|确诊|给|开了?|要我|生)",
    "ja": r"(?:さん)?(?:に|が|は|から)(?:言|診|処方|勧|止|もら|出|$)",
}
"""Nobody tells its own profession with these words: "the doctor says", "my dentist"."""
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


@cache
def _other_before(language: str) -> re.Pattern[str] | None:
    determiner = _DETERMINER.get(language)
    return re.compile(rf"(?<![^\W_])(?:{determiner}|l['’])\s?$") if determiner else None


@cache
def _other_after(language: str) -> re.Pattern[str] | None:
    acts = _ACTS.get(language)
    return re.compile(acts) if acts else None


def _tells_profession(pattern: re.Pattern[str], folded: str, language: str) -> bool:
    """Whether a profession is not only that of somebody who is mentioned: "The doctor says"."""
    before, after = _other_before(language), _other_after(language)
    return any(
        not (before and before.search(folded[max(0, match.start() - 20) : match.start()]))
        and not (after and after.match(folded, match.end()))
        for match in pattern.finditer(folded)
    )


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
            (
                _tells_profession(cues.statements[topic], folded, language)
                if topic == "profession"
                else cues.statements[topic].search(folded)
            )
            or (dash and cues.questions[topic].search(question))
        )
    )


def is_unreal(sentence: str, language: str) -> bool:
    """Whether a sentence is a condition, fiction or a dream."""
    return bool(topics.cues(language).unreal.search(fold(sentence))) or asks_for_fiction(sentence)
