"""Topics of questions and statements, such as `home` or `age`, recognized by cue words.

Each language has a module with its cues. A cue is a word; `*` stands for any ending, `_` for white
space, `_*_` for one to three words, or up to eight Chinese or Japanese characters, `#` for a number
in digits or words, `!` at its beginning for no Chinese character before it, `@mail` for an e-mail
address, `@number` for a telephone number, `@address` for either, `@sum` for a sum of money, and
`@street` for a place where post is sent.

Cues before ` | ` are those of questions, cues after it those of statements; without ` | ` they are
the same. Cues are compared with folded text (`memservice.domain.text.folding.fold`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from msgspec import Struct

from memservice.domain.text.folding import fold
from memservice.domain.text.scripts import HAN_LETTERS
from memservice_extractive.language import UNSPACED
from memservice_extractive.number_words import number
from memservice_extractive.vocabulary.questions import QUESTIONS
from memservice_extractive.vocabulary.shared import SHARED
from memservice_extractive.vocabulary.statements import STATEMENTS

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
        "neighbour",
        "partner",
        "children",
        "pets",
    }
)
"""Topics that are persons or animals: a statement can be about one of them and not its speaker."""
ANY_RELATIVE = re.compile("famil|famigl|verwandt|relative|parent|семь|亲戚|親戚|義理")
"""The beginning of a word for all relatives, for folded text."""
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
_AMOUNT = r"\d(?:[\d.,' ]{0,12}\d)?"
_CURRENCY = (
    r"(?:[$€£¥₽]|eur|usd|gbp|chf|brl|euros?|dollars?|dolares|dollari|pounds?|pfund|libras|sterline"
    r"|reais|francs?|franken|franchi|rublos?|rubel|roubles?|руб[а-я]{0,4}|тысяч[а-я]?|pesos?"
    r"|yen|yuan|[万千]?(?:元|块|円))"
)
_SUM = rf"(?:[$€£¥] ?{_AMOUNT}|(?:{_AMOUNT}|[一二三四五六七八九十百千万两]+) ?{_CURRENCY})"
_STREET = (
    r"(?:[^\W\d_]{2,30}(?:strasse|str\.|gasse|ring|weg|platz|allee|ufer|damm) \d{1,4}"
    r"|\d{1,5} [^\W\d_]{2,20}(?: [^\W\d_]{2,20})? (?:street|road|lane|avenue|drive|close|rd|st)"
    r"|(?:calle|avenida|plaza|paseo|rua|travessa|rue|boulevard|via|viale|piazza|corso) [^,.;]{2,40}"
    r"|(?:улиц[аеу]|проспект|переулок) [^.;]{2,40}|дом \d{1,4}|[路街道]\d{1,5}号"
    r"|[町目]\d{1,4}[-番の]"
    r"|p\.?o\.? box|postfach|apartado de correos|boite postale|casella postale|caixa postal)"
)
_PLACEHOLDERS = {
    "@street": _STREET,
    "@mail": _MAIL,
    "@number": _NUMBER,
    "@address": f"(?:{_MAIL}|{_NUMBER})",
    "@sum": _SUM,
}
_ANYWHERE = "\\w{0,24}"
_NO_DURATION = {
    "es": "(?<!hace )(?<!durante )(?<!por )(?<!en )(?<!pase )(?<!llevo )",
    "fr": "(?<!depuis )(?<!pendant )(?<!y a )(?<!en )(?<!dans )(?<!passe )",
    "it": "(?<!da )(?<!per )(?<!in )(?<!tra )(?<!fra )(?<!passato )",
    "pt": "(?<!ha )(?<!faz )(?<!por )(?<!durante )(?<!em )(?<!passei )",
}
"""Before a number of years that is an age."""
_OF_SOMETHING = {
    "es": r"(?!\s(?:de(?!\sedad)|del|como|sin)\b)",
    "fr": r"(?!\s(?:de|d'|sans|comme)(?![^\W_]))",
    "it": r"(?!\s(?:di(?!\seta)|da|come|senza)\b)",
    "pt": r"(?!\s(?:d[aeo]s?(?!\sidade)|como|sem)\b)",
}
"""After it: the years of something, or of somebody else."""
MIN_INFLECTED = 4
WITH_PLURAL_S = frozenset({"en", "es", "fr", "pt"})
GENDER_ENDINGS = {"es": "[oa]s?", "it": "[oaie]", "pt": "[oa]s?"}
COPULAS = {
    "es": ("soy_", "es_"),
    "fr": ("je_suis_", "est_"),
    "it": ("sono_", "e_"),
    "pt": ("sou_", "e_"),
}
""""I am" and "is" in cues."""
WITH_GENDER = frozenset({"pets", "profession"})
"""Topics whose nouns have both genders: of animals and of persons."""
_MIN_MODIFIER, _MIN_HEAD = 3, 6
"""Letters of the parts of a German compound."""
_NO_HEADS = frozenset({"mittel", "stelle"})
"""Heads that say too little: "Lebensmittel", "Haltestelle"."""
_LONG_WORD = re.compile(rf"[^\W\d_]{{{_MIN_MODIFIER + _MIN_HEAD},}}")
_WORD_ENDS = (r"(?<![^\W_])", r"(?![^\W_])")
_SOME_WORDS = r"\s(?:[\w'’.-]{1,30}\s){1,3}"
_SOME_CHARACTERS = r"[^\W_]{1,8}?"
"""For Chinese and Japanese."""


class Cues(Struct, frozen=True):
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
    heads: frozenset[str]
    """German nouns among the cues, which are the last part of compounds: "Prüfung" of
    "Zwischenprüfung". None for other languages."""

    def with_heads(self, folded: str) -> str:
        """Folded text, followed by the last parts of its compounds."""
        if not self.heads:
            return folded
        heads = [
            word[at:]
            for word in _LONG_WORD.findall(folded)
            for at in range(_MIN_MODIFIER, len(word) - _MIN_HEAD + 1)
            if word[at:] in self.heads
        ]
        return " ".join([folded, *heads])


@cache
def cues(language: str) -> Cues:
    name = language if language in LANGUAGES else USUAL
    module = import_module(f"{__name__}.{name}")
    more = import_module(f"memservice_extractive.vocabulary.{name}").CUES
    has_spaces = name not in UNSPACED
    questions, statements, words = {}, {}, {}
    relatives = ""
    cue_words: set[str] = set()
    for topic in {**module.CUES, **more, **STATEMENTS[name]}:
        usual_cues, more_cues = _both(module.CUES.get(topic, "")), _both(more.get(topic, ""))
        question_cues, statement_cues = map(" ".join, zip(usual_cues, more_cues, strict=True))
        question_cues += f" {QUESTIONS.get(name, {}).get(topic, '')}"
        statement_cues += f" {SHARED.get(topic, '')} {STATEMENTS[name].get(topic, '')}"
        is_relative = topic in RELATIVES
        if topic == "profession":
            statement_cues += _in_third_person(statement_cues, name)
        questions[topic] = pattern(question_cues, has_spaces, name, is_relative=is_relative)
        statements[topic] = pattern(
            statement_cues,
            has_spaces,
            name,
            has_plural=topic not in RELATIVES - {"pets"},
            has_gender=topic in WITH_GENDER,
            is_relative=is_relative,
        )
        if topic in RELATIVES:
            relatives += f" {statement_cues}"
        elif name == "de":
            cue_words.update(map(fold, f"{question_cues} {statement_cues}".split()))
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
        pattern(relatives, has_spaces, name, is_relative=True),
        words,
        # Verbs end in "en".
        frozenset(
            word
            for word in cue_words
            if word.isalpha()
            and len(word) >= _MIN_HEAD
            and not word.endswith("en")
            and word not in _NO_HEADS
        ),
    )


def _both(cue_list: str) -> tuple[str, str]:
    """The cues of questions and those of statements."""
    before, bar, after = cue_list.partition(" |")
    return before, after if bar else before


def _in_third_person(cue_list: str, language: str) -> str:
    """The cues with "I am" once more with "is", for what is told of a relative."""
    if language not in COPULAS:
        return ""
    first, third = COPULAS[language]
    cues_of_speaker = (cue for cue in cue_list.split() if cue.startswith(first))
    return "".join(f" {third}{cue.removeprefix(first)}" for cue in cues_of_speaker)


def pattern(
    cue_list: str,
    has_spaces: bool,
    language: str = USUAL,
    *,
    has_plural: bool = False,
    has_gender: bool = False,
    is_relative: bool = False,
) -> re.Pattern[str]:
    """The pattern of a list of cues; one that never matches for an empty list. `has_plural`,
    `has_gender`: nouns in it stand for their plural, or the other gender, as well.
    `is_relative`: "sister" does not stand for "sister-in-law", nor "mère" for "belle-mère"."""
    alternatives = []
    for cue in cue_list.split():
        is_word = len(cue) >= MIN_INFLECTED and cue.isalpha()
        if is_word and has_gender and cue.endswith("o") and language in GENDER_ENDINGS:
            alternatives.append(re.escape(fold(cue[:-1])) + GENDER_ENDINGS[language])
            continue
        plural = "s?" if is_word and has_plural and language in WITH_PLURAL_S else ""
        alternatives.append(_cue(cue, has_spaces, language) + plural)
    alternatives.sort(key=len, reverse=True)
    if not alternatives:
        return re.compile(r"(?!)")
    alternation = "|".join(alternatives)
    if not has_spaces:
        return re.compile(alternation)
    before, after = (r"(?<![\w-])", r"(?![^\W_]|-in-law)") if is_relative else _WORD_ENDS
    return re.compile(rf"{before}(?:{alternation}){after}")


def _cue(cue: str, has_spaces: bool, language: str) -> str:
    if cue in _PLACEHOLDERS:
        return _PLACEHOLDERS[cue]
    if cue.startswith("!"):
        return f"(?<![{HAN_LETTERS}]){_cue(cue[1:], has_spaces, language)}"
    is_age = cue.startswith("#")
    # "I am two" is seldom an age, and "two years" often is.
    figure = number(language, small=not cue.endswith("#")) if has_spaces else r"\d{1,3}"
    cue = cue.replace("_*_", "\x02").replace("*", "\x00").replace("_", " ").replace("#", "\x01")
    alternative = (
        re.escape(fold(cue))
        .replace("\x02", _SOME_WORDS if has_spaces else _SOME_CHARACTERS)
        .replace("\x00", _ANYWHERE if has_spaces else "")
        .replace("\x01", figure)
        .replace(r"\ ", r"\s")
    )
    if is_age:
        return f"{_NO_DURATION.get(language, '')}{alternative}{_OF_SOMETHING.get(language, '')}"
    return alternative
