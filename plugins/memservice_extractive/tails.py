"""Questions and requests that tell something: "I play chess twice a week, is that normal?", "Make
me a list: I have an exam on Monday"."""

from __future__ import annotations

import re

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED, words
from memservice_extractive.lexicon import FIRST_PERSON
from memservice_extractive.requests import asks_for_fiction
from memservice_extractive.worth import is_question, judge

MIN_WORDS = 3
_MAX_CLAUSES = 12
_COMMA = re.compile(r"(?:[,;，；、]|\s[–—-])\s*")
_FIRST = {
    "es": re.compile(
        r"(?<![^\W_])(?:yo|me|mi|mis|nos|nuestr[oa]s?|soy|estoy|tengo|vivo|voy|he|hago|trabajo"
        r"|quiero|puedo|\w{2,20}[aei]mos)(?![^\W_])"
    ),
    "it": re.compile(
        r"(?<![^\W_])(?:io|mi|mi[oae]|miei|noi|ci|nostr[oaie]|sono|ho|abito|lavoro|vado|faccio"
        r"|voglio|posso|abbiamo|\w{2,20}iamo)(?![^\W_])"
    ),
    "pt": re.compile(
        r"(?<![^\W_])(?:eu|me|meus?|minhas?|nos|noss[oa]s?|sou|estou|tenho|moro|trabalho|vou"
        r"|faco|quero|posso|\w{2,20}[aei]mos)(?![^\W_])"
    ),
    "ru": re.compile(r"(?<![^\W_])(?:я|мне|меня|мой|моя|мое|мои|мы|нас|нам|у нас)(?![^\W_])"),
    "zh": re.compile("我|咱"),
    "ja": re.compile("私|僕|俺|うち|わたし"),
}
_CONDITION = re.compile(
    r"^\W*(?:if|when|whenever|since (?:i|we|you|he|she|it|they|my|the|there)"
    r"|because|although|while|should|as|in case|wenn|falls|ob|weil|als"
    r"|da|obwohl|si|cuando|porque|aunque|quand|lorsque|comme|parce que|puisque|se|quando|perche"
    r"|siccome"
    r"|caso|embora|если|когда|так как|потому что|хотя|如果|要是|假如|因为|もし)(?![^\W_a-z])"
)
"""A clause that depends on the one after it, for folded text."""


def statement_within(sentence: str, language: str, kind: str) -> str:
    """The statement in a sentence that is judged as a question or command; "" if there is none."""
    if kind == "question":
        return clause_before_question(sentence, language)
    return clause_after_command(sentence, language) if kind == "command" else ""


def clause_after_command(sentence: str, language: str) -> str:
    """What the speaker tells about itself after the first colon."""
    _, colon, clause = sentence.replace("：", ": ", 1).partition(": ")
    clause = clause.strip()
    if asks_for_fiction(sentence):
        return ""
    if not (colon and clause and clause in sentence and _is_own(clause, language)):
        return ""
    return clause if judge(clause, language).kind == "statement" else ""


def clause_before_question(sentence: str, language: str) -> str:
    """The longest beginning that ends before a comma and is a statement of the speaker about
    itself; "" if the sentence is no question, or has none."""
    if not sentence.rstrip().endswith(("?", "？")):
        return ""
    if _CONDITION.match(fold(sentence)):
        return ""
    ends = [match.start() for match in _COMMA.finditer(sentence)][:_MAX_CLAUSES]
    for end in reversed(ends):
        clause = sentence[:end].rstrip()
        if _is_own(clause, language) and judge(clause, language).kind == "statement":
            return clause
    return ""


def has_first_person(text: str, language: str) -> bool:
    if language in _FIRST:
        return bool(_FIRST[language].search(fold(text)))
    first_person = FIRST_PERSON.get(language, FIRST_PERSON["en"])
    return not first_person.isdisjoint(words(text))


def _is_own(clause: str, language: str) -> bool:
    """Whether it has a first person or a relative, and is neither a question nor invented."""
    folded = fold(clause)
    if is_question(clause, language) or topics.cues(language).unreal.search(folded):
        return False
    is_own = has_first_person(clause, language) or bool(
        topics.cues(language).relatives.search(folded)
    )
    return is_own and (language in UNSPACED or len(words(clause)) >= MIN_WORDS)
