"""How well a sentence answers a question, by topics and word stems."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from functools import cached_property

from msgspec.structs import replace

from memservice.domain.text.folding import fold
from memservice.domain.text.scripts import HIRAGANA_LETTERS
from memservice.domain.text.stems import stem
from memservice_extractive import answer_types, asked_values, topics
from memservice_extractive.language import UNSPACED, detect
from memservice_extractive.own_names import (
    forms_pattern,
    introduced_at_start,
    is_form_of,
)
from memservice_extractive.question_content import (
    MIN_PART,
    RELATION,
    WORD,
    content_asked,
    folded_stop,
    parted,
    rest_stems,
    share_beginning,
    stems_of,
)
from memservice_extractive.question_frames import without_frame
from memservice_extractive.relatives_named import BEFORE_NAME, relatives_in, relatives_named
from memservice_extractive.replies import begins_with_pronoun
from memservice_extractive.subjects import (
    CLAUSE_END,
    is_about_other,
    is_about_other_relative,
    is_reply,
    is_unreal,
    topics_told,
)
from memservice_extractive.worth import is_question, judge

ENOUGH = 0.68
"""Minimum score of a sentence that answers a question. Chosen on the conversations of
tests/services/no_model."""
TOPIC_WEIGHT = 2.0
"""Weight of a topic of the question, relative to another of its words."""
_ATTITUDES = frozenset({"dislike", "fear"})
_ATTITUDE_WEIGHT = 3.0
"""That of what the subject thinks of a thing, whose kind a statement need not name: coriander, for
a question for herbs."""
NAME_WEIGHT = 0.6
"""That of a name which can be the subject's: a topic answers a question without it."""
STYLE = "style"
"""The topic of questions about how to answer, which instructions answer."""
INSTRUCTION = "instruction"
_OTHER_INSTRUCTION = 0.9
"""Score of an instruction without a word of the question, if that is about style."""
NARROWER = {"employer": frozenset({"commute"}), "car": frozenset({"travel"})}
"""Topics whose cues others have too: a statement with one of those is not about the topic."""
NOT_SHARED = 0.2
"""How much less a statement about one of two topics that share a word of the question counts."""
RELATIVE_ONLY = 0.5
"""Maximum score of a statement that names a relative and tells nothing of what is asked."""
_OTHER_SUBJECT = 0.45
"""Subtracted from the score of a statement about a relative, for a question about its speaker."""
_OTHER_PERSON = 0.5
"""The same for a statement about a person whom the question does not name: it is no answer."""
_UNREAL = 0.5
_NO_VALUE = 0.5
"""The same for a statement without a time, number or name, if the question asks for one."""
_VALUE = 0.05
"""Added to that of one that has the time or number for which the question asks."""
_REQUEST = 0.4
"""The same for a request that is kept, if the question is not about how to answer."""
_REQUESTED = frozenset({STYLE, "nickname", "contact", "delivery", "email", "phone", "appointment"})
"""Topics of questions that requests answer."""
_NEAR_WORD = 0.8
"""What a word of the question counts that a statement has in another form, or as a part."""
_OTHER_AUTHOR = 0.1

_FAMILY = re.compile(
    r"(?<![^\W_])(?:the family(?:'s)?|(?:die|der) familie|la familia|de la famille|la famille"
    r"|della famiglia|la famiglia|d?a familia|семь[яеиюё]\w?)(?![^\W_])|一家人|全家人?|家族の?"
)
"""The family of the speaker, which is "we" in its statements, for folded text."""

_KANA = re.compile(f"[{HIRAGANA_LETTERS}]")
_SENTENCE_START = re.compile(r"(?:^|[.!?…:])\W*([^\W_]+)")
_NAMED_SUBJECT = re.compile(
    r"([A-Z][a-z]+)(?: [A-Z][a-z]+)?(?:'s| is| was| has| had| lives| lived| works| worked| moved"
    r"| likes| loves| hates| eats| drinks| owns| plays| speaks| studies| prefers)\b"
)
_FIRST_PERSON = re.compile(r"\b(?:I|my|me|mine|we|our|us|My|We|Our)\b")
_OF_ITSELF = re.compile(r"(?:I|I'm|I've|My)\b")
_SECOND_PERSON = re.compile(r"\byou(?:r|rs|'re|'ve)?\b", re.I)


class Question:
    """A question that statements are compared with."""

    def __init__(self, text: str, names: Collection[str] = (), usual: str = "en") -> None:
        """`names` are those of its subject; they are no words of the question. `usual`: the
        language of the texts that it is compared with, which a short question seldom tells."""
        self.language = detect(text, usual)
        folded_names = [fold(name) for name in names if name]
        self._names = {word for name in folded_names for word in WORD.findall(name)}
        capitals = self._capitals_within(text)
        own = self._names_in_another_script(capitals)
        self._own_forms = forms_pattern(self._names | own)
        folded = parted(without_frame(fold(text), self.language), self.language)
        if len(own) == 1:
            # Its own, likely, in place of which its statements have "I".
            folded = re.sub(rf"(?<![^\W_]){re.escape(*own)}(?![^\W_])", " ", folded)
        self._folded = self._without_family(folded)
        self.content = content_asked(self._folded, self.language, folded_names)
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
        self._scores: dict[tuple[str, str, bool], float] = {}
        """Of sentences: a message, its conclusion and what is looked up often have the same."""
        self._people = self._people_named()
        self._named: Mapping[str, frozenset[str]] = {}
        """Names of relatives → their topics, if the question is about a relative."""
        self._uncertain = self._uncertain_names()
        """Words that are likely the name of the subject: they count together as one word."""
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
        if self.language in UNSPACED:
            return self._without_own_name(sentences)._with_relatives(sentences)
        cues = topics.cues(self.language)
        names = {
            name
            for sentence in sentences
            for match in cues.name.finditer(sentence)
            for name in rest_stems(fold(match[match.lastindex or 0]), self.language)
        }
        question = copy(self)
        question._scores = {}
        question.content = replace(self.content, words=self.content.words - names)
        question._people = (self._people | self._relatives_named(sentences)) - names
        return question._with_relatives(sentences)

    def _with_relatives(self, sentences: Sequence[str]) -> Question:
        if not self.content.topics.isdisjoint(topics.RELATIVES):
            self._named = relatives_named(sentences, self.language)
        return self

    def _without_own_name(self, sentences: Sequence[str]) -> Question:
        """In Chinese and Japanese a name has no sign of its own, so its characters join those that
        follow it. Without the introduction of its speaker they stay uncertain."""
        name = introduced_at_start(self._folded, sentences, self.language)
        question = copy(self)
        question._scores = {}
        if name:
            question.content = content_asked(self._folded, self.language, [*self._names, name])
            question._capitals = frozenset(
                filter(lambda word: len(word) > 1, question.content.words)
            )
            question._uncertain = question._uncertain_names()
            question._own_forms = re.compile(re.escape(name))
        question._people = question._people | question._relatives_named(sentences)
        return question

    def _relatives_named(self, sentences: Sequence[str]) -> frozenset[str]:
        """Words of the question that follow a relative in a sentence: "my sister Anna"."""
        relatives = topics.cues(self.language).relatives
        gap = "(?:の|叫)?" if self.language in UNSPACED else BEFORE_NAME
        end = "" if self.language in UNSPACED else r"(?![^\W_])"
        folded = [text for text in map(fold, sentences) if relatives.search(text)]
        # A pattern takes a millisecond to compile.
        patterns = {
            word: re.compile(f"(?:{relatives.pattern}){gap}{re.escape(word)}{end}")
            for word in self._capitals
            if any(word in text for text in folded)
        }
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
        capitals = {fold(each[0]) for each in WORD.finditer(text) if each[0][0].isupper()}
        first = {fold(each[1]) for each in _SENTENCE_START.finditer(text)}
        capitals -= first | folded_stop(self.language)
        return frozenset(word for word in capitals if not is_form_of(word, self._names))

    def _uncertain_names(self) -> frozenset[str]:
        if self.language in UNSPACED:
            return self.content.first if all(map(str.isascii, self._names)) else frozenset()
        if self._names or self.language == "de":
            return frozenset()
        return frozenset(stem(name, self.language) for name in self._capitals)

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

    def _without_family(self, folded: str) -> str:
        """Without the family, unless nothing else is asked for: "How is the family?"."""
        rest = _FAMILY.sub(" ", folded)
        if rest == folded:
            return folded
        content = content_asked(rest, self.language, ())
        return rest if content.topics or content.words else folded

    @property
    def is_about_nothing(self) -> bool:
        """Whether it has neither topics nor words."""
        return not self.content.topics and not self.content.words

    @cached_property
    def forms(self) -> frozenset[str]:
        """All its words but names of the subject and words of grammar, with those that say little
        by themselves and those of topics; for Chinese and Japanese single characters."""
        text = self._own_forms.sub(" ", self._folded) if self._own_forms else self._folded
        if self.language in UNSPACED:
            text = topics.cues(self.language).weak.sub(" ", text)
            return frozenset(char for char in text if char.isalpha() and not _KANA.match(char))
        stop = folded_stop(self.language)
        return frozenset(word for word in WORD.findall(text) if word not in stop)

    @cached_property
    def types(self) -> frozenset[str]:
        """The types of answer that its question words ask for."""
        return answer_types.types_asked(self._folded, self.language)

    def introduces(self, sentence: str) -> bool:
        """Whether a statement has the name of the subject: its speaker introduces itself."""
        return bool(self._own_forms and self._own_forms.search(fold(sentence)))

    @property
    def asks_time(self) -> bool:
        return asked_values.asks_time(self._folded, self.language)

    def has_time(self, sentence: str) -> bool:
        """Whether a statement has a time, or another number."""
        return asked_values.has_time(fold(sentence), self.language)

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
        key = (sentence, language, is_own)
        if key not in self._scores:
            self._scores[key] = self._score(sentence, language, is_own=is_own)
        return self._scores[key]

    def _score(self, sentence: str, language: str, *, is_own: bool) -> float:
        question_content = self.content
        names = question_content.words & self._uncertain
        weight = sum(map(_weight, question_content.choices))
        weight += len(question_content.words - names)
        weight += NAME_WEIGHT * bool(names)
        if not weight:
            return 0.0
        if STYLE in question_content.topics and judge(sentence, language).kind == INSTRUCTION:
            stems = stems_of(sentence, self.language)
            shares = any(self._nearness(word, stems) for word in question_content.words)
            return 1.0 if shares else _OTHER_INSTRUCTION
        if is_question(sentence, language) and not is_reply(sentence):
            return 0.0
        statement_topics, shared_topics = self._topics_of(sentence, language)
        shared_topics -= {STYLE}
        relatives = question_content.topics & topics.RELATIVES
        if relatives and not relatives & statement_topics:
            return 0.0
        stems = stems_of(sentence, self.language)
        if question_content.relatives and not any(
            self._has_word(word, sentence, stems) for word in question_content.relatives
        ):
            return 0.0
        near = {word: self._nearness(word, stems) for word in question_content.words}
        shared_words = sum(near[word] for word in near.keys() - names)
        if names:
            shared_words += NAME_WEIGHT * sum(near[name] for name in names) / len(names)
        shared_choices = sum(
            _weight(each) * _share(each, shared_topics) for each in question_content.choices
        )
        score = (shared_choices + shared_words) / weight
        if relatives and not self._tells_of_relative(shared_topics, shared_words):
            score = min(score, RELATIVE_ONLY)
        if shared_topics and self.asks_time and self.has_time(sentence):
            score = min(1.0, score + _VALUE)
        score -= self._other_subject(score, sentence, language, stems, is_own=is_own)
        if is_unreal(sentence, language):
            score -= _UNREAL
        if not is_own:
            score -= _OTHER_AUTHOR
        if score >= ENOUGH:
            score -= self._missing(sentence, language, relatives)
        return max(0.0, score)

    def _topics_of(self, sentence: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
        """The topics that a statement tells of, and those of them that the question asks for."""
        question_topics = self.content.topics
        statement_topics = topics_told(sentence, language, self._compared)
        if language != self.language:
            # The language of a short sentence is often uncertain.
            statement_topics |= topics_told(sentence, self.language, self._compared)
        statement_topics |= relatives_in(sentence, self._named, self.language)
        if RELATION in question_topics and statement_topics & topics.RELATIVES:
            statement_topics |= {RELATION}
        shared_topics = question_topics & statement_topics
        for topic in shared_topics & NARROWER.keys():
            if NARROWER[topic] & statement_topics - question_topics:
                shared_topics -= {topic}
        return statement_topics, shared_topics

    def _other_subject(
        self,
        score: float,
        sentence: str,
        language: str,
        stems: set[str],
        *,
        is_own: bool,
    ) -> float:
        """What to subtract from the score of a statement about somebody or something else."""
        relatives = self.content.topics & topics.RELATIVES
        of_another = (
            not is_own and _OF_ITSELF.match(sentence) and not _SECOND_PERSON.search(sentence)
        )
        if (
            of_another
            or self._is_about_another_name(sentence, language)
            or not self._people <= stems
        ):
            return _OTHER_PERSON
        if (
            not relatives
            and not self._people
            and (
                (
                    is_about_other(sentence, language)
                    and not self._is_told_by_speaker(sentence, language)
                )
                or (score >= ENOUGH and self._is_told_of_other(sentence, language))
            )
        ):
            return _OTHER_SUBJECT
        if relatives and is_about_other_relative(sentence, language, relatives):
            return _OTHER_PERSON
        if relatives and score >= ENOUGH and self._is_told_of_speaker(sentence, language):
            return _OTHER_SUBJECT
        return 0.0

    def _missing(self, sentence: str, language: str, relatives: Collection[str]) -> float:
        """What to subtract from the score of a statement that is about what is asked, and does not
        tell it."""
        if asked_values.lacks_value(self._folded, fold(sentence), self.language):
            return _NO_VALUE
        if (
            relatives
            and asked_values.asks_name(self._folded, self.language)
            and not is_reply(sentence)
            and not any(
                asked_values.names_relative(sentence, pattern, self.language, self._names)
                for topic in relatives
                if (pattern := topics.cues(self.language).statements.get(topic))
            )
        ):
            return _NO_VALUE
        if (
            self.content.topics.isdisjoint(_REQUESTED)
            and judge(sentence, language).kind == INSTRUCTION
        ):
            return _REQUEST
        return 0.0

    def _has_word(self, word: str, sentence: str, stems: Collection[str]) -> bool:
        if self.language in UNSPACED:
            return word in fold(sentence)
        return all(self._nearness(stem(part, self.language), stems) for part in WORD.findall(word))

    def _nearness(self, word: str, stems: Collection[str]) -> float:
        """1 for a stem of a statement, less for one that shares its beginning, or that it is a
        part of."""
        if word in stems:
            return 1.0
        if self.language in UNSPACED or len(word) < MIN_PART:
            return 0.0
        near = any(
            share_beginning(word, other) or word in other or other in word
            for other in stems
            if len(other) >= MIN_PART
        )
        return _NEAR_WORD if near else 0.0

    def _is_told_of_other(self, sentence: str, language: str) -> bool:
        """Whether all clauses about a topic of the question have another person as their subject:
        "My aunt sent a book, she studied in Rome."."""
        relatives = topics.cues(language).relatives
        is_of_other = False
        before = ""
        for clause in CLAUSE_END.split(sentence):
            if self.content.topics & topics_told(clause, language, self.content.topics):
                if not (
                    (begins_with_pronoun(clause) and relatives.search(fold(before)))
                    or is_about_other(clause, language)
                ):
                    return False
                is_of_other = True
            before += f"{clause} "
        return is_of_other

    def _is_told_by_speaker(self, sentence: str, language: str) -> bool:
        """Whether a later clause about a topic of the question has the speaker as its subject: "My
        brother takes over, and I was hired by a brewery."."""
        cues = topics.cues(language)
        return any(
            cues.subject.search(fold(clause))
            and not cues.relatives.search(fold(clause))
            and self.content.topics & topics_told(clause, language, self.content.topics)
            for clause in CLAUSE_END.split(sentence)[1:]
        )

    def _is_told_of_speaker(self, sentence: str, language: str) -> bool:
        """Whether no clause tells what is asked about a relative: "I turn 29 on Friday, my sister
        knows.", "My sister marries, and I give the speech."."""
        others = self.content.topics - topics.RELATIVES - {STYLE}
        cues = topics.cues(language)
        if not others or is_reply(sentence):
            return False
        is_after, tells = False, False
        for clause in CLAUSE_END.split(sentence):
            has_relative = (
                bool(cues.relatives.search(fold(clause)))
                or not self._people.isdisjoint(stems_of(clause, self.language))
                or bool(relatives_in(clause, self._named, self.language))
            )
            is_after = is_after or has_relative
            if others & topics_told(clause, language, self._compared):
                tells = True
                if has_relative or (is_after and not cues.subject.search(fold(clause))):
                    return False
        return tells

    def _tells_of_relative(self, shared_topics: frozenset[str], shared_words: float) -> bool:
        """Whether a statement about a relative has a topic or word of what is asked about the
        relative; true if nothing else is asked."""
        others = [each for each in self.content.choices if each.isdisjoint(topics.RELATIVES)]
        if not others:
            return not self.content.words - self._people or shared_words > 0
        return any(not each.isdisjoint(shared_topics) for each in others)

    def _is_about_another_name(self, sentence: str, language: str) -> bool:
        """Whether a person whom neither the subject's names nor the question contain is the subject
        of a sentence. Only English sentences of the form "Tom is …", "Tom lives …": a noun that
        other sentences begin with ("Birthday is …") has a topic."""
        match = _NAMED_SUBJECT.match(sentence) if language == "en" else None
        if match is None or _FIRST_PERSON.search(sentence):
            return False
        name = fold(match[1])
        if name in self._names or name in self._named or name in folded_stop(language):
            return False
        if topics_told(name, language, frozenset(topics.cues(language).statements)):
            return False
        return stem(name, language) not in self.content.words


def _weight(choice: frozenset[str]) -> float:
    """The weight of a choice of topics."""
    return TOPIC_WEIGHT if choice.isdisjoint(_ATTITUDES) else _ATTITUDE_WEIGHT


def _share(choice: frozenset[str], shared_topics: frozenset[str]) -> float:
    """How far a statement is about a choice of topics: one of them is enough, and a statement about
    all of them comes before those about one."""
    shared = len(choice & shared_topics)
    return 1 - NOT_SHARED * (1 - shared / len(choice)) if shared else 0.0
