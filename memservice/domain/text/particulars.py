"""The details that two similar statements must share to count as duplicates: numbers, names and
negation."""

from __future__ import annotations

import re

from memservice.domain.text.folding import SCRIPT_RUN, fold
from memservice.domain.text.words import MONTHS, STOP_WORDS

NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
"""A number, a date or a time of digits."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
NUMBER_WORDS = frozenset(
    (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen "
        "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million once "
        "twice half dozen first second third "
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf hundert tausend "
        "halb"
    ).split()
)
_NEGATIONS = frozenset(
    (
        "not no never none nobody nothing neither nor without cannot hardly nicht kein keine "
        "keinen keinem keiner nie niemals nichts ohne "
        "non ne pas jamais sans sin nunca tampoco não nem"
    ).split()
)
_MONTHS = frozenset(month.casefold() for month in MONTHS)


def particulars(text: str) -> frozenset[tuple[str, str]]:
    """Numbers, in digits or words; words with a capital letter; negation; and runs of scripts
    without spaces, in which names cannot be distinguished from other words."""
    details = {("number", number) for number in NUMBER.findall(fold(text))}
    details |= {("run", run) for run in SCRIPT_RUN.findall(fold(text))}
    for word in _WORD.findall(text):
        folded = word.casefold().replace("’", "'")
        if folded in NUMBER_WORDS or folded in _MONTHS:
            details.add(("number", folded))
        elif folded in _NEGATIONS or folded.endswith("n't"):
            details.add(("denied", ""))
        elif word[0].isupper() and folded not in STOP_WORDS:
            details.add(("name", folded.removesuffix("'s")))
    return frozenset(details)


def same_particulars(one: str, other: str) -> bool:
    """Whether two similar texts can state the same: only if all their details are equal."""
    return particulars(one) == particulars(other)
