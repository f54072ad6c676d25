"""What statements say that is not so, or may not be: doubts, denials, and what others are quoted
as saying."""

from __future__ import annotations

import re
from functools import cache

from memservice.domain.derived_rules import CERTAIN, HEDGED, HYPOTHETICAL
from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.kind_cues import KIND_CUES
from memservice_extractive.language import UNSPACED, words
from memservice_extractive.lexicon import SPEECH_VERBS
from memservice_extractive.question_content import rest_stems, stems_of
from memservice_extractive.subjects import CLAUSE_END, is_unreal
from memservice_extractive.worth import has_quotation_mark, without_quotations

_DENIALS = {
    "en": r"(?:i|we)(?:'m|'re|'ve)? (?:(?:do|did|am|was|were|have|had|are|will|would)(?: not|n't)"
    r"|not|never)(?! only| just|.*\bfar\b)",
    "de": r"(?:ich|wir)\b(?:.*\b(?:nicht(?! nur| weit)|nie|niemals|kein(?:e[nmrs]?)?))",
    "es": r"(?:yo |nosotr[oa]s )?(?:no|nunca|jamas)\b(?! solo|.*\blejos\b)",
    "fr": r"(?:j|je|nous|on) ?(?:ne |n')(?!.*\b(?:loin|que)\b)",
    "it": r"(?:io |noi )?(?:non|mai)\b(?! solo|.*\blontano\b)",
    "pt": r"(?:eu |nos )?(?:nao|nunca|jamais)\b(?! so\b| apenas|.*\blonge\b)",
    "ru": r"(?:я |мы )(?:.*\b)?(?:не|никогда)\b(?! только|.*\bдалеко\b)",
}
"""Clauses in which the speaker denies something, folded. Not: "not far from Rome"."""
_ENDINGS = {
    "en": r"any ?more|any longer|no longer|since",
    "de": r"mehr|langer|seit",
    "es": r"ya no|mas|desde",
    "fr": r"plus|depuis",
    "it": r"piu|da quando",
    "pt": r"ja nao|mais|desde",
    "ru": r"больше|уже",
}
"""Words by which such a clause tells that something has ended, which is news."""

_REPORTS = {
    "en": r"(?:says|said|claims|claimed|thinks|told (?:me|us)|tells (?:me|us)) (?:that )?"
    r"(?:he|she|they)\b",
    "de": r"(?:sagt|sagte|meint|meinte|erzahlt|erzahlte)(?: mir| uns)?,? (?:dass )?(?:er|sie)\b",
    "es": r"(?:dice|dijo|cuenta) que (?:el |ella )?(?:vive|trabaja|tiene|es|esta|estudia)\b",
    "fr": r"(?:dit|disait|raconte|a dit|m'a dit) qu'(?:il|elle|on)\b",
}
"""How a statement continues after the name of somebody who tells of itself, folded."""
_MAX_NAME = 3
"""Words of such a name."""
_CLOSING_MARKS = '"”“»'
"""Of quotations."""


def certainty(sentence: str, language: str) -> str:
    """One of those of `derived_rules`."""
    if is_unreal(sentence, language):
        return HYPOTHETICAL
    return HEDGED if has_cue(sentence, language, "hedged") else CERTAIN


def has_cue(sentence: str, language: str, kind: str) -> bool:
    """Whether a sentence has a cue of `KIND_CUES`."""
    pattern = _cues(language).get(kind)
    return bool(pattern and pattern.search(fold(sentence)))


def denied(sentence: str, language: str) -> str | None:
    """What the speaker denies, if a statement tells neither that it has ended nor, in another
    clause, what is so; else None. In languages without spaces always None."""
    if language not in _DENIALS:
        return None
    denials, endings = _denials(language)
    folded = fold(sentence)
    if endings.search(folded):
        return None
    subject = topics.cues(language).subject
    value: str | None = None
    for clause in CLAUSE_END.split(folded):
        match = denials.match(clause)
        if match is not None:
            value = clause[match.end() :] if value is None else value
        elif subject.search(clause):
            return None
    return value


def denies(value: str, sentence: str, language: str) -> bool:
    """Whether a denial (`denied`) is about what another statement says."""
    return rest_stems(value, language) <= stems_of(sentence, language)


def without_speech(sentence: str, language: str) -> str:
    """A sentence without what it quotes somebody else as saying, also if it is cut within the
    quotation."""
    if not has_quotation_mark(sentence):
        return sentence
    outside = without_quotations(sentence)
    for mark in _CLOSING_MARKS if outside == sentence else "":
        closed = without_quotations(sentence + mark)
        outside = outside if closed == sentence + mark else closed
    if outside == sentence or SPEECH_VERBS.isdisjoint(words(outside)):
        return sentence
    return sentence if topics.cues(language).subject.search(fold(outside)) else outside


def without_report(sentence: str, language: str) -> str:
    """The beginning of a sentence that reports what somebody else tells of itself ("Tom says he
    lives in Oslo"): who tells it. Any other sentence as it is."""
    pattern = _report(language)
    folded = fold(sentence)
    match = pattern.match(folded) if pattern is not None else None
    if match is None or topics.cues(language).subject.search(folded):
        return sentence
    return match[1]


@cache
def _report(language: str) -> re.Pattern[str] | None:
    if language not in _REPORTS:
        return None
    return re.compile(rf"((?:[^\W_]+ ){{1,{_MAX_NAME}}})(?:{_REPORTS[language]})")


@cache
def _denials(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return (
        re.compile(rf"(?:\w+ )?(?:{_DENIALS[language]})"),
        re.compile(rf"\b(?:{_ENDINGS[language]})\b"),
    )


@cache
def _cues(language: str) -> dict[str, re.Pattern[str]]:
    cues = KIND_CUES.get(language, {})
    has_spaces = language not in UNSPACED
    return {kind: topics.pattern(cue_list, has_spaces) for kind, cue_list in cues.items()}
