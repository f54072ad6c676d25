"""Conclusions without a model: the statements of the observed peer, sentence by sentence, in its
own words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from memservice.spi.reasoner import Derived, DeriveRequest, Statement, Utterance
from memservice_extractive.attributes import attributes
from memservice_extractive.facts import read
from memservice_extractive.fiction import invented
from memservice_extractive.language import UNSPACED, detect
from memservice_extractive.prose import own_lines
from memservice_extractive.replacing import with_replacements
from memservice_extractive.replies import (
    begins_with_pronoun,
    is_fragment,
    is_short_reply,
    last_question,
)
from memservice_extractive.sentences import MAX_LENGTH, split
from memservice_extractive.subjects import REPLY_MARK
from memservice_extractive.tails import statement_within
from memservice_extractive.worth import Judgement, judge


def judged(
    content: str, author: str = "", names: Collection[str] = (), *, exact: bool = True
) -> Iterator[tuple[str, Judgement]]:
    """The author's own sentences in one message, in order, each with its judgement. `exact` as in
    `sentences.split`."""
    paragraphs = own_lines(content, author, names)
    language = detect("\n".join(paragraphs))
    sentences = [sentence for each in paragraphs for sentence in split(each, language, exact=exact)]
    for sentence, is_invented in zip(sentences, invented(sentences, language), strict=True):
        judgement = judge(sentence, language)
        clause = statement_within(sentence, language, judgement.kind)
        if is_invented and judgement.kind == "statement":
            yield sentence, Judgement("fiction")
        elif clause:
            yield clause, judge(clause, language)
        else:
            yield sentence, judgement


def derive(request: DeriveRequest) -> Derived:
    """Statements in order of first mention. A repeated sentence adds its message's key to the first
    statement.

    A short reply to a question of another peer is stored with the question, and a sentence that
    begins with a pronoun with the sentence before it, because neither says alone whom it is about.
    """
    names = (
        {message.author for message in request.messages}
        | set(request.names)
        | set(request.names.values())
    )
    names -= {request.observed, request.names.get(request.observed, request.observed)}
    statements: dict[str, tuple[str, Judgement, Utterance, list[int]]] = {}
    question = ""
    for message in request.messages:
        if message.author != request.observed:
            question = last_question(message.content)
            continue
        if message.new:
            for sentence, judgement in _whole(
                judged(message.content, request.observed, names), question, message.content
            ):
                *_, keys = statements.setdefault(
                    _same(sentence), (sentence, judgement, message, [])
                )
                if message.key not in keys:
                    keys.append(message.key)
        question = ""
    return Derived(
        with_replacements([_statement(*statement) for statement in statements.values()], request)
    )


def _statement(
    sentence: str, judgement: Judgement, message: Utterance, keys: list[int]
) -> Statement:
    statement = attributes(sentence, judgement, message)
    return Statement(
        sentence,
        tuple(keys),
        kind=statement.kind,
        when=statement.when,
        certainty=statement.certainty,
    )


def _whole(
    sentences: Iterable[tuple[str, Judgement]], question: str, content: str
) -> list[tuple[str, Judgement]]:
    """The sentences of a message to keep, with the question or the sentence that they need. Only
    sentences that follow one another in the message are joined."""
    text = " ".join(content.split())
    sentences_with_context: list[tuple[str, Judgement]] = []
    open_request = ""
    """A question or request of the speaker, if it is the sentence before."""
    for index, (sentence, judgement) in enumerate(sentences):
        if index == 0 and question and is_short_reply(sentence, question):
            reply = f"{question}{REPLY_MARK}{sentence}"
            if len(reply) <= MAX_LENGTH:
                sentences_with_context.append((reply, Judgement("statement")))
                continue
        own_question, open_request = (
            open_request,
            sentence if judgement.kind in ("question", "command") else "",
        )
        if not judgement.keep:
            continue
        joined = f"{own_question} {sentence}"
        if (
            own_question
            and begins_with_pronoun(sentence)
            and len(joined) <= MAX_LENGTH
            and joined in text
        ):
            sentences_with_context.append((joined, judgement))
            continue
        if sentences_with_context and (
            begins_with_pronoun(sentence)
            or (judgement.kind == "statement" and is_fragment(sentence))
        ):
            before, first = sentences_with_context[-1]
            space = "" if detect(sentence) in UNSPACED else " "
            joined = f"{before}{space}{sentence}"
            fact = read(before)
            if (
                # A longer sentence would not be read as the value of a slot any more.
                (fact is None or fact.slot is None)
                and len(joined) <= MAX_LENGTH
                and joined.removeprefix(f"{question}{REPLY_MARK}") in text
            ):
                sentences_with_context[-1] = joined, first
                continue
        sentences_with_context.append((sentence, judgement))
    return sentences_with_context


def _same(sentence: str) -> str:
    return " ".join(sentence.casefold().split())
