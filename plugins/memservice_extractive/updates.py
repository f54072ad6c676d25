"""Statements that move what an earlier one dated: "the course was shifted to Thursdays".

They seldom repeat the words of a question, and share one with the statement that they change.
"""

from __future__ import annotations

import re
from functools import cache

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED
from memservice_extractive.question_content import rest_stems, stems_of

_CHANGES = {
    "de": r"verleg\w*|verschob\w*|verschieb\w*|vorverleg\w*|vorgezogen|umgebucht|geandert|andert"
    r"|korrektur|korrigier\w*|doch (?:nicht|erst|schon|am|im)|stattdessen|statt|jetzt (?:am|ist"
    r"|doch)"
    r"|abgesagt|fallt aus|neuer termin|vertan|vertippt|verschoben|planandert\w*|erst am",
    "en": r"moved?|shift\w*|postpon\w*|reschedul\w*|put (?:it )?off|push\w* (?:it )?(?:back|to)"
    r"|brought forward|chang\w*|correct\w*|actually|instead|cancel\w*|delay\w*|swapp\w*"
    r"|new (?:date|time|day)|not the|mistake|mixed up|typo|rebook\w*|turns out|now on",
    "es": r"corri\w+|movi\w+|pas[oa]\w*|postergo\w*|posterg\w*|aplaz\w*|retras\w*|adelant\w*"
    r"|cambi\w*"
    r"|reprogram\w*|correc\w*|corrij\w*|en (?:vez|lugar) de|al final|en realidad|cancel\w*"
    r"|suspend\w*"
    r"|me equivoque|error|nueva fecha|ahora es|quedo para",
    "fr": r"deplac\w*|report\w*|decal\w*|avanc\w*|repouss\w*|chang\w*|rectif\w*|correction"
    r"|corrig\w*"
    r"|finalement|en fait|a la place|plutot|annul\w*|me suis tromp\w*|erreur|nouvelle date|ce sera",
    "it": r"spost\w*|rimand\w*|rinvi\w*|anticip\w*|posticip\w*|cambi\w*|correg\w*|correzione|invece"
    r"|alla fine|in realta|annull\w*|mi sono sbagliat\w*|errore|nuova data|adesso e|slitt\w*",
    "pt": r"adi\w+|remarc\w*|mud\w+|pass\w+ (?:pra|para)|antecip\w*|transfer\w*|corrig\w*|correc\w*"
    r"|em vez|na verdade|no fim|cancel\w*|me enganei|erro|errei|nova data|agora e|fic\w+ (?:pra"
    r"|para)",
    "ru": r"перен[её]с\w*|перенес\w*|сдвин\w*|передвин\w*|отлож\w*|помен\w*|измен\w*|исправ\w*"
    r"|поправ\w*"
    r"|ошиб\w*|вместо|на самом деле|отмен\w*|теперь|новая дата|перестав\w*|будет не|опечат\w*",
    "ja": "変更|変わ|延期|ずれ|ずらし|移|訂正|間違|じゃなくて|ではなく|やっぱり|代わりに|中止"
    "|になった"
    "|繰り上げ|前倒し",
    "zh": "改|换|调到|调成|推迟|延期|提前|挪|更正|说错|打错|写错|弄错|记错|不是|取消|变成",
}
_VAGUE = topics.RELATIVES | {"plans", "favourite", "dislike", "food", "drink", "style", "fear"}
"""Topics that two statements often have in common by chance."""


def changes(later: str, earlier: str, language: str) -> bool:
    """Whether a later statement has a word of change, and a topic or a word of the earlier one."""
    pattern = _pattern(language)
    if pattern is None or not pattern.search(fold(later)):
        return False
    if language in UNSPACED:
        words = rest_stems(fold(earlier), language)
        shares = any(part in fold(later) for part in words if len(part) > 1)
    else:
        shares = bool(rest_stems(fold(earlier), language) & stems_of(later, language))
    return shares or bool(topics_of(later, language) & topics_of(earlier, language) - _VAGUE)


def topics_of(sentence: str, language: str) -> frozenset[str]:
    """The topics that a statement is about."""
    folded = fold(sentence)
    statements = topics.cues(language).statements
    return frozenset(topic for topic, pattern in statements.items() if pattern.search(folded))


@cache
def _pattern(language: str) -> re.Pattern[str] | None:
    words = _CHANGES.get(language)
    if words is None:
        return None
    return re.compile(words if language in UNSPACED else rf"(?<![^\W_])(?:{words})(?![^\W_])")
