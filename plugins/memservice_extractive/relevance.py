"""How well a sentence answers a question, by topics and word stems."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from memservice.domain.text.folding import fold
from memservice.domain.text.scripts import HIRAGANA_LETTERS
from memservice.domain.text.stems import stem
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED, detect
from memservice_extractive.lexicon import STOP
from memservice_extractive.requests import asks_for_fiction
from memservice_extractive.worth import is_question, judge

ENOUGH = 0.6
"""Minimum score of a sentence that answers a question. Chosen on the conversations of
tests/services/no_model."""
TOPIC_WEIGHT = 2.0
"""Weight of a topic of the question, relative to another of its words."""
STYLE = "style"
"""The topic of questions about how to answer, which instructions answer."""
INSTRUCTION = "instruction"
NARROWER = {"employer": frozenset({"commute"})}
"""Topics whose cues others have too: a statement with one of those is not about the topic."""
COVERED = {
    "home": ("email", "phone"),
    "money": ("employer", "profession"),
    "phone": ("device",),
}
"""Topics whose words can be part of an expression of another: "address" in "e-mail address"."""
NOT_SHARED = 0.2
"""How much less a statement about one of two topics that share a word of the question counts."""
RELATIVE_ONLY = 0.5
"""Maximum score of a statement that names a relative and tells nothing of what is asked."""
_OTHER_SUBJECT = 0.45
"""Subtracted from the score of a statement about a relative, for a question about its speaker."""
_OTHER_PERSON = 0.5
"""The same for a statement about a person whom the question does not name: it is no answer."""
_UNREAL = 0.5
_NEAR_WORD = 0.8
"""What a word of the question counts that a statement has in another form, or as a part."""
_MIN_PART = 5
_SHARED_PART = 0.7
_OTHER_AUTHOR = 0.1

_WORD = re.compile(r"[^\W_]+")
_BEFORE_NAME = (
    r",? (?:named |called |namens |heisst |se llama |s'appelle |si chiama |se chama |chamad[ao] "
    r"|зовут )?"
)
"""Between a relative and its name, for folded text."""
_SENTENCE_START = re.compile(r"(?:^|[.!?…:])\W*([^\W_]+)")
_JA_SUBJECT = re.compile(r"[^、。と]{1,8}?[はが]")
"""A relative that is the subject of its sentence, in Japanese: not "with my sister"."""
_HIRAGANA_RUN = re.compile(f"[{HIRAGANA_LETTERS}]+")
_RUN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")
"""Successive characters of one kind, in Chinese and Japanese."""
_NAMED_SUBJECT = re.compile(
    r"([A-Z][a-z]+)(?: [A-Z][a-z]+)?(?:'s| is| was| has| had| lives| lived| works| worked| moved"
    r"| likes| loves| hates| eats| drinks| owns| plays| speaks| studies| prefers)\b"
)
_FIRST_PERSON = re.compile(r"\b(?:I|my|me|mine|we|our|us|My|We|Our)\b")
_OF_ITSELF = re.compile(r"(?:I|I'm|I've|My)\b")
_SECOND_PERSON = re.compile(r"\byou(?:r|rs|'re|'ve)?\b", re.I)
REPLY_MARK = " – "
"""Between a question and its reply, in one statement."""
_FIRST_WORDS = 3
"""A relative among the first words of a sentence is its subject."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a sentence or question is about."""

    topics: frozenset[str]
    choices: Sequence[frozenset[str]]
    """Its topics by the words that stand for them: "phone" can be a number or a device, and a
    statement about either is about it."""
    words: frozenset[str]
    """Stems of its other words that carry information; for Chinese and Japanese pairs of
    characters."""


class Question:
    """A question that statements are compared with."""

    def __init__(self, text: str, names: Collection[str] = (), usual: str = "en") -> None:
        """`names` are those of its subject; they are no words of the question. `usual`: the
        language of the texts that it is compared with, which a short question seldom tells."""
        self.language = detect(text, usual)
        folded_names = [fold(name) for name in names if name]
        self._names = {word for name in folded_names for word in _WORD.findall(name)}
        capitals = self._capitals_within(text)
        own = self._names_in_another_script(capitals)
        folded = fold(text)
        if len(own) == 1:
            # Its own, likely, in place of which its statements have "I".
            folded = re.sub(rf"(?<![^\W_]){re.escape(*own)}(?![^\W_])", " ", folded)
        self.content = _content_asked(folded, self.language, folded_names)
        self._compared = self.content.topics.union(
            topics.RELATIVES,
            {"wedding"},
            *(NARROWER.get(topic, ()) for topic in self.content.topics),
        )
        self._capitals = (
            frozenset(word for word in self.content.words if len(word) > 1)
            if self.language in UNSPACED
            else capitals
        )
        """Words that can be names; in Chinese and Japanese pairs of characters."""
        self._people = self._people_named()
        person = topics.cues(self.language).person
        self.is_personal = (
            not self.content.topics <= topics.IMPERSONAL
            or person is None
            or bool(person.search(folded))
            or any(name in fold(text) for name in folded_names)
            or bool(own)
        )
        """Whether it can be about its subject: it has a topic of persons, a pronoun or a name that
        can be its own."""

    def with_names_of(self, sentences: Sequence[str]) -> Question:
        """The question without the names by which the subject introduces itself in its sentences.
        The names that it gives its relatives are those of other people."""
        cues = topics.cues(self.language)
        names = {
            name
            for sentence in sentences
            for match in cues.name.finditer(sentence)
            for name in _rest_stems(fold(match[match.lastindex or 0]), self.language)
        }
        question = copy(self)
        question.content = replace(self.content, words=self.content.words - names)
        question._people = (self._people | self._relatives_named(sentences)) - names
        return question

    def _relatives_named(self, sentences: Sequence[str]) -> frozenset[str]:
        """Words of the question that follow a relative in a sentence: "my sister Anna"."""
        relatives = topics.cues(self.language).relatives
        gap = "(?:の|叫)?" if self.language in UNSPACED else _BEFORE_NAME
        end = "" if self.language in UNSPACED else r"(?![^\W_])"
        patterns = {
            word: re.compile(f"(?:{relatives.pattern}){gap}{re.escape(word)}{end}")
            for word in self._capitals
        }
        folded = [fold(sentence) for sentence in sentences]
        return frozenset(
            word if self.language in UNSPACED else stem(word, self.language)
            for word, pattern in patterns.items()
            if any(map(pattern.search, folded))
        )

    def _names_in_another_script(self, capitals: frozenset[str]) -> frozenset[str]:
        """Names that can be the subject's, which is known in Latin letters only."""
        is_latin = bool(self._names) and all(map(str.isascii, self._names))
        return frozenset(word for word in capitals if is_latin and not word.isascii())

    def _capitals_within(self, text: str) -> frozenset[str]:
        """Words that begin with a capital, but not at the beginning of a sentence."""
        if self.language in UNSPACED:
            return frozenset()
        capitals = {fold(each[0]) for each in _WORD.finditer(text) if each[0][0].isupper()}
        first = {fold(each[1]) for each in _SENTENCE_START.finditer(text)}
        return frozenset(capitals - first - self._names - _folded_stop(self.language))

    def _people_named(self) -> frozenset[str]:
        """Stems of the words with a capital that are none of the subject's names; none without a
        subject, whose statements may be those of the person. In German every noun has a capital,
        and an id in Latin letters does not tell how the name is written in others."""
        if not self._names or self.language in UNSPACED or self.language == "de":
            return frozenset()
        names = set(self._capitals)
        if all(map(str.isascii, self._names)):
            names = set(filter(str.isascii, names))
        return frozenset(stem(name, self.language) for name in names)

    @property
    def is_about_nothing(self) -> bool:
        """Whether it has neither topics nor words."""
        return not self.content.topics and not self.content.words

    def search_words(self) -> str:
        """Words that statements about the topics of the question have; "" without a topic, or if
        it is not about a person."""
        if not self.is_personal:
            return ""
        listed = topics.cues(self.language).words
        return " ".join(listed[topic] for topic in sorted(self.content.topics) if topic in listed)

    def score(self, sentence: str, language: str, *, is_own: bool = True) -> float:
        """0 to 1; 1 for an instruction, if the question is about style. `language`: that of the
        sentence. `is_own`: the subject of the question wrote it, or it is a conclusion."""
        if is_question(sentence, language) and not _is_reply(sentence):
            return 0.0
        question_content = self.content
        weight = TOPIC_WEIGHT * len(question_content.choices) + len(question_content.words)
        if not weight:
            return 0.0
        statement_topics = _topics_told(sentence, language, self._compared)
        if language != self.language:
            # The language of a short sentence is often uncertain.
            statement_topics |= _topics_told(sentence, self.language, self._compared)
        shared_topics = question_content.topics & statement_topics
        for topic in shared_topics & NARROWER.keys():
            if NARROWER[topic] & statement_topics - question_content.topics:
                shared_topics -= {topic}
        shared_topics -= {STYLE}
        if STYLE in question_content.topics and judge(sentence, language).kind == INSTRUCTION:
            return 1.0
        relatives = question_content.topics & topics.RELATIVES
        if relatives and not relatives & statement_topics:
            return 0.0
        stems = _stems(sentence, self.language)
        shared_words = sum(self._nearness(word, stems) for word in question_content.words)
        shared_choices = sum(_share(each, shared_topics) for each in question_content.choices)
        score = (TOPIC_WEIGHT * shared_choices + shared_words) / weight
        if relatives and not self._tells_of_relative(shared_topics):
            score = min(score, RELATIVE_ONLY)
        of_another = (
            not is_own and _OF_ITSELF.match(sentence) and not _SECOND_PERSON.search(sentence)
        )
        if (
            of_another
            or self._is_about_another_name(sentence, language)
            or not self._people <= stems
        ):
            score -= _OTHER_PERSON
        elif not relatives and not self._people and _is_about_other(sentence, language):
            score -= _OTHER_SUBJECT
        elif (
            "partner" in relatives
            and "wedding" in statement_topics
            and _relatives_at_start(fold(sentence), language, topics.RELATIVES - relatives)[1]
        ):
            # It is the wedding of another.
            score -= _OTHER_PERSON
        if is_unreal(sentence, language):
            score -= _UNREAL
        return max(0.0, score - (0 if is_own else _OTHER_AUTHOR))

    def _nearness(self, word: str, stems: Collection[str]) -> float:
        """1 for a stem of a statement, less for one that shares its beginning, or that it is a
        part of."""
        if word in stems:
            return 1.0
        if self.language in UNSPACED or len(word) < _MIN_PART:
            return 0.0
        near = any(
            _share_beginning(word, other) or word in other or other in word
            for other in stems
            if len(other) >= _MIN_PART
        )
        return _NEAR_WORD if near else 0.0

    def _tells_of_relative(self, shared_topics: frozenset[str]) -> bool:
        """Whether a statement about a relative has a topic of what is asked about the relative;
        true if nothing else is asked."""
        others = [each for each in self.content.choices if each.isdisjoint(topics.RELATIVES)]
        return not others or any(not each.isdisjoint(shared_topics) for each in others)

    def _is_about_another_name(self, sentence: str, language: str) -> bool:
        """Whether a person whom neither the subject's names nor the question contain is the subject
        of a sentence. Only English sentences of the form "Tom is …", "Tom lives …": a noun that
        other sentences begin with ("Birthday is …") has a topic."""
        match = _NAMED_SUBJECT.match(sentence) if language == "en" else None
        if match is None or _FIRST_PERSON.search(sentence):
            return False
        name = fold(match[1])
        if name in self._names or name in _folded_stop(language):
            return False
        if _topics_told(name, language, frozenset(topics.cues(language).statements)):
            return False
        return stem(name, language) not in self.content.words


def _share_beginning(one: str, other: str) -> bool:
    pairs = zip(one, other, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared >= _MIN_PART and shared >= _SHARED_PART * max(len(one), len(other))


def _share(choice: frozenset[str], shared_topics: frozenset[str]) -> float:
    """How far a statement is about a choice of topics: one of them is enough, and a statement about
    all of them comes before those about one."""
    shared = len(choice & shared_topics)
    return 1 - NOT_SHARED * (1 - shared / len(choice)) if shared else 0.0


def is_unreal(sentence: str, language: str) -> bool:
    """Whether a sentence is a condition, fiction or a dream."""
    return bool(topics.cues(language).unreal.search(fold(sentence))) or asks_for_fiction(sentence)


def _is_reply(sentence: str) -> bool:
    return REPLY_MARK in sentence


def _is_about_other(sentence: str, language: str) -> bool:
    """Whether a relative, and not its speaker, is the subject of a sentence."""
    folded = fold(sentence)
    head, starts = _relatives_at_start(folded, language, topics.RELATIVES)
    if not starts:
        return False
    if language == "ja":
        return any(_JA_SUBJECT.match(folded, start) for start in starts)
    return not topics.cues(language).subject.search(folded, len(head))


def _relatives_at_start(folded: str, language: str, among: frozenset[str]) -> tuple[str, list[int]]:
    """The first words of a sentence, and where these relatives are in them."""
    statements = topics.cues(language).statements
    question, dash, _ = folded.partition(REPLY_MARK)
    if dash:
        head = question
    elif language in UNSPACED:
        head = folded[:6]
    else:
        words = list(_WORD.finditer(folded))[:_FIRST_WORDS]
        head = folded[: words[-1].end()] if words else ""
    starts = [
        match.start()
        for topic in among
        if topic in statements and (match := statements[topic].search(head))
    ]
    return head, starts


def _mask(pattern: re.Pattern[str], folded: str, mask: bytearray) -> bool:
    """Mark the characters of all matches; whether there is one."""
    has_match = False
    for match in pattern.finditer(folded):
        has_match = True
        mask[match.start() : match.end()] = b"\1" * (match.end() - match.start())
    return has_match


def _content_asked(folded: str, language: str, names: Collection[str]) -> Content:
    cues = topics.cues(language)
    mask = bytearray(len(folded))
    spans = {
        topic: [match.span() for match in pattern.finditer(folded)]
        for topic, pattern in cues.questions.items()
    }
    spans = {topic: each for topic, each in spans.items() if each}
    for start, end in (span for each in spans.values() for span in each):
        mask[start:end] = b"\1" * (end - start)
    for topic in spans.keys() & COVERED.keys():
        longer = [span for each in COVERED[topic] for span in spans.get(each, ())]
        spans[topic] = [span for span in spans[topic] if not _is_within(span, longer)]
    spans = {topic: each for topic, each in spans.items() if each}
    _mask(cues.weak, folded, mask)
    for name in names:
        _mask(re.compile(re.escape(name)), folded, mask)
    rest = "".join(" " if mask[index] else char for index, char in enumerate(folded))
    words = frozenset(_rest_stems(rest, language))
    return Content(frozenset(spans), _choices(spans), words)


def _is_within(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    """Whether it is part of a longer one."""
    return any(a <= span[0] and span[1] <= b and (a, b) != span for a, b in others)


def _choices(spans: Mapping[str, Sequence[tuple[int, int]]]) -> list[frozenset[str]]:
    """The topics that share a word of the question, together."""
    choices: list[tuple[set[str], list[tuple[int, int]]]] = []
    for topic, topic_spans in spans.items():
        joined, joined_spans = {topic}, list(topic_spans)
        separate = []
        for choice in choices:
            if any(a < d and c < b for a, b in joined_spans for c, d in choice[1]):
                joined |= choice[0]
                joined_spans += choice[1]
            else:
                separate.append(choice)
        choices = [*separate, (joined, joined_spans)]
    return [frozenset(each) for each, _ in choices]


@lru_cache(maxsize=2_048)
def _topics_told(sentence: str, language: str, among: frozenset[str]) -> frozenset[str]:
    """Those of the topics that a sentence is about, or that the question of a reply asks for: "How
    old are you? – 34"."""
    folded = fold(sentence)
    cues = topics.cues(language)
    question, dash, _ = folded.partition(REPLY_MARK)
    return frozenset(
        topic
        for topic in among
        if topic in cues.statements
        and (
            cues.statements[topic].search(folded)
            or (dash and cues.questions[topic].search(question))
        )
    )


def _rest_stems(folded: str, language: str) -> set[str]:
    if language in UNSPACED:
        # A run of Hiragana alone is grammar.
        runs = [run for run in _RUN.findall(folded) if not _HIRAGANA_RUN.fullmatch(run)]
        return {part for run in runs for part in _parts(run)}
    stop = _folded_stop(language)
    return {stem(word, language) for word in _WORD.findall(folded) if word not in stop}


def _stems(sentence: str, language: str) -> set[str]:
    folded = fold(sentence)
    if language in UNSPACED:
        return _pairs(folded)
    return {stem(word, language) for word in _WORD.findall(folded)}


def _parts(run: str) -> set[str]:
    """A run of Latin letters and digits as a whole, another run as overlapping pairs."""
    if run.isascii() or len(run) == 1:
        return {run}
    return {run[index : index + 2] for index in range(len(run) - 1)}


def _pairs(folded: str) -> set[str]:
    """All parts of a text in Chinese or Japanese, and its single characters."""
    pairs = {pair for run in _RUN.findall(folded) for pair in _parts(run)}
    return pairs | {char for char in folded if not char.isascii()}


@lru_cache(maxsize=16)
def _folded_stop(language: str) -> frozenset[str]:
    return frozenset(
        part for word in STOP.get(language, STOP["en"]) for part in _WORD.findall(fold(word))
    ) | frozenset(("s",))
