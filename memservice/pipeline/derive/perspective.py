"""The point of view of a sentence, as far as its words show it. Two people may say the same of
themselves; a repetition of stored text about another peer has signs of a quotation."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memservice.domain.text.folding import UNSPACED, fold

_FIRST = frozenset(
    # English
    "i i'm i've i'd i'll me my mine myself we we're we've we'd us our ours "
    # German
    "ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren unserem "
    # French
    "je j'ai moi mon ma mes nous notre nos "
    # Spanish
    "yo mi mis conmigo nosotros nuestro nuestra soy estoy tengo vivo trabajo prefiero naci tenemos "
    "vivimos somos me "
    # Portuguese
    "eu meu minha meus minhas comigo nosso nossa sou estou tenho moro trabalho prefiro nasci temos "
    # Italian
    "io mio mia miei mie noi nostro nostra sono ho abito lavoro preferisco abbiamo "
    # Russian
    "я меня мне мой моя мое мои мною мы нас нам наш наша".split()
)
"""Folded words by which speakers refer to themselves."""
_FIRST_ELIDED = re.compile(r"\b(?:j'|m'|i')\w")
_FIRST_UNSPACED = re.compile("我|俺|僕|私|わたし|ぼく|うち|저|나는|내")
_THIRD_UNSPACED = re.compile("彼|她|他|它|さん|그는|그녀|씨")

_QUOTES = "\"'“”„«»‹›「」『』‘’‚"
_ENDS = " .!?。！？"
_ITEM = re.compile(r"^\s*(?:[-*•‣·–]|\d+[.)])\s+")


def is_first_person(text: str) -> bool:
    """Whether a sentence is in the first person. In Chinese, Japanese and Korean the subject is
    often left out: it is the speaker unless a word in the third person occurs."""
    folded = fold(text)
    if UNSPACED.search(folded):
        return bool(_FIRST_UNSPACED.search(folded)) or not _THIRD_UNSPACED.search(folded)
    return bool(_words(folded) & _FIRST) or bool(_FIRST_ELIDED.search(folded))


def names_any(text: str, names: Iterable[str]) -> bool:
    """Whether one of the names occurs, as whole words."""
    folded = fold(text)
    return any(
        re.search(rf"(?<!\w){re.escape(fold(name))}(?!\w)", folded) for name in names if name
    )


def is_quoted(sentence: str, message: str) -> bool:
    """Whether a message quotes a sentence: in quotation marks, or as an item of a list with an
    introduction."""
    core = _ITEM.sub("", sentence).strip(_QUOTES + _ENDS)
    before, match, after = message.partition(core)
    if not match:
        return False
    opens, closes = before[-1:], after.lstrip(_ENDS)[:1]
    if opens and opens in _QUOTES and closes and closes in _QUOTES:
        return True
    *introduction, start = before.split("\n")
    return _ITEM.match(start + "x") is not None and any(
        line.rstrip().endswith((":", "：")) for line in introduction
    )


def _words(folded: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w']+", folded))
