"""The kind of value that a question asks for, such as a time, and whether a statement has one."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED
from memservice_extractive.lexicon import STOP, WEAK
from memservice_extractive.number_words import number
from memservice_extractive.time_words import TIME_WORDS

_TIME_ASKED = {
    "de": "wann an_welchem_tag welchem_wochentag welchem_monat um_wie_viel_uhr um_wieviel_uhr",
    "en": "when what_date which_date what_day which_day which_month what_month what_time",
    "es": "cuando que_dia que_fecha que_mes a_que_hora cual_es_la_fecha",
    "fr": "quand quel_jour quelle_date quel_mois a_quelle_heure",
    "it": "quando che_giorno quale_giorno che_mese quale_mese che_data quale_data a_che_ora",
    "pt": "quando que_dia qual_dia que_mes que_data qual_data a_que_horas qual_e_a_data",
    "ru": "когда какого_числа в_какой_день в_каком_месяце какой_день во_сколько",
    "zh": "什么时候 何时 几号 哪天 星期几 几月 几点",
    "ja": "いつ 何月 何日 何曜日 何時",
}
_AGE_ASKED = {
    "de": "wie_alt",
    "en": "how_old",
    "es": "cuantos_anos que_edad",
    "fr": "quel_age",
    "it": "quanti_anni che_eta",
    "pt": "quantos_anos que_idade qual_a_idade qual_e_a_idade",
    "ru": "сколько_лет сколько_*_лет какого_возраста",
    "zh": "几岁 多大了 多少岁",
    "ja": "何歳 おいくつ",
}
"""Not "How many": names without a number answer it as well."""
_NAME_ASKED = {
    "de": "heisst heissen name namen vorname* nachname*",
    "en": "name names called first_name",
    "es": "se_llama se_llaman nombre nombres apellido",
    "fr": "s'appelle s'appellent appelle-t-* nom noms prenom*",
    "it": "si_chiama si_chiamano nome nomi cognome",
    "pt": "se_chama se_chamam nome nomes sobrenome chama-se",
    "ru": "зовут имя имена имени фамили*",
    "zh": "叫什么 名字",
    "ja": "名前 何という",
}
_NAMING = {
    "de": "heisst heissen namens genannt",
    "en": "named called name_is",
    "es": "se_llama se_llaman llamad* de_nombre",
    "fr": "s'appelle s'appellent nomme* prenomm* du_nom",
    "it": "si_chiama si_chiamano di_nome chiamat*",
    "pt": "se_chama se_chamam chamad* de_nome",
    "ru": "зовут по_имени",
    "zh": "叫 名字",
    "ja": "名前 という と言う と申",
}
_CAPITAL = r"(?!I\b)[A-ZÀ-ÖØ-ÞА-ЯЁ][^\W\d_]+"
_IS = "(?:is|was|ist|war|est|etait|était|es|era|è|é|foi|это)"
_AFTER = re.compile(rf"(?:[\s,(–—-]+|\s{_IS}\s)({_CAPITAL})")
"""A name after a relative: "my husband Rui", "my husband is Rui"."""
_BEFORE = re.compile(rf"({_CAPITAL})(?:,|\s{_IS}|\s[–—-])\s(?:[^\W\d_]+\s){{0,2}}$")
"""A name before a relative: "Rui is my husband"."""
_SENTENCE_END = re.compile(r"[.!?…]+\s+")
_WITHOUT_CAPITALS = UNSPACED | {"de"}
"""Languages in which a capital letter does not tell a name."""
_SPEAKER_VERB = {
    "en": re.compile("(?:ing|ed|ly)$"),
    "es": re.compile("(?:o|mos|ando|endo|re|aba|ia)$"),
    "it": re.compile("(?:o|mmo|ndo|ai|ei)$"),
    "pt": re.compile("(?:o|mos|ndo|ei|rei|ava|ia)$"),
    "ru": re.compile("(?:[уюе]м?|им|л[аи]?|сь|ся)$"),
}
"""The end of a verb of the speaker, which begins a sentence without its pronoun; in folded text. It
costs the names with the same end."""
_HAN_NAME = {
    # Only a name of a familiar form: verbs follow a relative without a sign between them.
    "zh": re.compile(r"的?(?:阿|小|老|大)[^\W\d_]"),
    "ja": re.compile(r"の[^\W\d_はがをにのでも]{1,6}(?=[はがをにのともで、,。]|さん|ちゃん|くん)"),
}


def lacks_value(question: str, sentence: str, language: str) -> bool:
    """Whether a question asks for a time or an age, and the sentence has none. Both are folded
    text."""
    return any(
        wish.search(question) and not value.search(sentence) for wish, value in _kinds(language)
    )


@cache
def _kinds(language: str) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    """The patterns of questions for a kind of value, and of the value."""
    if language not in TIME_WORDS:
        return []
    has_spaces = language not in UNSPACED
    words = TIME_WORDS[language]
    # "Day" is part of words such as "birthday" in several languages.
    units = [name for unit, name in words.units.items() if unit != "day"]
    times = [*words.days, *words.weekdays, *words.months, *units]
    return [
        (topics.pattern(cues[language], has_spaces), _value("|".join(forms), has_spaces))
        for cues, forms in ((_TIME_ASKED, times), (_AGE_ASKED, [number(language)]))
    ]


def _value(forms: str, has_spaces: bool) -> re.Pattern[str]:
    return re.compile(rf"\d|(?<![^\W_])(?:{forms})s?(?![^\W_])" if has_spaces else rf"\d|{forms}")


def asks_time(question: str, language: str) -> bool:
    """Whether a question, in folded text, asks for a time."""
    return language in TIME_WORDS and bool(_kinds(language)[0][0].search(question))


def has_time(sentence: str, language: str) -> bool:
    """Whether a sentence, in folded text, has a time or another number."""
    return language in TIME_WORDS and bool(_kinds(language)[0][1].search(sentence))


def asks_name(question: str, language: str) -> bool:
    """Whether a question, in folded text, asks for a name."""
    return bool(_name_patterns(language)[0].search(question))


@cache
def _name_patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    has_spaces = language not in UNSPACED
    wish, naming = _NAME_ASKED.get(language, ""), _NAMING.get(language, "")
    return topics.pattern(wish, has_spaces), topics.pattern(naming, has_spaces)


def names_relative(
    sentence: str, relative: re.Pattern[str], language: str, own_names: Collection[str]
) -> bool:
    """Whether a sentence has the name of one of these relatives, or a word such as "called"."""
    folded = fold(sentence)
    if _name_patterns(language)[1].search(folded):
        return True
    if len(folded) != len(sentence):  # the places of the two do not agree
        return True
    for match in relative.finditer(folded):
        if language in UNSPACED:
            if _HAN_NAME[language].match(sentence, match.end()):
                return True
            continue
        after = _AFTER.match(sentence, match.end())
        before = _BEFORE.search(sentence[: match.start()])
        for name in (after, before):
            if name and fold(name[1]) not in own_names:
                return True
    return language not in _WITHOUT_CAPITALS and _has_name_beside(
        sentence, relative, language, own_names
    )


def _has_name_beside(
    text: str, relative: re.Pattern[str], language: str, own_names: Collection[str]
) -> bool:
    """Whether a sentence before or after the one with a relative begins with a name, or has one:
    "Our dog is a thief. Biscuit hides socks."."""
    common = STOP.get(language, STOP["en"]) | WEAK.get(language, frozenset()) | set(own_names)
    verb = _SPEAKER_VERB.get(language)
    return any(
        fold(word[0]) not in common
        and not (word.start() == 0 and verb and verb.search(fold(word[0])))
        for part in _SENTENCE_END.split(text)
        if not relative.search(fold(part))
        for word in re.finditer(_CAPITAL, part)
    )
