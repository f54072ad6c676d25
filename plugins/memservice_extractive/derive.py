"""Conclusions without a model: the statements of the observed peer, sentence by sentence, in its
own words."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from memservice.spi.reasoner import Derived, DeriveRequest, Statement
from memservice_extractive.language import detect
from memservice_extractive.prose import own_lines
from memservice_extractive.sentences import split
from memservice_extractive.worth import Judgement, judge


def judged(
    content: str, author: str = "", names: Collection[str] = ()
) -> Iterator[tuple[str, Judgement]]:
    """The author's own sentences in one message, in order, each with its judgement."""
    paragraphs = own_lines(content, author, names)
    language = detect("\n".join(paragraphs))
    for paragraph in paragraphs:
        for sentence in split(paragraph, language):
            yield sentence, judge(sentence, language)


def derive(request: DeriveRequest) -> Derived:
    """Statements in order of first mention. A repeated sentence adds its message's key to the first
    statement."""
    names = (
        {message.author for message in request.messages}
        | set(request.names)
        | set(request.names.values())
    )
    names -= {request.observed, request.names.get(request.observed, request.observed)}
    statements: dict[str, tuple[str, list[int]]] = {}
    for message in request.messages:
        if not message.new or message.author != request.observed:
            continue
        for sentence, judgement in judged(message.content, request.observed, names):
            if not judgement.keep:
                continue
            _, keys = statements.setdefault(_same(sentence), (sentence, []))
            if message.key not in keys:
                keys.append(message.key)
    return Derived([Statement(sentence, tuple(keys)) for sentence, keys in statements.values()])


def _same(sentence: str) -> str:
    return " ".join(sentence.casefold().split())
