"""English statements of a speaker about itself, in the third person: "I'm allergic to nuts" by
maria is "maria is allergic to nuts".

Only where that is safe: a statement with another pronoun, a second verb or a verb that is not
listed stays as it was said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_AUXILIARIES = frozenset(
    "can can't cannot could couldn't will won't would wouldn't should shouldn't must mustn't might "
    "may didn't".split()
)
"""Have the same form in both persons, and so have all verbs after them."""
_IRREGULAR = {
    "am": "is",
    "i'm": "is",
    "have": "has",
    "i've": "has",
    "haven't": "hasn't",
    "do": "does",
    "don't": "doesn't",
    "go": "goes",
}
_CONTRACTIONS = {"i'll": "will"}
_PRESENT = frozenset(
    "adore avoid bake collect come commute cook dislike draw drink drive eat enjoy fear grow hate "
    "keep know like live love make need own paint play prefer ride run sing sleep speak spend "
    "study swim take teach travel use volunteer walk want wear work write".split()
)
_PAST = frozenset(
    "adopted became began bought broke came changed closed drank drove ate finished found gave got "
    "graduated grew had hadn't joined kept learned left lived lost loved made married met moved "
    "opened owned passed played quit ran retired sold sang slept spent spoke started stopped "
    "studied switched swam taught took travelled turned used visited walked wanted was wasn't went "
    "wore worked wrote".split()
)
"""Have the same form in both persons."""
_ADVERBS = frozenset(
    "absolutely actually almost already also always currently deeply just mostly never now often "
    "only rarely really recently still sometimes usually".split()
)
_OTHERS = frozenset(
    "i i'm i've i'd i'll me my mine myself we we're we've us our ours ourselves you your yours "
    "he him his she her hers they them their theirs it its it's this that these those here "
    "there who whom whose which".split()
)
"""Words that mean somebody or something else once the subject has a name."""
_JOINING = frozenset({"and", "or", "but"})
_DETERMINERS = frozenset("a an the no some any another one two three four five six".split())
_PARTS = re.compile(r"(I(?:['’](?:m|ve|ll))?)\s+(.+?)([.!]?)\s*", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_OTHER_MARKS = re.compile(r"[.!?:;\"“”()\n]")
"""Marks of a second sentence, a quotation or an aside."""
MAX_LENGTH = 200
"""Characters of a longer statement, which says more than one thing."""


def in_third_person(statement: str, name: str) -> str | None:
    """The statement with the name as its subject; None where it is not safe, or if it is not about
    its speaker. `statement`: one in English."""
    parts = _PARTS.fullmatch(statement)
    if parts is None or not name or len(statement) > MAX_LENGTH:
        return None
    subject, rest, end = parts[1].lower().replace("’", "'"), parts[2], parts[3]
    spoken = _WORD.findall(rest)
    words = [word.lower().replace("’", "'") for word in spoken]
    if (
        name.lower() in words
        or not words
        or not _OTHERS.isdisjoint(words)
        or _OTHER_MARKS.search(rest)
    ):
        return None
    if subject in _CONTRACTIONS:
        return f"{name} {_CONTRACTIONS[subject]} {rest}{end}"
    if subject != "i":
        return f"{name} {_IRREGULAR[subject]} {rest}{end}" if _may_join(spoken) else None
    number = next((number for number, word in enumerate(words) if word not in _ADVERBS), None)
    form = None if number is None else _third(words[number])
    if number is None or form is None:
        return None
    if words[number] not in _AUXILIARIES and not _may_join(spoken):
        return None
    verb = list(_WORD.finditer(rest))[number]
    return f"{name} {rest[: verb.start()]}{form}{rest[verb.end() :]}{end}"


def _may_join(words: Sequence[str]) -> bool:
    """Whether nothing is joined that may be a second verb in the first person: only verbs in the
    past, nouns with an article or a number, and names."""
    return all(
        after.lower() in _PAST or after in _DETERMINERS or after[:1].isupper()
        for word, after in pairwise(words)
        if word.lower() in _JOINING
    )


def _third(verb: str) -> str | None:
    """The form of a verb in the third person singular; None for one that is not listed."""
    if verb in _AUXILIARIES or verb in _PAST:
        return verb
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb not in _PRESENT:
        return None
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"
