"""The sentences around the evidence of an answer, by language of the question."""

from __future__ import annotations

from msgspec import Struct


class AnswerTexts(Struct, frozen=True):
    unset: str
    """The reason if no model is configured."""
    spent: str
    """The reason if the model's token budget for today is used up."""
    failed: str
    """The reason if the model did not answer."""
    about: str
    anything: str
    """The introduction if the question names no peer."""
    closest: str
    """The introduction if no statement answers the question."""
    closest_anything: str
    unknown: str
    """The answer if nothing is stored about the subject."""
    unknown_anything: str
    earlier: str
    """Marks a statement that a newer one replaces."""


TEXTS: dict[str, AnswerTexts] = {
    "en": AnswerTexts(
        "No language model is configured",
        "The language model has no tokens left for today",
        "The language model did not answer",
        "{why}, so here are the stored statements about {name} that fit the question best:",
        "{why}, so here are the stored statements that fit the question best:",
        "{why}, and no stored statement about {name} answers this. The closest ones are:",
        "{why}, and no stored statement answers this. The closest ones are:",
        "Nothing is known about {name} that would answer this.",
        "Nothing is known that would answer this.",
        "earlier",
    ),
    "de": AnswerTexts(
        "Es ist kein Sprachmodell eingerichtet",
        "Das Sprachmodell hat für heute keine Tokens mehr",
        "Das Sprachmodell hat nicht geantwortet",
        "{why}; dies sind die gespeicherten Aussagen zu {name}, die am besten zur Frage passen:",
        "{why}; dies sind die gespeicherten Aussagen, die am besten zur Frage passen:",
        "{why}, und keine gespeicherte Aussage zu {name} beantwortet das. Am nächsten kommen:",
        "{why}, und keine gespeicherte Aussage beantwortet das. Am nächsten kommen:",
        "Über {name} ist nichts bekannt, was diese Frage beantwortet.",
        "Es ist nichts bekannt, was diese Frage beantwortet.",
        "früher",
    ),
    "es": AnswerTexts(
        "No hay ningún modelo de lenguaje configurado",
        "Al modelo de lenguaje no le quedan tokens para hoy",
        "El modelo de lenguaje no ha respondido",
        "{why}; estas son las afirmaciones guardadas sobre {name} que mejor encajan:",
        "{why}; estas son las afirmaciones guardadas que mejor encajan:",
        "{why}, y ninguna afirmación guardada sobre {name} responde a esto. Las más cercanas son:",
        "{why}, y ninguna afirmación guardada responde a esto. Las más cercanas son:",
        "No se sabe nada sobre {name} que responda a esto.",
        "No se sabe nada que responda a esto.",
        "antes",
    ),
    "fr": AnswerTexts(
        "Aucun modèle de langage n'est configuré",
        "Le modèle de langage n'a plus de jetons pour aujourd'hui",
        "Le modèle de langage n'a pas répondu",
        "{why} ; voici les énoncés enregistrés sur {name} qui correspondent le mieux :",
        "{why} ; voici les énoncés enregistrés qui correspondent le mieux :",
        "{why}, et aucun énoncé enregistré sur {name} n'y répond. Les plus proches sont :",
        "{why}, et aucun énoncé enregistré n'y répond. Les plus proches sont :",
        "Rien n'est connu sur {name} qui réponde à cette question.",
        "Rien n'est connu qui réponde à cette question.",
        "avant",
    ),
    "it": AnswerTexts(
        "Nessun modello linguistico è configurato",
        "Il modello linguistico non ha più token per oggi",
        "Il modello linguistico non ha risposto",
        "{why}; ecco le affermazioni salvate su {name} più adatte alla domanda:",
        "{why}; ecco le affermazioni salvate più adatte alla domanda:",
        "{why}, e nessuna affermazione salvata su {name} risponde. Le più vicine sono:",
        "{why}, e nessuna affermazione salvata risponde. Le più vicine sono:",
        "Non si sa nulla su {name} che risponda alla domanda.",
        "Non si sa nulla che risponda alla domanda.",
        "prima",
    ),
    "pt": AnswerTexts(
        "Nenhum modelo de linguagem está configurado",
        "O modelo de linguagem não tem mais tokens para hoje",
        "O modelo de linguagem não respondeu",
        "{why}; estas são as afirmações guardadas sobre {name} que melhor se encaixam:",
        "{why}; estas são as afirmações guardadas que melhor se encaixam:",
        "{why}, e nenhuma afirmação guardada sobre {name} responde a isto. As mais próximas são:",
        "{why}, e nenhuma afirmação guardada responde a isto. As mais próximas são:",
        "Nada se sabe sobre {name} que responda a isto.",
        "Nada se sabe que responda a isto.",
        "antes",
    ),
    "ru": AnswerTexts(
        "Языковая модель не настроена",
        "У языковой модели на сегодня закончились токены",
        "Языковая модель не ответила",
        "{why}, поэтому вот сохранённые высказывания о {name}, ближе всего к вопросу:",
        "{why}, поэтому вот сохранённые высказывания, ближе всего к вопросу:",
        "{why}, и ни одно сохранённое высказывание о {name} на это не отвечает. Ближайшие:",
        "{why}, и ни одно сохранённое высказывание на это не отвечает. Ближайшие:",
        "О {name} не известно ничего, что отвечало бы на этот вопрос.",
        "Не известно ничего, что отвечало бы на этот вопрос.",
        "раньше",
    ),
    "zh": AnswerTexts(
        "未配置语言模型",
        "语言模型今日的令牌已用完",
        "语言模型没有回答",
        "{why}，以下是关于 {name} 的、与问题最相关的已存内容：",
        "{why}，以下是与问题最相关的已存内容：",
        "{why}，关于 {name} 的已存内容都没有回答这个问题。最接近的是：",
        "{why}，已存内容都没有回答这个问题。最接近的是：",
        "没有关于 {name} 的信息可以回答这个问题。",
        "没有信息可以回答这个问题。",
        "以前",
    ),
    "ja": AnswerTexts(
        "言語モデルが設定されていない",
        "言語モデルの本日分のトークンを使い切った",
        "言語モデルが応答しなかった",
        "{why}ため、質問に最も近い {name} についての保存済みの記述を示します：",
        "{why}ため、質問に最も近い保存済みの記述を示します：",
        "{why}うえ、{name} についての保存済みの記述にこの質問の答えはありません。最も近い記述：",
        "{why}うえ、保存済みの記述にこの質問の答えはありません。最も近い記述：",
        "{name} について、この質問に答えられる情報はありません。",
        "この質問に答えられる情報はありません。",
        "以前",
    ),
}
USUAL = "en"
"""The language of the texts for a question in a language without texts."""
