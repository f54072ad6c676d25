"""Requests that hold for all answers, or for all deliveries, without a word such as "always": "be
brief", "no emojis", "send it to my office"."""

from __future__ import annotations

import re

from memservice.domain.text.folding import fold

_START = (
    # What may stand before it: "Just one thing: ", "First names are fine, but ".
    r"^\W*(?:[^:?!.]{1,40}:\s+|[^:?!.,]{1,60}, (?:but|aber|pero|mais|ma|mas|но) )?"
    r"(?:(?:und|and|y|et|e|и|а|also|but|i would like you to|i'd like you to|i want you to"
    r"|please|pls|bitte|por favor|per favore|s'il te plait|s'il vous plait|пожалуйста)\W+)*"
)
_SHORT = (
    r"(?:brief\w*|short|concise\w*|succinct\w*|direct|formal|informal|kurz|knapp|prazise|direkt"
    r"|formlich|locker|breve\w*|concis\w*|direct[oa]|formal|bref|court\w*|cort[oa]s?|curt[oa]s?"
    r"|brevi|diretto|clair|claro|chiaro|кратк\w*|коротк\w*|краток|прям\w*)"
)
_ANSWERS = (
    r"(?:your (?:answers|replies|responses)|deine antworten|ihre antworten|(?:tus|las) respuestas"
    r"|(?:tes|les|vos) reponses|(?:le|le tue) risposte|(?:as|suas) respostas|ответы|dich)"
)
_BRIEF = (
    rf"(?:be|sei|seien sie|se|sea|sois|soyez|sii|sia|seja|будь(?:те)?) (?:\w+ )?{_SHORT}"
    rf"|(?:keep|make|halte?|fasse?|fass|haz|manten|garde|fais|tieni|fai|mantenha|faca|делай)"
    rf" {_ANSWERS} (?:\w+ ){{0,2}}{_SHORT}"
    r"|get to the point|komm (?:direkt |gleich )?(?:zum punkt|zur sache)|ve (?:directo )?al grano"
    r"|va (?:droit )?(?:au but|a l'essentiel)|vai (?:dritto |direto )?(?:al punto|al sodo|ao ponto)"
    r"|diamoci del tu|(?:on peut|tu peux) (?:se|me) tutoyer|давай(?:те)? на (?:ты|вы)"
)
_LANGUAGE = (
    r"(?:english|german|french|spanish|italian|portuguese|russian|chinese|japanese|deutsch|englisch"
    r"|franzosisch|spanisch|italienisch|espanol|ingles|frances|aleman|italiano|portugues|francais"
    r"|anglais|allemand|espagnol|inglese|francese|tedesco|spagnolo|alemao|espanhol"
    r"|по-(?:русски|английски|немецки|французски|испански|итальянски))"
)
_MANNER = (
    rf"(?:{_SHORT}|(?:in |auf |en |in |em )?(?:\w+ )?{_LANGUAGE}|(?:in|with|using"
    rf"|without) (?:\w+ )?"
    r"(?:short|simple|plain|full|complete|rhymes|bullet points|emojis|words|terms"
    r"|sentences|examples|letters|capitals|paragraphs"
    r"|jargon)|as if i|like i|simply|informally|formally|politely"
    r"|(?:in|mit|ohne) (?:\w+ )?(?:worten|satzen|buchstaben|schrift|absatzen"
    r"|stichpunkten|stichworten|beispielen"
    r"|floskeln|emojis"
    r"|fachbegriffe)|(?:con|sin) (?:\w+ )?(?:ejemplos|palabras|frases|letras?"
    r"|parrafos|rodeos|tecnicismos|emojis)"
    r"|(?:avec|sans) (?:des |d')?(?:exemples|mots|phrases|lettres|paragraphes"
    r"|detours|jargon|emojis)"
    r"|(?:con|senza) (?:\w+ )?(?:esempi|parole|frasi|lettere|caratteri|paragrafi|emoji|giri)"
    r"|(?:com|sem) (?:\w+ )?(?:exemplos|palavras|frases|letras?|paragrafos|emojis|rodeios)"
    r"|без (?:\w+ )?(?:смайл\w*|эмодзи|вступлен\w*|воды|жаргон\w*|списков|канцеляр\w*|термин\w*)"
    r"|прост\w+ словами|по(?:короче|проще|дробнее)|по (?:делу|существу)"
    r"|(?:without|in) (?:\w+ )?(?:technical|foreign|english) (?:terms|words)"
    r"|(?:ohne|in) (?:\w+ )?fach(?:begriffe|worter|chinesisch)"
    r"|con(?: \w+)? (?:caratteri|parole) semplici|de (?:forma|manera) \w+)"
)
_IN_A_MANNER = (
    r"(?:(?:answer|reply|respond|talk|speak)(?: to)?(?: me)?|write to me"
    r"|explain (?:things|everything)"
    r"|give me answers|antworte(?: mir)?|antworten sie|sprich|rede|erklare? mir alles"
    r"|schreibe? mir|responde(?:me)?|contesta(?:me)?|habla(?:me)?|explicame todo"
    r"|reponds|parle|explique-moi tout|rispondi(?:mi)?|parlami|spiegami tutto"
    r"|(?:me )?responda|fale|explique tudo|отвечай(?:те)?|говори(?:те)?|объясняй(?:те)?"
    r"|пиши(?:те)?|scrivimi|escribeme|ecris-moi|me escreva"
    r"|(?:erklare?|explica|explique|spiega)(?:-?me|-?moi|mi)? (?:\w+ )?"
    r"(?:die sachen|las cosas|les choses|le cose|as coisas))"
    rf"(?:,? \w+){{0,3}}?,? {_MANNER}"
    # With an object it is one text that is asked for: "Write a letter in simple words".
    rf"|(?:write|schreibe?|escrib[ea]|ecri[sv]\w{{0,2}}|scrivi|escreva),? {_MANNER}"
)
_STYLE = (
    r"(?:emojis?|smileys?|bullet points?|bullets|lists|tables|jargon|markdown|slang|small talk"
    r"|aufzahlung\w*|stichpunkte|listen|tabellen|floskeln|fachbegriff\w*|fachjargon|anglizismen"
    r"|listas|vinetas|tablas|tecnicismos|jerga|rodeos|listes|puces|tableaux|anglicismes"
    r"|elenchi|tabelle|gergo|tecnicismi|topicos|tabelas|jargoes|girias|rodeios"
    r"|смайлик\w*|эмодзи|спис\w{2,4}|таблиц\w*|жаргон\w*|сленг\w*)"
)
_WITHOUT = (
    r"(?:no|without|avoid|skip|(?:do not|don'?t) use|keine?|ohne|vermeide?|lass|verzichte auf"
    r"|sin|nada de|evita|no uses|pas de|pas d'|sans|evitez?|n'utilise pas|niente|senza|non usare"
    rf"|sem|evite|nao use|без|избегай|не используй)\W?(?:\w+ ){{0,2}}?{_STYLE}"
)
_UNITS = (
    r"(?:use|verwende|benutze|nutze|usa|utiliza|utilise|используй)(?: \w+){0,2}? "
    r"(?:metric|imperial|metrische?n?|metric[oa]s?|metrique|metriche|celsius|fahrenheit"
    r"|метрическ\w*)"
)
_PLACE = (
    r"(?:office|home|house|flat|address|work|workplace|shop|buro|adresse|wohnung|arbeit"
    r"|haus|oficina"
    r"|casa|direccion|domicilio|trabajo|bureau|maison|domicile|travail|ufficio|indirizzo|lavoro"
    r"|escritorio|endereco|trabalho|офис|дом|адрес|работу)"
)
_DELIVERY = (
    r"(?:ship|send|deliver|mail|schicke?|liefere?|sende?|envia\w*|manda\w*|entrega\w*|envie|mande"
    r"|entregue|envoie\w?|livre\w?|expedie\w?|spedisci\w*|consegna\w*|invia\w*|отправляй(?:те)?"
    r"|доставляй(?:те)?|присылай(?:те)?)(?![^\W_]).{1,40}?(?<![^\W_])"
    r"(?:(?:to (?:my|our)|an (?:mein|unser)e?|in (?:mein|unser)e?|zu mir nach|a (?:mi|nuestr[oa])"
    r"|a (?:mon|ma|notre)|al (?:mio|nostro)|alla (?:mia|nostra)|para (?:o |a )?(?:meu|minha|nossa?)"
    rf"|на(?: мой| наш| мою)?) {_PLACE}(?![^\W_])|to \d{{1,5}} \w+ (?:st|street|rd|road"
    rf"|lane|avenue))"
)
_SPACED = _START + rf"(?:(?:{_BRIEF}|{_IN_A_MANNER}|{_WITHOUT}|{_UNITS})(?![^\W_])|{_DELIVERY})"
_UNSPACED = (
    r"(?:不要|别|请勿)(?:再)?(?:使?用|发)?(?:表情|专业术语|术语|列表|表格|敬语)"
    r"|用(?:中文|英文|日文|.{1,3}语|公制|摄氏)(?:单位|度)?(?:来)?(?:回答|回复|跟我|和我|$|[。！])"
    r"|(?:寄|送|发货|配送)到我(?:家|们公司|公司|单位|的地址)"
    r"|(?:絵文字|専門用語|箇条書き|敬語)(?:は|を)?(?:使わない|避けて|なし|やめて)"
    r"|(?:短く|簡潔に|丁寧に|簡単に|(?:日本|英|中国|.{1,3})語で|[一二三四五\d]文(?:以内)?で)"
    r"(?:答えて|話して|返信して|返事して|回答して)|(?:ため口|タメ口|敬語)で"
    r"|(?:口調|話し方|言葉|文体)で.{0,4}(?:話して|答えて|書いて|返事して)"
    r"|用(?:简体字|繁体字|大白话|.{1,4}的?(?:语气|口吻))"
    r"|(?:会社|自宅|職場|私の住所|うち)(?:に|へ)(?:送って|届けて|配達して)"
)
_REQUEST = re.compile(_SPACED.replace("й", "и"))
"""For folded text, in which "й" has no accent."""
_UNSPACED_REQUEST = re.compile(_UNSPACED)


def is_standing(sentence: str) -> bool:
    folded = fold(sentence)
    return bool(
        _REQUEST.match(folded) or (not folded.isascii() and _UNSPACED_REQUEST.search(folded))
    )
