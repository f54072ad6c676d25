"""Topics of questions and statements, such as `home` or `age`, recognized by cue words.

Each language has a module with its cues. A cue is a word; `*` stands for any ending, `_` for white
space, `_*_` for one to three words, `#` for a number, `!` at its beginning for no Chinese character
before it, `@mail` for an e-mail address, `@number` for a telephone number, and `@address` for
either. Cues before ` | ` are those of questions, cues after it those of statements; without ` | `
they are the same. Cues are compared with folded text (`memservice.domain.text.folding.fold`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from memservice.domain.text.folding import fold
from memservice.domain.text.scripts import HAN_LETTERS
from memservice_extractive.language import UNSPACED

LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "pt", "ru", "zh")
USUAL = "en"
"""The language whose cues are used for a language without cues."""

RELATIVES = frozenset(
    {
        "mother",
        "father",
        "parents",
        "brother",
        "sister",
        "siblings",
        "grandparents",
        "relatives",
        "friend",
        "boss",
        "colleague",
        "partner",
        "children",
        "pets",
    }
)
"""Topics that are persons or animals: a statement can be about one of them and not its speaker."""
ONE_VALUE = frozenset({"home", "employer", "profession", "age"})
"""Topics with one true value at a time: a newer statement replaces an older one."""

IMPERSONAL = frozenset(
    {
        "colour",
        "deadline",
        "device",
        "game",
        "garden",
        "money",
        "project",
        "series",
        "size",
        "software",
        "team",
    }
)
"""Topics that questions about the world have as well: alone, they are not about a person."""

_MAIL = r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}"
_NUMBER = r"\+?\d[\d ()/-]{6,20}\d"
_PLACEHOLDERS = {"@mail": _MAIL, "@number": _NUMBER, "@address": f"(?:{_MAIL}|{_NUMBER})"}
_ANYWHERE = "\\w{0,24}"
_SOME_WORDS = r"\s(?:[\w'’.-]{1,30}\s){1,3}"


@dataclass(frozen=True, slots=True)
class Cues:
    """The compiled cues of one language."""

    questions: Mapping[str, re.Pattern[str]]
    """Topic → its pattern in questions, for folded text."""
    statements: Mapping[str, re.Pattern[str]]
    weak: re.Pattern[str]
    """Words that say little about the subject of a question."""
    subject: re.Pattern[str]
    """The speaker as the subject of a sentence."""
    unreal: re.Pattern[str]
    """Openings of conditions, fiction and dreams."""
    person: re.Pattern[str] | None
    """Pronouns of persons; None for a language whose sentences often have none."""
    name: re.Pattern[str]
    """A sentence in which the speaker tells its name, in the first group that matches; for text
    that is not folded."""
    relatives: re.Pattern[str]
    """All relatives in statements."""
    words: Mapping[str, str]
    """Topic → the cues of statements as words to search for."""


@cache
def cues(language: str) -> Cues:
    name = language if language in LANGUAGES else USUAL
    module = import_module(f"{__name__}.{name}")
    more = import_module(f"memservice_extractive.vocabulary.{name}").CUES
    has_spaces = name not in UNSPACED
    questions, statements, words = {}, {}, {}
    relatives = ""
    for topic in {**module.CUES, **more}:
        usual_cues, more_cues = _both(module.CUES.get(topic, "")), _both(more.get(topic, ""))
        question_cues, statement_cues = map(" ".join, zip(usual_cues, more_cues, strict=True))
        questions[topic] = pattern(question_cues, has_spaces)
        statements[topic] = pattern(statement_cues, has_spaces)
        if topic in RELATIVES:
            relatives += f" {statement_cues}"
        words[topic] = " ".join(
            cue.strip("!").replace("*", "").replace("_", " ")
            for cue in statement_cues.split()
            if "#" not in cue and "@" not in cue
        )
    return Cues(
        questions,
        statements,
        pattern(module.WEAK, has_spaces),
        pattern(module.SUBJECT, has_spaces),
        pattern(module.UNREAL, has_spaces),
        pattern(module.PERSON, has_spaces) if module.PERSON else None,
        re.compile(module.NAME),
        pattern(relatives, has_spaces),
        words,
    )


def _both(cue_list: str) -> tuple[str, str]:
    """The cues of questions and those of statements."""
    before, bar, after = cue_list.partition(" |")
    return before, after if bar else before


def pattern(cue_list: str, has_spaces: bool) -> re.Pattern[str]:
    """The pattern of a list of cues; one that never matches for an empty list."""
    alternatives = [_cue(cue, has_spaces) for cue in cue_list.split()]
    alternatives.sort(key=len, reverse=True)
    if not alternatives:
        return re.compile(r"(?!)")
    alternation = "|".join(alternatives)
    return re.compile(rf"(?<![^\W_])(?:{alternation})(?![^\W_])" if has_spaces else alternation)


def _cue(cue: str, has_spaces: bool) -> str:
    if cue in _PLACEHOLDERS:
        return _PLACEHOLDERS[cue]
    if cue.startswith("!"):
        return f"(?<![{HAN_LETTERS}]){_cue(cue[1:], has_spaces)}"
    cue = cue.replace("_*_", "\x02").replace("*", "\x00").replace("_", " ").replace("#", "\x01")
    return (
        re.escape(fold(cue))
        .replace("\x02", _SOME_WORDS)
        .replace("\x00", _ANYWHERE if has_spaces else "")
        .replace("\x01", r"\d{1,3}")
        .replace(r"\ ", r"\s")
    )
