"""Which of the texts in a request answer its question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.derived_rules import CERTAIN
from memservice.spi.reasoner import AnswerRequest
from memservice.spi.toolbox import Evidence
from memservice_extractive.answer_types import has_type
from memservice_extractive.card import content_of
from memservice_extractive.certainty import (
    certainty,
    denied,
    denies,
    without_report,
    without_speech,
)
from memservice_extractive.evidence import (
    MAX_LENGTH,
    Piece,
    day_of,
    excerpt,
    source_of,
    source_of_message,
    terms,
)
from memservice_extractive.fiction import invented
from memservice_extractive.language import detect, words
from memservice_extractive.nearest import closeness
from memservice_extractive.question_content import stems_of
from memservice_extractive.relevance import ENOUGH, Question
from memservice_extractive.replies import begins_with_pronoun
from memservice_extractive.third_person import in_third_person
from memservice_extractive.topics import ONE_VALUE, RELATIVES
from memservice_extractive.updates import changes
from memservice_extractive.worth import is_question

PIECES = {"minimal": 3, "low": 8, "medium": 12, "high": 16, "max": 20}
"""Maximum pieces of evidence in an answer, by reasoning level."""
CLOSEST = 3
"""Pieces of an answer to a question that no stored statement answers."""
LOOKED_UP = 20
"""Conclusions that are looked up beyond the evidence of the request."""
NO_LIMIT = float("-inf")
RELATED = 0.3
"""Minimum score of evidence that is listed after the statements that answer the question. A
document is filled with all evidence."""
LOOKED_BESIDE = 3
"""Conclusions whose messages are read if no statement answers the question."""
MAX_SCORED = 2_000
"""Characters of a text that are compared with the question."""

_SENTENCE_END = re.compile(
    r"(?<=[.!?…][\"'”’])\s+|(?<![^\w.]\d\.)(?<![^\w.]\d\d\.)(?<=[.!?…])\s+(?!– )"
    r"|(?<=[。！？])(?! – )"
)
"""Not after the number of a day: "am 3. Mai"."""

_PLANS = frozenset({"plans"})
"""Topics of questions for what may come."""


class Findings(Struct, frozen=True):
    pieces: Sequence[Piece]
    """Best first."""
    answers: bool
    """Whether they answer the question. If not, they are the closest ones."""
    language: str
    """That of the question."""


class _Text(Struct, frozen=True):
    content: str
    source: str
    said_at: datetime | None
    """None for a line of a card."""
    is_message: bool = False
    is_own: bool = True
    """Whether the subject of the question wrote it, or it is a conclusion or a line of a card."""
    is_conclusion: bool = False
    was_replaced: bool = False
    """Whether another conclusion replaced it."""
    when: str = ""
    """The time that it is about, in brackets; "" if it is not known."""
    uid: str = ""
    """That of the conclusion or message; "" for a line of a card and a recent message."""
    prefix: str = ""
    """The kind of a card line, which is shown and not compared."""
    day: str = ""
    """Of a conclusion, as in `source`."""
    about: str = ""
    """The peer that a conclusion is about."""


class _Scored(Struct, frozen=True):
    text: _Text
    sentence: str
    """The sentence of the text that fits the question best."""
    score: float
    language: str
    """That of the text."""


class _Sources:
    """The messages of conclusions, each read once."""

    def __init__(self, request: AnswerRequest) -> None:
        self._request = request
        self._messages: dict[str, list[_Text]] = {}

    def of(self, conclusion: _Text) -> list[_Text]:
        if self._request.tools is None:
            return []
        if conclusion.uid not in self._messages:
            self._messages[conclusion.uid] = [
                _of_evidence(message, self._request.subject)
                for passage in self._request.tools.behind(conclusion.uid)
                for message in passage
                if message.asked_for
            ]
        return self._messages[conclusion.uid]


def find(request: AnswerRequest) -> Findings:
    """The statements that answer the question: for one about topics the newest first, else in the
    order of the evidence. Then evidence that is related to it.

    If none answers it, the closest ones: nothing is said to be unknown while there are statements
    about the subject. For a question that is not about a person, the closest of the evidence only.
    """
    names = [request.subject or "", request.names.get(request.subject or "", "")]
    query_terms = terms(request.question)
    limit = PIECES.get(request.level, PIECES["low"])
    evidence_texts = [_of_evidence(item, request.subject) for item in request.evidence]
    sources = _Sources(request)
    nearest = [] if evidence_texts else _looked_up(request, request.question)
    question = Question(request.question, names, _usual_language(request, nearest))
    extra = [*_card_lines(request, query_terms), *_recent(request, query_terms)]
    if question.is_about_nothing:
        all_texts = [_Scored(text, text.content, 0, "") for text in (*evidence_texts, *extra)]
        return Findings(
            _pieces(_first_of_each(all_texts)[:limit], query_terms), True, question.language
        )
    texts = [*evidence_texts, *extra, *_looked_up(request, question.search_words())]
    question = question.with_names_of([text.content for text in texts if text.is_own])
    candidates = _with_replaced([_with_score(text, question) for text in texts])
    answers = _answers(candidates)
    is_about_subject = request.subject is not None and question.is_personal
    if not answers and request.subject is not None:
        nearest = nearest or _looked_up(request, request.question)
        looked_up = [_with_score(text, question) for text in nearest]
        candidates = [
            *candidates[: len(evidence_texts)],
            *(item for item in looked_up if item.score or is_about_subject),
            *candidates[len(evidence_texts) :],
        ]
        answers = _answers(candidates)
    closest = [] if answers else _closest(candidates, question)
    if closest:
        answers = _answers(_beside(sources, closest, question))
    if not answers:
        newer = _newer_times(request, sources, closest, candidates, question)
        closest = _in_context(sources, _first_of_each([*newer, *closest])[:CLOSEST], candidates)
        return Findings(_pieces(closest[:CLOSEST], query_terms), False, question.language)
    answers.sort(key=lambda item: _order(item, question), reverse=True)
    if _has_one_value(question):
        answers = sorted(
            answers, key=lambda item: (item.text.was_replaced, not _is_settled(item, answers))
        )
    answers = [*_newer_times(request, sources, answers, candidates, question), *answers]
    least = 0 if request.response_format is not None else RELATED
    related = [item for item in candidates[: len(evidence_texts)] if least <= item.score < ENOUGH]
    selection = _first_of_each([*answers, *related])[:limit]
    if len(selection) < CLOSEST and not _have_value(selection, question):
        near = _closest(candidates, question, RELATED)[:CLOSEST]
        shown = {_key(item.text.content) for item in selection}
        beside = _in_context(sources, near, candidates)
        selection += [item for item in beside if _key(item.text.content) not in shown]
        selection = selection[:CLOSEST]
    pieces = _pieces(selection, query_terms, _newest(selection, question))
    return Findings(pieces, True, question.language)


def _have_value(selection: Sequence[_Scored], question: Question) -> bool:
    """Whether one has a value of a type that is asked for: then nothing is needed beside it."""
    return any(
        has_type(item.sentence, kind, item.language)
        for item in selection
        for kind in question.types
    )


def _usual_language(request: AnswerRequest, nearest: Sequence[_Text]) -> str:
    texts = [item.content for item in request.evidence]
    texts += [message.content for message in request.recent]
    texts += [text.content for text in nearest]
    return detect("\n".join(texts)[:MAX_SCORED])


def _with_replaced(candidates: Sequence[_Scored]) -> list[_Scored]:
    """Messages and card lines count as replaced if the conclusion with their sentence was."""
    replaced_keys = {_key(item.sentence) for item in candidates if item.text.was_replaced}
    return [
        replace(item, text=replace(item.text, was_replaced=True))
        if _key(item.sentence) in replaced_keys and not item.text.is_conclusion
        else item
        for item in candidates
    ]


def _answers(candidates: Sequence[_Scored]) -> list[_Scored]:
    """Without replaced conclusions, which can be mistakes. A message with the same sentence is an
    answer only beside one that is valid."""
    answers = [
        item
        for item in candidates
        if item.score >= ENOUGH and not (item.text.was_replaced and item.text.is_conclusion)
    ]
    return [] if all(item.text.was_replaced for item in answers) else answers


def _closest(
    candidates: Sequence[_Scored], question: Question, least: float = NO_LIMIT
) -> list[_Scored]:
    """Those that can be valid and are at least so near, each sentence once, the nearest first."""
    valid = _first_of_each(
        # The best of those with the same sentence stays.
        sorted((item for item in candidates if not item.text.was_replaced), key=_score)
    )
    nearness = [
        item.score + closeness(question, item.sentence, item.language, is_own=item.text.is_own)
        for item in valid
    ]
    order = sorted(range(len(valid)), key=lambda index: -nearness[index])
    return [valid[index] for index in order if nearness[index] >= least]


def _score(item: _Scored) -> float:
    return -item.score


def _beside(sources: _Sources, closest: Sequence[_Scored], question: Question) -> list[_Scored]:
    """The messages of the closest conclusions: what one lacks, the sentence beside it can have."""
    near = [item for item in closest if item.text.is_conclusion and item.score >= RELATED]
    return [
        _with_score(text, question)
        for item in near[:LOOKED_BESIDE]
        for text in sources.of(item.text)
    ]


def _in_context(
    sources: _Sources, closest: Sequence[_Scored], candidates: Sequence[_Scored]
) -> list[_Scored]:
    """With the whole message in place of a conclusion that is one of its sentences: what is asked
    is often in the sentence beside it. Not if another of its sentences was replaced."""
    replaced_texts = [item.text.content for item in candidates if item.text.was_replaced]
    whole: dict[tuple[str, str], _Scored] = {}
    for item in closest:
        messages = sources.of(item.text) if item.text.is_conclusion else []
        text = next(
            (
                message
                for message in messages
                if len(message.content) <= MAX_LENGTH
                and item.text.content in (whole_text := " ".join(message.content.split()))
                and item.text.content != whole_text
                and not any(each in message.content for each in replaced_texts)
            ),
            item.text,
        )
        whole.setdefault((text.source, text.content), replace(item, text=text))
    return list(whole.values())


def _newer_times(
    request: AnswerRequest,
    sources: _Sources,
    ranked: Sequence[_Scored],
    candidates: Sequence[_Scored],
    question: Question,
) -> list[_Scored]:
    """The newest statement that moves the time which the best statement tells, for a question for a
    time. Its message, if the statement itself has no time."""
    if not (question.asks_time and ranked):
        return []
    best = ranked[0]
    said_at = best.text.said_at
    if best.score < RELATED or said_at is None:
        return []
    near = [_with_score(text, question) for text in _looked_up(request, best.sentence)]
    later = {
        item.text.uid: item.text
        for item in [*candidates, *near]
        if item.text.is_conclusion
        and not item.text.was_replaced
        and item.text.said_at is not None
        and item.text.said_at > said_at
        and changes(item.text.content, best.sentence, question.language)
    }
    for text in sorted(later.values(), key=_said_at, reverse=True):
        for each in (text, *sources.of(text)):
            if question.has_time(each.content):
                return [_Scored(each, each.content, best.score, best.language)]
    return []


def _said_at(text: _Text) -> float:
    return text.said_at.timestamp() if text.said_at else 0.0


def _looked_up(request: AnswerRequest, query: str) -> list[_Text]:
    """Conclusions that are near a text, best first, whether or not they share a word with it."""
    if not query.strip() or request.tools is None:
        return []
    results = request.tools.conclusions(query, LOOKED_UP)
    return [
        _of_evidence(one, request.subject, was_replaced=one is not item)
        for item in results
        for one in (item, *item.replaced)
    ]


def _order(item: _Scored, question: Question) -> tuple[object, ...]:
    """Larger is better."""
    said_at = item.text.said_at
    newest = _said_at(item.text) if question.content.topics else 0.0
    return (
        not item.text.was_replaced,
        round(item.score, 1),
        newest,
        not item.text.is_message,
        said_at is not None,
    )


def _newest(selection: Sequence[_Scored], question: Question) -> datetime | None:
    """When the newest statement was made, for a question about a topic with one value at a time:
    statements before it are marked as earlier. None if it does not tell the value."""
    newest = selection[0]
    is_known = _has_one_value(question) and _is_settled(newest, selection)
    return newest.text.said_at if is_known else None


def _has_one_value(question: Question) -> bool:
    topics_of_question = question.content.topics
    return bool(topics_of_question & ONE_VALUE) and not topics_of_question & (RELATIVES | _PLANS)


def _is_settled(item: _Scored, others: Sequence[_Scored]) -> bool:
    """Whether a statement tells what is so. One that denies what another says does."""
    if certainty(item.sentence, item.language) != CERTAIN:
        return False
    value = denied(item.sentence, item.language)
    return value is None or any(
        denies(value, other.sentence, item.language) for other in others if other is not item
    )


def _pieces(
    selection: Sequence[_Scored], query_terms: set[str], newest: datetime | None = None
) -> list[Piece]:
    return [
        Piece(
            item.text.prefix + excerpt(item.text.content, query_terms) + item.text.when,
            item.text.source,
            is_earlier=item.text.was_replaced or _is_before(item, newest),
            restated=_restated(item),
        )
        for item in selection
    ]


def _restated(item: _Scored) -> tuple[str, str] | None:
    if not item.text.is_conclusion or item.language != "en":
        return None
    statement = in_third_person(" ".join(item.text.content.split()), item.text.about)
    return None if statement is None else (item.text.day, statement + item.text.when)


def _is_before(item: _Scored, newest: datetime | None) -> bool:
    said_at = item.text.said_at
    return bool(newest and said_at and said_at < newest and item.score >= ENOUGH)


def _with_score(text: _Text, question: Question) -> _Scored:
    """With the sentence of the text that has the highest score."""
    content = " ".join(text.content.split())[:MAX_SCORED]
    # Cheaper than the segmenter of statements. A sentence that is cut at an abbreviation costs
    # little here.
    sentences = _with_subjects([part for part in _SENTENCE_END.split(content) if part]) or [content]
    language = detect(content)
    if text.is_message:
        flags = invented(sentences, language)
        if all(flags):
            return _Scored(text, sentences[0], 0.0, language)
        sentences = [
            one for one, is_invented in zip(sentences, flags, strict=True) if not is_invented
        ]
        sentences += [
            f"{one} {other}"
            for one, other in pairwise(sentences)
            if not (is_question(one, language) or is_question(other, language))
        ]
    scores = [
        question.score(_own_part(part, language, question), language, is_own=text.is_own)
        for part in sentences
    ]
    best = max(range(len(scores)), key=scores.__getitem__)
    return _Scored(text, sentences[best], scores[best], language)


def _own_part(sentence: str, language: str, question: Question) -> str:
    """A sentence without what somebody else says in it. A report stays for a question that has a
    word of the beginning, such as the name."""
    own = without_speech(sentence, language)
    # The language of a short sentence is often uncertain.
    teller = without_report(without_report(own, language), question.language)
    if teller == own or not question.content.words.isdisjoint(stems_of(teller, question.language)):
        return own
    return teller


def _with_subjects(sentences: Sequence[str]) -> list[str]:
    """Sentences that begin with a pronoun after the one that says whom they are about."""
    whole: list[str] = []
    for sentence in sentences:
        if whole and begins_with_pronoun(sentence):
            whole[-1] += f" {sentence}"
        else:
            whole.append(sentence)
    return whole


def _of_evidence(item: Evidence, subject: str | None, *, was_replaced: bool = False) -> _Text:
    is_message = item.kind == "message"
    is_own = not is_message or subject is None or item.author == subject
    return _Text(
        item.content,
        source_of(item),
        item.said_at,
        is_message,
        is_own,
        is_conclusion=not is_message,
        uid=item.uid,
        was_replaced=was_replaced,
        when=_shown(item.when),
        day="" if is_message else day_of(item),
        about="" if is_message else item.about or "",
    )


def _shown(when: tuple[str | None, str | None] | None) -> str:
    """` (2024-07-06/2024-07-07)`; a moment once."""
    if when is None or when == (None, None):
        return ""
    start, end = (part or ".." for part in when)
    return f" ({start})" if start == end else f" ({start}/{end})"


def _card_lines(request: AnswerRequest, query_terms: set[str]) -> Iterator[_Text]:
    for peer_id, lines in request.cards.items():
        for line in lines:
            if terms(line) & query_terms:
                content = content_of(line)
                prefix = line[: len(line) - len(content)]
                yield _Text(content, f"card of {peer_id}", None, prefix=prefix)


def _recent(request: AnswerRequest, query_terms: set[str]) -> Iterator[_Text]:
    for message in reversed(request.recent):
        if terms(message.content) & query_terms:
            is_own = request.subject is None or message.author == request.subject
            source = source_of_message(message.sent_at, message.author)
            yield _Text(message.content, source, message.sent_at, True, is_own)


def _first_of_each(items: Iterable[_Scored]) -> list[_Scored]:
    """Without those whose best sentence is the text, or the best sentence, of an earlier one."""
    keys: set[tuple[str, ...]] = set()
    first: list[_Scored] = []
    for item in items:
        key = _key(item.sentence)
        if item.text.content.strip() and key not in keys:
            keys |= {key, _key(item.text.content)}
            first.append(item)
    return first


def _key(text: str) -> tuple[str, ...]:
    return tuple(words(text)) or (text,)
