"""Answers without a model: the stored statements that match the question, with their sources and a
sentence that says so."""

from __future__ import annotations

import json
from collections.abc import Iterator

from memservice.spi.reasoner import AnswerRequest
from memservice_extractive.answer_texts import TEXTS, USUAL, AnswerTexts
from memservice_extractive.fill import Filler
from memservice_extractive.findings import find


def answer(request: AnswerRequest) -> Iterator[str]:
    """The introduction, then one line per piece, each yielded separately. With `response_format`:
    one JSON document."""
    findings = find(request)
    texts = TEXTS.get(findings.language, TEXTS[USUAL])
    name = request.names.get(request.subject or "", request.subject)
    unknown = (texts.unknown if request.subject else texts.unknown_anything).format(name=name)
    if request.response_format is not None:
        filled = Filler(request.response_format, findings.pieces, unknown).value()
        yield json.dumps(filled, ensure_ascii=False)
        return
    if not findings.pieces:
        yield unknown
        return
    yield _introduction(request, texts, findings.answers).format(
        why=_reason(request, texts), name=name
    )
    for piece in findings.pieces:
        yield f"\n- {piece.cited(texts.earlier)}"


def _introduction(request: AnswerRequest, texts: AnswerTexts, answers: bool) -> str:
    if request.subject:
        return texts.about if answers else texts.closest
    return texts.anything if answers else texts.closest_anything


def _reason(request: AnswerRequest, texts: AnswerTexts) -> str:
    if request.model_failed:
        return texts.failed
    return texts.spent if request.model_is_spent else texts.unset
