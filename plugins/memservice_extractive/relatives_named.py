"""Whom the names in a conversation stand for: "ma sœur Aïssatou" makes a later "le mariage
d'Aïssatou" a statement about a sister."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED
from memservice_extractive.question_content import WORD

BEFORE_NAME = (
    r",?(?: (?:my|mein[er]?|mi|mia|mio|ma|mon|meu|minha|мо[яиё]|мое),?)? "
    r"(?:named |called |namens |heisst |se llama |s'appelle |si chiama |se chama |chamad[ao] "
    r"|зовут )?"
)
"""Between a relative and its name, for folded text."""
_CAPITAL = re.compile(r"[A-ZÀ-ÖØ-ÞА-ЯЁ][^\W\d_]+")
_AFTER = re.compile(BEFORE_NAME)
_HAN_NAME = {
    "zh": re.compile(r"[妹姐哥弟]?叫?([^\W\d_a-z的]{2})"),
    "ja": re.compile(
        r"の([^\W\d_はがをにのでも]{1,4})(?=[はがをにのともで、,。]|さん|ちゃん|くん)"
    ),
}


def relatives_named(sentences: Sequence[str], language: str) -> Mapping[str, frozenset[str]]:
    """Folded name → the topics of the relatives that sentences give it to."""
    if language == "de":
        return {}  # every noun has a capital
    cues = topics.cues(language)
    named: dict[str, frozenset[str]] = {}
    for sentence in sentences:
        folded = fold(sentence)
        for match in cues.relatives.finditer(folded):
            name = _name_at(folded, match.end(), language)
            if name and (language in UNSPACED or name in _capitals(sentence)):
                relatives = frozenset(
                    topic
                    for topic in topics.RELATIVES & cues.statements.keys()
                    if cues.statements[topic].search(match[0])
                )
                named[name] = named.get(name, frozenset()) | relatives
    return named


def _name_at(folded: str, position: int, language: str) -> str:
    """The word that can be the name of the relative before it; "" if there is none."""
    if language in UNSPACED:
        match = _HAN_NAME[language].match(folded, position)
        return match[1] if match else ""
    gap = _AFTER.match(folded, position)
    word = WORD.match(folded, gap.end()) if gap else None
    return word[0] if word else ""


def _capitals(sentence: str) -> set[str]:
    return {fold(match[0]) for match in _CAPITAL.finditer(sentence)}


def relatives_in(
    sentence: str, named: Mapping[str, frozenset[str]], language: str
) -> frozenset[str]:
    """The topics of the relatives whose names a sentence has."""
    if not named:
        return frozenset()
    folded = fold(sentence)
    names = (
        [name for name in named if name in folded]
        if language in UNSPACED
        else named.keys() & set(WORD.findall(folded))
    )
    return frozenset[str]().union(*(named[name] for name in names))
