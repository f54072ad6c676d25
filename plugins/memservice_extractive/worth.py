"""Decides whether a sentence states something worth remembering, without a model: by set phrases,
word lists and the number of remaining content words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import cache, lru_cache

from msgspec import Struct

from memservice.domain.text.scripts import (
    HAN_LETTERS,
    HIRAGANA_LETTERS,
    KANA_LETTERS,
    KATAKANA_LETTERS,
)
from memservice_extractive import phrases, requests
from memservice_extractive.language import UNSPACED, end_of_words, fold, words
from memservice_extractive.lasting_requests import lasts
from memservice_extractive.lexicon import (
    EMPTY_CHINESE,
    EMPTY_JAPANESE,
    FIRST_PERSON,
    SECOND_PERSON,
    SPEECH_VERBS,
    STOP,
    WEAK,
)
from memservice_extractive.sentences import MAX_LENGTH
from memservice_extractive.standing_requests import is_standing
from memservice_extractive.when import span

_ADDRESS = re.compile(r"https?://\S+|www\.\S+|`[^`]*`|[@#][\w-]+")
_OPENING = re.compile('["“„«»「『]')
_CLOSING = {
    mark: re.compile(f"[{ends}]")
    for mark, ends in zip('"“„«»「『', ('"', "”", "“”", "»", "«", "」", "』"), strict=True)
}
_TRAILING_NAME = re.compile(r",\s*+[A-ZÄÖÜ][\w'’-]++(?: [A-Z][\w'’-]++)?+\s*+[.!~…]*+$")
_LEADING_NAME = re.compile(r"^(?:[A-ZÄÖÜ][\w'’-]+),\s+(?=\w)")
_NAME_WITHIN = re.compile(r"(?<=[a-z,] )(?!I\b|I')[A-Z][\w'’-]+")
_REACTION = re.compile(
    r"^\W*(?:lol+|lmao|rofl|(?:ha){2,}h?|(?:he){2,}|(?:hi){2,}|omg|wow|whoa|u+gh|ew+|yikes|oof|xd+"
    r"|(?:ja){2,}|(?:je){2,}|mdr+|ptdr|k{3,}|(?:rs){2,}|(?:ха){2,}х?|(?:ах){2,}а?|ого|фу|бо+же)\b",
    re.I,
)
"""A word of laughter or surprise at the beginning."""
_SOMETHING_IS = re.compile(
    r"^\W*(?:(?:[\w-]+['’]s|c['’]est|c['’]était)\b|(?:[\w-]+\s+){1,4}(?:is|was|are|were|looks?|looked"
    r"|sounds?|sounded|ist|war|waren|est|était|fue|era|es|foi|é|è|был[аои]?)(?![\w'’]))",
    re.I,
)
"""Something is judged. A speaker who leaves "I" out says what was done: "lol bought a car"."""
_INTRODUCTION = re.compile(
    r"^(?:(?:[^\W\d_]+\s){0,3}[^\W\d_]+:\s+|"
    r"(?:(?:ach ?so|ah|oh|ok|okay)\W+)?(?:und|and|y|et|e|и|а)\s+)",
    re.I,
)
"""What stands before a request without a full stop: "One thing: ", "Achso und "."""
_CAPITAL = re.compile(r"(?<![.!?…])\s(?!I\b)[A-ZÀ-ÖØ-ÞА-ЯЁ]")
"""A name, or a German noun: a capital letter after the beginning of a sentence."""
_LETTERS = re.compile(r"[^\W\d_]")
_CJK_SPEECH = re.compile(r"说道?|告诉|问|写道?|讲|と言い?った|と言って|と言う|と書い|と聞い")
_EMPTY = {
    "zh": re.compile("|".join(sorted(EMPTY_CHINESE, key=len, reverse=True))),
    "ja": re.compile("|".join(sorted(EMPTY_JAPANESE, key=len, reverse=True))),
}
_CJK_FIRST_PERSON = {"zh": re.compile("我|咱"), "ja": re.compile("私|僕|俺|わたし|うち")}
_CJK_SECOND_PERSON = {"zh": re.compile("^(?:你|您)"), "ja": re.compile("^(?:あなた|君|きみ)")}
_UNSPACED_RUN = re.compile(
    rf"[{HAN_LETTERS}]|[{KATAKANA_LETTERS}]+|[{HIRAGANA_LETTERS}]+"
    rf"|[^\W_{HAN_LETTERS}{KANA_LETTERS}]+"
)

_MAX_JUDGED = 2_048
"""Sentences whose judgements are cached: those of about seventy long messages, which are read for a
short summary, for a long one, and for conclusions."""
_ANY_DAY = date(2024, 1, 1)
"""To find words of time, whatever the day."""


class Judgement(Struct, frozen=True):
    """`kind` is `statement` or `instruction` if the sentence is worth keeping, else the reason why
    it is not, for instance `question`."""

    kind: str

    @property
    def keep(self) -> bool:
        return self.kind in ("statement", "instruction")


def is_question(sentence: str, language: str) -> bool:
    """Whether the sentence has a question mark, or the first or last words of a question."""
    ending = sentence[end_of_words(sentence, "_") :]
    if "?" in ending or "？" in ending or sentence.startswith("¿"):
        return True
    pattern = phrases.QUESTION.get(language)
    return bool(pattern and pattern.search(_bare(sentence)))


def core(sentence: str, language: str, *, vocatives: bool = True) -> str:
    """The sentence without greetings, acknowledgements and (with `vocatives`) names of the
    addressee; "" if nothing remains."""
    text = sentence.strip()
    for _ in range(6):
        before = text
        if language in UNSPACED:
            text = _without_start(phrases.CJK_OPENER[language], text)
        else:
            text = _without_start(phrases.GREETING, text)
            text = _without_start(phrases.OPENER, text)
        if text == before:
            break
    if vocatives and language not in UNSPACED and "," in text:
        text = _TRAILING_NAME.sub("", text)
        text = _without_start(_LEADING_NAME, text)
    return text.strip()


def _without_start(pattern: re.Pattern[str], text: str) -> str:
    """Without what matches at the beginning. `sub` would look at every character."""
    match = pattern.match(text)
    return text[match.end() :] if match else text


def judge(sentence: str, language: str) -> Judgement:
    """The judgement of one sentence. A text longer than any sentence of `sentences.split` is not a
    statement."""
    if len(sentence) > MAX_LENGTH:
        return Judgement("filler")
    return _judge(sentence, language)


@lru_cache(maxsize=_MAX_JUDGED)
def _judge(sentence: str, language: str) -> Judgement:
    if lasts(sentence, language):
        return Judgement("instruction")
    if is_question(sentence, language):
        return Judgement("question")
    text = core(_ADDRESS.sub(" ", sentence), language)
    if not _LETTERS.search(text):
        return Judgement("filler")
    if text != sentence and is_question(text, language):
        return Judgement("question")
    if _is_quotation(text, language):
        return Judgement("quotation")
    if requests.asks_for_fiction(text):
        return Judgement("command")
    if is_standing(text):
        return Judgement("instruction")
    if _is_reaction(sentence, language):
        return Judgement("reaction")
    bare = _bare(text)
    filler = (phrases.CJK_FILLER if language in UNSPACED else phrases.FILLER).get(language)
    if filler and filler.search(bare):
        return Judgement("filler")
    kind = "statement"
    command = phrases.COMMAND.get(language)
    # An opener such as "please" belongs to the command, so match the sentence with and without it.
    starts = {bare, _bare(sentence), _without_start(_INTRODUCTION, bare)}
    is_command = command is not None and any(map(command.search, starts))
    tokens = () if language in UNSPACED else words(text)
    if is_command and not requests.is_experience(bare, language):
        is_lasting = phrases.STANDING[language].search(sentence) or phrases.REPLIES.search(sentence)
        if is_lasting and not requests.asks_again(sentence):
            kind = "instruction"
        elif not requests.notes(sentence):
            return Judgement("command")
    elif _addresses_other(text, tokens, language):
        return Judgement("address")
    is_informative = _informative(text, tokens, language, subject_needed=kind == "statement")
    return Judgement(kind if is_informative else "filler")


def _informative(text: str, tokens: Sequence[str], language: str, *, subject_needed: bool) -> bool:
    """Whether the text has two content words among three or more words, or one content word and a
    first person or a name."""
    if language in UNSPACED:
        units = content_units(text, language)
        is_first_person = (
            language == "ja" or bool(_CJK_FIRST_PERSON[language].search(text)) or not subject_needed
        )
        return units >= (2 if is_first_person else 3)
    units = len(_content_words(tokens, language))
    is_first_person = not FIRST_PERSON.get(language, FIRST_PERSON["en"]).isdisjoint(tokens)
    if units == 0 or (
        len(tokens) < 3 and subject_needed and not is_first_person and language in STOP
    ):
        return False
    if units >= 2:
        return True
    named = language != "de" and bool(_NAME_WITHIN.search(text))
    return is_first_person or named or not subject_needed or language not in STOP


def content_words(text: str, language: str) -> list[str]:
    """Folded words that carry information, in order: all but the listed ones."""
    return _content_words(words(text), language)


def _content_words(tokens: Sequence[str], language: str) -> list[str]:
    ignored = _ignored(language)
    return [word for word in tokens if word not in ignored and (len(word) > 1 or word.isdigit())]


@cache
def _ignored(language: str) -> frozenset[str]:
    return STOP.get(language, STOP["en"]) | WEAK.get(language, WEAK["en"])


def content_units(text: str, language: str) -> int:
    """The amount of information: content words, or for Chinese and Japanese, characters that are
    neither grammar nor commonplace."""
    if language not in UNSPACED:
        return len(content_words(text, language))
    units = 0
    for run in _UNSPACED_RUN.findall(_EMPTY[language].sub(" ", fold(text))):
        if "\u3041" <= run[0] <= "\u3096":
            units += 2 if len(run) > 1 else 0
        else:
            units += 1 if len(run) == 1 and not run.isdigit() else 2
    return units


def has_quotation_mark(text: str) -> bool:
    """Whether a quotation can begin in it."""
    return _OPENING.search(text) is not None


def without_quotations(text: str) -> str:
    """The text with a blank for each quotation that is closed and not empty."""
    parts: list[str] = []
    # Where each kind is closed next. Cached, so that opening marks without an end do not cost a
    # search each.
    next_end: dict[str, int] = {}
    start = position = 0
    while match := _OPENING.search(text, position):
        mark, position = match[0], match.end()
        if next_end.get(mark, -1) < position:
            closing = _CLOSING[mark].search(text, position)
            next_end[mark] = closing.start() if closing else len(text)
        if position < next_end[mark] < len(text):
            parts.append(text[start : match.start()])
            start = position = next_end[mark] + 1
    return " ".join([*parts, text[start:]])


def _is_reaction(sentence: str, language: str) -> bool:
    """Whether the sentence laughs or marvels at something and tells nothing else: neither of the
    speaker, nor with a name, a number or a time."""
    start = _REACTION.match(sentence)
    if start is None or language in UNSPACED:
        return False
    rest = sentence[start.end() :]
    if not _SOMETHING_IS.search(rest):
        return False
    first_person = FIRST_PERSON.get(language, FIRST_PERSON["en"]) | FIRST_PERSON["en"]
    if not first_person.isdisjoint(words(rest)):
        return False
    if any(char.isdigit() for char in rest) or _CAPITAL.search(rest):
        return False
    return span(rest, _ANY_DAY, language) is None


def _bare(text: str) -> str:
    """The text up to its last letter or digit."""
    return text[: end_of_words(text)]


def _is_quotation(text: str, language: str) -> bool:
    """Whether the whole sentence, except for the name of its speaker, is in quotation marks. Then
    it is another speaker's sentence."""
    rest = without_quotations(text)
    if rest == text:
        return False
    if language in UNSPACED:
        return content_units(_CJK_SPEECH.sub("", rest), language) < 3
    return len([word for word in content_words(rest, language) if word not in SPEECH_VERBS]) < 2


def _addresses_other(text: str, tokens: Sequence[str], language: str) -> bool:
    """Whether the sentence is about the listener. As a conclusion it would read as if it were about
    the speaker."""
    if language in UNSPACED:
        return bool(_CJK_SECOND_PERSON[language].search(text)) and not _CJK_FIRST_PERSON[
            language
        ].search(text)
    second_person = SECOND_PERSON.get(language, SECOND_PERSON["en"])
    return bool(second_person.intersection(tokens[:2])) and FIRST_PERSON.get(
        language, FIRST_PERSON["en"]
    ).isdisjoint(tokens)
