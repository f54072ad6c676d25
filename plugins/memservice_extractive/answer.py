"""Answers without a model: the stored statements that fit the question, with their sources, and plainly said to be no more than that."""

from __future__ import annotations

import json
from collections.abc import Iterator

from memservice.spi.reasoner import AnswerRequest
from memservice_extractive.evidence import pieces
from memservice_extractive.fill import Filler
from memservice_extractive.language import detect

# By language of the question: (an introduction, the same with nobody named, nothing known about {}, nothing known at all).
_TEXTS: dict[str, tuple[str, str, str, str]] = {
    "en": (
        "No language model is configured, so here are the stored statements about {} that fit the question best:",
        "No language model is configured, so here are the stored statements that fit the question best:",
        "Nothing is known about {} that would answer this.",
        "Nothing is known that would answer this.",
    ),
    "de": (
        "Es ist kein Sprachmodell eingerichtet; dies sind die gespeicherten Aussagen zu {}, die am besten zur Frage passen:",
        "Es ist kein Sprachmodell eingerichtet; dies sind die gespeicherten Aussagen, die am besten zur Frage passen:",
        "Über {} ist nichts bekannt, was diese Frage beantwortet.",
        "Es ist nichts bekannt, was diese Frage beantwortet.",
    ),
    "zh": (
        "未配置语言模型，以下是关于 {} 的、与问题最相关的已存内容：",
        "未配置语言模型，以下是与问题最相关的已存内容：",
        "没有关于 {} 的信息可以回答这个问题。",
        "没有信息可以回答这个问题。",
    ),
    "ja": (
        "言語モデルが設定されていないため、質問に最も近い {} についての保存済みの記述を示します：",
        "言語モデルが設定されていないため、質問に最も近い保存済みの記述を示します：",
        "{} について、この質問に答えられる情報はありません。",
        "この質問に答えられる情報はありません。",
    ),
}


def answer(request: AnswerRequest) -> Iterator[str]:
    """The introduction and one line a piece, each yielded by itself; with `response_format` one JSON document."""
    intro, intro_all, nothing, nothing_all = _TEXTS.get(detect(request.question), _TEXTS["en"])
    found = pieces(request)
    unknown = nothing.format(request.subject) if request.subject else nothing_all
    if request.response_format is not None:
        yield json.dumps(Filler(request.response_format, found, unknown).value(), ensure_ascii=False)
        return
    if not found:
        yield unknown
        return
    yield intro.format(request.subject) if request.subject else intro_all
    for piece in found:
        yield f"\n- {piece.cited}"
