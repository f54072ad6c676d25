"""Requests about all answers, in any form: "could you stop using emojis?", "keep what you send me
under five lines", "from now on: metric only".

No verb tells such a request, so several signs do together: that it lasts, that it names a property
of texts, and that it asks, or is about what is said to the speaker. Without the first it is a
request for one text, unless it is about the form of address.
"""

from __future__ import annotations

import re
from functools import cache

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.language import UNSPACED

_LASTING = {
    "de": "immer|nie(?:mals)?|stets|ab (?:jetzt|sofort|heute)|in zukunft|kunftig|zukunftig"
    "|von nun an"
    r"|nicht mehr|keine?n? \w+ mehr|grundsatzlich|jedes mal"
    r"|alles,? was du|wenn du (?:mir|mich)|aufhor\w*|aufzuhoren",
    "en": "always|never|from (?:now|here) on|in (?:the )?future|going forward|any ?more|no more"
    "|every time|each time|by default|as of now|starting now|ever"
    r"|everything|whenever|when you|stop|quit",
    "es": "siempre|nunca|jamas|(?:a partir|de|desde) (?:de )?ahora|en (?:lo )?(?:adelante|sucesivo)"
    "|ya no|cada vez|por defecto|de aqui en adelante"
    r"|todo lo que|cuando me|deja\w* de",
    "fr": "toujours|jamais|desormais|dorenavant|a partir de maintenant|a l'avenir|des maintenant"
    "|chaque fois|ne \\w+ plus|par defaut|plus (?:jamais|de)"
    r"|tout ce que|quand tu|arret\w*",
    "it": "sempre|mai|d'ora in (?:poi|avanti)|da ora in (?:poi|avanti)|da oggi|in futuro|fiss[oa]"
    "|ogni volta|non \\w+ piu|basta"
    r"|tutto quello che|quando mi|smett\w*",
    "pt": "sempre|nunca|jamais|(?:de agora|daqui|de hoje) (?:em|pra|para) (?:a )?(?:diante|frente)"
    "|a partir de (?:agora|hoje)|nao \\w+ mais|toda vez|por padrao"
    r"|tudo o que|quando me|par\w* de",
    "ru": "всегда|никогда|впредь|отныне|на будущее|в будущем|дальше|больше (?:не|никаких|без)"
    "|каждыи раз|с этого момента|по умолчанию"
    r"|вс[её],? что|когда (?:мне|ты|отвечаешь|пишешь)|переста\w*",
    "ja": "これから|今後|今から|以後|いつも|常に|必ず|毎回|ずっと"
    r"|全部|すべて|ときは|時は|やめ",
    "zh": "以后|今后|往后|从现在|从今|总是|永远|每次|一直|再也?(?:别|不要)"
    r"|全部|所有|的时候",
}
_TO_SPEAKER = {
    "de": r"(?:deine|ihre)\w? (?:\w+ )?(?:antwort\w*|nachricht\w*|texte\w?)"
    r"|mir (?:\w+ ){0,4}?(?:antwort\w*|schreib\w*|erklar\w*|schick\w*)"
    r"|(?:antwort|schreib|sprich|sprech|red|erklar)\w* (?:\w+ ){0,2}?(?:mir|mich)|mit mir",
    "en": r"your (?:\w+ )?(?:answers|replies|responses|messages|texts|tone)"
    r"|(?:answer|reply to|respond to|talk to|write to|write|speak to|send|tell|give|text"
    r"|message) me"
    r"|with me",
    "es": r"(?:tus|sus) (?:respuestas|mensajes|textos)"
    r"|\w{2,12}(?:ame|eme|ime|emel[oa]s?|amel[oa]s?|arme|erme|irme)"
    r"|me (?:respond|contest|escrib|habl|mand|expli|des|das|digas)\w*",
    "fr": r"(?:tes|vos) (?:reponses|messages|textes)|\w{2,12}-(?:le-|la-|les-)?moi"
    r"|me (?:repond|ecri|parl|expliqu|donn|envo)\w*",
    "it": r"(?:tue|tuoi|sue) (?:risposte|messaggi|testi)|\w{3,12}mi"
    r"|mi (?:rispond|scriv|parl|spieg|mand|dai|dia)\w*|con me",
    "pt": r"(?:tuas|suas|teus|seus) (?:respostas|mensagens|textos)|\w{2,12}-me"
    r"|me (?:respond|escrev|fal|expli|mand|de|diga|envi|trat)\w*|comigo",
    "ru": r"(?:твои|ваши|свои) (?:ответы|сообщения|тексты)"
    r"|мне (?:\w+ )?(?:отвеча|пиши|писать|пишете?|объясня|говори|присыла)\w*"
    r"|(?:отвеча|пиши|писать|объясня|говори|присыла)\w* мне|со мнои",
    "ja": "返事|返信|回答|返して|答えて|話して|書いて|送って|呼んで|説明して",
    "zh": "(?:回答|回复|回|跟|和|给|对)我(?:说|讲|写|聊|发|的)?",
}
_PROPERTY = {
    "de": r"emojis?|smileys?|listen?|aufzahlung\w*|stichpunkt\w*|tabelle\w*|fachbegriff\w*|jargon"
    r"|slang|floskel\w*|anglizismen|abkurzung\w*|uberschrift\w*|ausrufezeichen|einheit\w*"
    r"|metrisch\w*"
    r"|celsius|gramm|zentimeter|kilometer|satze?n?|zeilen?|worter\w?|worten|absatze?n?|kurz\w*"
    r"|knapp\w*"
    r"|lang\w*|ausfuhrlich\w*|einfach\w*|formlich\w*|locker\w*|hoflich\w*|duz\w*|siez\w*|klammer\w*"
    r"|(?:auf|in) (?:deutsch|englisch|\w+isch)|format|datum|uhrzeit\w*|beispiel\w*|quellen?",
    "en": r"emojis?|smileys?|lists?|bullet\w*|tables?|jargon|slang|abbreviations?|headings?"
    r"|headers?"
    r"|exclamation (?:marks?|points?)|units?|metric|imperial|celsius|fahrenheit|grams|centimet\w+"
    r"|kilomet\w+|sentences?|lines?|paragraphs?|words?|short\w*|brief\w*|concise\w*|long|simple"
    r"|simply"
    r"|plain|formal\w*|informal\w*|casual\w*|polite\w*|brackets|in (?:english|french|german|\w+ish)"
    r"|format|dates?|examples?|sources?|small talk|markdown",
    "es": r"emojis?|listas?|vinetas?|tablas?|tecnicismos?|jerga|anglicismos?|abreviaturas?|titulos?"
    r"|exclamaci\w+|unidad\w*|metric\w*|celsius|gramos|centimetros|kilometros|frases?|lineas?"
    r"|parrafos?|palabras?|cort\w+|breves?|concis\w+|larg\w+|sencill\w+|simples?|formal\w*"
    r"|informal\w*"
    r"|tute\w+|de (?:tu|usted|vos)|parentesis|en (?:espanol|ingles|\w+es|aleman)|formato|fechas?"
    r"|ejemplos?|fuentes?",
    "fr": r"emojis?|listes?|puces|tableaux?|jargon|argot|anglicismes?|abreviations?|titres?"
    r"|points? d'exclamation|unites?|metriques?|celsius|grammes|centimetres|kilometres|phrases?"
    r"|lignes?"
    r"|paragraphes?|mots?|paves?|court\w*|bref|breve\w*|concis\w*|longu?\w*|simples?|simplement"
    r"|formel\w*"
    r"|familier\w*|tuto\w+|vouvo\w+|parentheses?|en (?:francais|anglais|\w+ais|espagnol)|format"
    r"|dates?|exemples?|sources?",
    "it": r"emoji|elenchi|elenco|punti|tabelle?|gergo|tecnicismi|anglicismi|abbreviazioni|titoli"
    r"|esclamativi|unita|metric\w*|celsius|grammi|centimetri|chilometri|frasi|righe|paragrafi"
    r"|parol[ea]"
    r"|termin[ei]|cort[oaie]|brev[ei]\w*|concis\w+|lungh?\w*|semplic\w+|formal\w*|informal\w*"
    r"|del (?:tu|lei)"
    r"|parentesi|in (?:italiano|inglese|\w+ese)|formato|date|esempi|fonti",
    "pt": r"emojis?|listas?|topicos|tabelas?|jarg\w+|girias?|anglicismos?|abreviac\w+|titulos?"
    r"|exclama\w+|unidades?|metric\w*|celsius|gramas|centimetros|quilometros|frases?|linhas?"
    r"|paragrafos?"
    r"|palavras?|curt\w+|breves?|concis\w+|long[oa]s?|simples|formal\w*|informal\w*|senhora?"
    r"|voce|parenteses"
    r"|em (?:portugues|ingles|\w+es|alemao)|formato|datas?|exemplos?|fontes?",
    "ru": r"смаил\w*|эмодзи|списк\w*|спискам\w*|таблиц\w*|жаргон\w*|сленг\w*|англицизм\w*"
    r"|сокращени\w*"
    r"|заголовк\w*|восклицательн\w*|единиц\w*|метрич\w*|цельси\w*|грамм\w*|сантиметр\w*|километр\w*"
    r"|предложени\w*|строк\w*|строч\w*|абзац\w*|слов\w*|кратк\w*|короч\w*|коротк\w*|покороче"
    r"|длинн\w*"
    r"|прост\w*|попроще|по-простому|формальн\w*|вежлив\w*|на (?:ты|вы)|скобк\w*|по-(?:русски"
    r"|\w+ски)"
    r"|формат\w*|дат[уы]?|пример\w*|источник\w*",
    "ja": "絵文字|顔文字|箇条書き|表|専門用語|略語|見出し|単位|メートル|グラム|摂氏|文|行|段落"
    "|短|簡潔|手短"
    "|長|簡単|やさし|敬語|タメ口|ため口|丁寧|くだけ|会話|関西弁|方言|日本語|英語|ひらがな|括弧"
    "|形式|例",
    "zh": "表情|符号|感叹号|列表|分点|表格|术语|行话|缩写|标题|单位|公制|厘米|公里|克|摄氏|句|行"
    "|段|字"
    "|简短|简洁|短|长|啰嗦|简单|口语|正式|敬语|礼貌|括号|用(?:中文|英文|.{1,3}语)|格式|例子|出处",
}
_ASKING = {
    "de": r"(?:kannst|konntest|wurdest|konnen|konnten) (?:du|sie)|dass du|wenn du|bitte",
    "en": r"(?:can|could|would|will) you|if you|please|pls|plz|i(?:'d| would) (?:like|prefer)",
    "es": r"(?:me )?(?:puedes?|podrias?|podes)|que (?:me|no)|por ?fa(?:vor)?|si (?:me|puedes)",
    "fr": r"(?:peux|pourrais|pouvez|pourriez)-(?:tu|vous)|tu (?:peux|pourrais)|que tu|stp|svp"
    r"|s'il (?:te|vous) plait|si tu",
    "it": r"puoi|potresti|puo|potrebbe|per (?:favore|cortesia)|ti (?:prego|chiedo)|se (?:mi|puoi)",
    "pt": r"(?:voce )?(?:pode|poderia|podia)|por favor|me faca|que voce|pfv?|se puder",
    "ru": r"(?:можешь|можете|мог бы|могла бы|не мог\w*)|пожалуиста|плиз|прошу",
    "ja": "もらえ|くれる|くれない|ください|下さい|お願い|頼む|ほしい|欲しい|助かる",
    "zh": "请|麻烦|能不能|可不可以|可以|能否|别|不要|拜托",
}
_SPEAKER_ACTS = {
    "de": r"ich (?!(?:mochte|hatte|will|wunsche|bitte|brauche|fande)(?![^\W_]))\w+"
    r"|(?:hab|habe|schreib|les|benutz|nutz)e? (?:ich|immer)",
    "en": r"(?:i|we)(?:'ve|'m|'ll)? (?!(?:would|want|need|like|prefer|read|can)(?![^\W_]))",
    "es": r"(?:siempre|nunca|yo) (?:\w+o|he|habia)(?![^\W_])|\w{3,}o siempre",
    "fr": r"j(?:e |')(?!(?:aimerais|voudrais|prefere|veux|lis|voudrai)(?![^\W_]))",
    "it": r"(?:sempre|mai|io) (?:\w+o|ho)(?![^\W_])|\w{3,}o sempre",
    "pt": r"(?:sempre|nunca|eu) (?:\w+[oi]|tenho)(?![^\W_])|\w{3,}o sempre",
    "ru": r"(?:^|\W)(?:я|мы) (?!(?:хочу|хотел\w*|прошу|попрошу)(?![^\W_]))",
    "ja": r"(?:私|僕|俺)[はがも]|(?:ます|ました|てる|ている|てた|だった)[。！!、]?$",
    "zh": r"^我(?!想|希望|要|喜欢你)|我(?:一直|总是|每次|再也)",
}
"""The speaker itself does it: "I always write in English" is no request."""
_ADDRESS = re.compile(
    r"(?<![^\W_])(?:duz\w+|siez\w+|tute(?:ar|ame|arme|es)|tuto(?:yer|ie)\w*|vouvoyer|del (?:tu|lei)"
    r"|на «?(?:ты|вы)»?)(?![^\W_])|敬語|タメ口|ため口"
)
"""Forms of address."""
_START = 40
"""Characters at the beginning where a speaker that acts is its subject."""


def lasts(sentence: str, language: str) -> bool:
    """Whether a sentence, which may be a question, asks for something that holds for all
    answers."""
    if language not in _LASTING:
        return False
    lasting, to_speaker, textual, asking, acts = _patterns(language)
    folded = fold(sentence)
    time, address = lasting.search(folded), _ADDRESS.search(folded)
    if not (address or (time and textual.search(folded))):
        return False
    start = folded[:_START]
    if acts.search(folded if language == "ja" else start):
        return False
    if topics.cues(language).relatives.search(start):
        return False  # "My grandma always writes me long letters."
    begins = time is not None and time.start() == 0 and not address
    return begins or bool(to_speaker.search(folded) or asking.search(folded))


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    listed = (_LASTING, _TO_SPEAKER, _PROPERTY, _ASKING, _SPEAKER_ACTS)
    if language in UNSPACED:
        return tuple(re.compile(each[language]) for each in listed)
    return tuple(re.compile(rf"(?<![^\W_])(?:{each[language]})(?![^\W_])") for each in listed)
