"""The type of answer that a question word asks for, such as a place or a person, and whether a
statement has one. They order statements of which none certainly answers a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED
from memservice_extractive.number_words import number

_PLACE_ASKED = {
    "de": "wo wohin woher welche*_stadt welche*_ort welche*_land welche*_gegend",
    "en": "where which_city what_city which_town what_town which_country what_country what_place",
    "es": "donde adonde que_ciudad que_pais que_lugar que_pueblo que_sitio",
    "fr": "ou quelle_ville quel_pays quel_endroit quel_village quelle_region",
    "it": "dove dov'e quale_citta che_citta quale_paese che_paese quale_posto",
    "pt": "onde aonde que_cidade qual_cidade que_pais que_lugar",
    "ru": "где куда откуда как*_город* как*_стран* как*_мест*",
    "zh": "哪里 哪儿 哪个城市 哪座城市 哪个国家 什么地方 何处 哪个地方 何地",
    "ja": "どこ どちら どの町 どの街 何県 何市 どの国",
}
_PERSON_ASKED = {
    "de": "wer wem wen wessen heisst heissen name namen",
    "en": "who whom whose called name names",
    "es": "quien quienes se_llama se_llaman nombre",
    "fr": "qui s'appelle s'appellent appelle-t-* nom prenom",
    "it": "chi si_chiama si_chiamano nome",
    "pt": "quem se_chama se_chamam nome",
    "ru": "кто кого кому кем с_кем зовут имя",
    "zh": "谁 哪位 叫什么 名字",
    "ja": "誰 だれ どなた 名前 何という",
}
_NUMBER_ASKED = {
    "de": "wie_viel* wieviel* wie_alt wie_hoch wie_gross wie_lang* wie_weit wie_oft",
    "en": "how_many how_much how_old how_tall how_long how_far how_often how_big what_size",
    "es": "cuanto* cuanta* que_edad que_talla",
    "fr": "combien quel_age quelle_taille quelle_pointure",
    "it": "quanto quanta quanti quante che_eta",
    "pt": "quanto quanta quantos quantas que_idade",
    "ru": "сколько как*_рост* как*_размер* как_часто как_долго",
    "zh": "多少 几 多大 多久 多长 多高",
    "ja": "いくら いくつ 何歳 何人 何匹 何個 何枚 何冊 何回 何年 どのくらい どれくらい",
}
_REASON_ASKED = {
    "de": "warum wieso weshalb wozu",
    "en": "why what_reason how_come",
    "es": "por_que",
    "fr": "pourquoi",
    "it": "perche come_mai",
    "pt": "por_que porque",
    "ru": "почему зачем отчего",
    "zh": "为什么 为何 为啥 怎么会",
    "ja": "なぜ どうして なんで 理由",
}
_REASON = {
    "de": "weil denn wegen da damit deshalb deswegen sonst",
    "en": "because since cause cuz so otherwise due_to",
    "es": "porque ya_que como pues para_que asi_que por_culpa",
    "fr": "parce_que car comme puisque a_cause pour_que du_coup",
    "it": "perche siccome poiche visto_che quindi cosi",
    "pt": "porque pois ja_que como por_causa senao",
    "ru": "потому_что так_как поэтому из-за чтобы иначе",
    "zh": "因为 所以 由于 怕 为了 就 免得",
    "ja": "から ので ため おかげ せいで",
}
_PLACE_WORDS = {
    "de": r"(?:in|nach|aus|bei|von|um|nahe|richtung)(?: der| die| den| dem)?",
    "en": r"(?:in|at|to|from|near|around|for|through|outside|off)(?: the)?",
    "es": r"(?:en|a|de|desde|hacia|por|cerca de|para)(?: el| la| los| las)?",
    "fr": r"(?:à|au|aux|en|de|du|des|depuis|vers|chez|près de|pour|dans)(?: le| la| les)?",
    "it": r"(?:a|ad|in|da|di|per|verso|nel|nella|dal|dalla|al|alla|vicino a)",
    "pt": r"(?:em|no|na|nos|nas|de|do|da|para|pra|pro|ao|até|perto de)(?: o| a)?",
    "ru": r"(?:в|во|на|из|с|под|около|до|к|по)",
}
"""Words before the name of a place."""
_PLACE = {
    "zh": re.compile(r"在|去|来|到|住|搬|飞|回|市|省|路|街|县"),
    "ja": re.compile(r"[\w]{2,}(?:に|へ|で|から|まで)(?![なす])|市|県|町|区"),
}
_CAPITAL = r"[A-ZÀ-ÖØ-ÞА-ЯЁ][^\W\d_]+"
_NAME_WITHIN = re.compile(rf"(?<=[\w,;:] )(?!I\b|I'){_CAPITAL}")
_NAME_HAN = {
    "zh": re.compile(r"叫|名|小[^\W\d_]|阿[^\W\d_]"),
    "ja": re.compile(r"さん|ちゃん|くん|君|という|名前"),
}


@cache
def _question_patterns(language: str) -> Mapping[str, re.Pattern[str]]:
    has_spaces = language not in UNSPACED
    return {
        kind: topics.pattern(cues.get(language, ""), has_spaces)
        for kind, cues in (
            ("place", _PLACE_ASKED),
            ("person", _PERSON_ASKED),
            ("number", _NUMBER_ASKED),
            ("reason", _REASON_ASKED),
        )
    }


def types_asked(folded_question: str, language: str) -> frozenset[str]:
    """Of `place`, `person`, `number` and `reason`; none for a question for a thing."""
    return frozenset(
        kind
        for kind, pattern in _question_patterns(language).items()
        if pattern.search(folded_question)
    )


@cache
def _value(kind: str, language: str) -> Callable[[str], bool]:
    has_spaces = language not in UNSPACED
    if kind == "reason":
        words = topics.pattern(_REASON.get(language, ""), has_spaces)
        return lambda sentence: bool(words.search(fold(sentence)))
    if kind == "number":
        figure = re.compile(
            rf"\d|(?<![^\W_])(?:{number(language)})(?![^\W_])"
            if has_spaces
            else r"\d|[一二三四五六七八九十百千万两]"
        )
        return lambda sentence: bool(figure.search(fold(sentence)))
    if kind == "place":
        words_before = _PLACE_WORDS.get(language)
        pattern = _PLACE.get(language) or re.compile(rf"(?<!\w){words_before} {_CAPITAL}")
        return lambda sentence: bool(pattern.search(sentence))
    relatives = topics.cues(language).relatives
    name = _NAME_HAN.get(language, _NAME_WITHIN)
    # Every German noun has a capital.
    has_names = language != "de"
    return lambda sentence: bool(
        (has_names and name.search(sentence)) or relatives.search(fold(sentence))
    )


def has_type(sentence: str, kind: str, language: str) -> bool:
    """Whether a statement has a sign of a value of this type."""
    return _value(kind, language)(sentence)
