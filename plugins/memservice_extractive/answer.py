"""Answers without a model: the stored statements that match the question, with their sources and a
sentence that says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from memservice.spi.reasoner import AnswerRequest
from memservice_extractive.evidence import pieces
from memservice_extractive.fill import Filler
from memservice_extractive.language import detect


@dataclass(frozen=True, slots=True)
class _Texts:
    """The sentences around the evidence, in one language."""

    unset: str
    """The reason if no model is configured."""
    spent: str
    """The reason if the model's token budget for today is used up."""
    failed: str
    """The reason if the model did not answer."""
    about: str
    anything: str
    """The introduction if the question names no peer."""
    unknown: str
    unknown_anything: str


_TEXTS: dict[str, _Texts] = {
    "en": _Texts(
        "No language model is configured",
        "The language model has no tokens left for today",
        "The language model did not answer",
        "{why}, so here are the stored statements about {name} that fit the question best:",
        "{why}, so here are the stored statements that fit the question best:",
        "Nothing is known about {name} that would answer this.",
        "Nothing is known that would answer this.",
    ),
    "de": _Texts(
        "Es ist kein Sprachmodell eingerichtet",
        "Das Sprachmodell hat für heute keine Tokens mehr",
        "Das Sprachmodell hat nicht geantwortet",
        "{why}; dies sind die gespeicherten Aussagen zu {name}, die am besten zur Frage passen:",
        "{why}; dies sind die gespeicherten Aussagen, die am besten zur Frage passen:",
        "Über {name} ist nichts bekannt, was diese Frage beantwortet.",
        "Es ist nichts bekannt, was diese Frage beantwortet.",
    ),
    "zh": _Texts(
        "未配置语言模型",
        "语言模型今日的令牌已用完",
        "语言模型没有回答",
        "{why}，以下是关于 {name} 的、与问题最相关的已存内容：",
        "{why}，以下是与问题最相关的已存内容：",
        "没有关于 {name} 的信息可以回答这个问题。",
        "没有信息可以回答这个问题。",
    ),
    "ja": _Texts(
        "言語モデルが設定されていない",
        "言語モデルの本日分のトークンを使い切った",
        "言語モデルが応答しなかった",
        "{why}ため、質問に最も近い {name} についての保存済みの記述を示します：",
        "{why}ため、質問に最も近い保存済みの記述を示します：",
        "{name} について、この質問に答えられる情報はありません。",
        "この質問に答えられる情報はありません。",
    ),
}


def answer(request: AnswerRequest) -> Iterator[str]:
    """The introduction, then one line per piece, each yielded separately. With `response_format`:
    one JSON document."""
    texts = _TEXTS.get(detect(request.question), _TEXTS["en"])
    evidence = pieces(request)
    name = request.names.get(request.subject or "", request.subject)
    if request.response_format is not None or not evidence:
        unknown = (texts.unknown if request.subject else texts.unknown_anything).format(name=name)
        response_format = request.response_format
        yield (
            unknown
            if response_format is None
            else json.dumps(Filler(response_format, evidence, unknown).value(), ensure_ascii=False)
        )
        return
    why = texts.unset
    if request.model_failed or request.model_is_spent:
        why = texts.failed if request.model_failed else texts.spent
    yield (texts.about if request.subject else texts.anything).format(why=why, name=name)
    for piece in evidence:
        yield f"\n- {piece.cited}"
