"""Requests that tell something, and statements that begin like a request."""

from __future__ import annotations

import re

from memservice.domain.text.folding import fold

_NOTE = re.compile(
    r"^\W*(?:(?:please|bitte|por favor|per favore|s'il te plait|пожалуйста|请|麻烦)\W+)?"
    r"(?:(?:note|save|jot down|write down|put down|keep|update|add|remember|record)(?![^\W_])"
    r"|(?:notiere?|speichere?|merke? dir|schreibe? (?:dir )?auf|halte fest)(?![^\W_])"
    r"|(?:anota|apunta|guarda|registra|recuerda|actualiza)(?![^\W_])"
    r"|(?:notez?|enregistrez?|retiens|retenez|garde|rappelle-toi)(?![^\W_])"
    r"|(?:annota|segna|segnati|salva|ricorda|ricordati|memorizza)(?![^\W_])"
    r"|(?:anot[ae]|guard[ae]|salv[ae]|registr[ae]|lembr[ae](?:-se)?)(?![^\W_])"
    r"|(?:запиши|запомни|сохрани|отметь|обнови)(?:те)?(?![^\W_])"
    r"|(?:帮我)?(?:记一?下|记下|记住|记得|保存|更新)|(?:覚えて|メモ))"
)
"""A request to keep something in mind, for folded text."""
_MINE = re.compile(
    r"(?<![^\W_])(?:my|our|i|i'm|mein\w{0,2}|unser\w{0,2}|ich|mi|mis|nuestr[oa]s?|mon|ma|mes|nos"
    r"|notre|j|mio|mia|miei|mie|nostr[oaie]|meus?|minhas?|noss[oa]s?|мо[йяеиюих]\w?"
    r"|наш\w{0,2}|мне|меня)"
    r"(?![^\W_])|我|私|僕"
)
_DATE = re.compile(r"\d{1,2}(?:月|日|号|点|時|[:.]\d\d| (?:de |d')?[^\W\d_]{3,})")
"""A day or an hour: what is to be noted is an appointment."""
_REPEAT = re.compile(
    r"(?<![^\W_])(?:remind me|erinnere? mich|recuerdame|rappelle-moi|rappelez-moi|ricordami"
    r"|lembre-me|me lembre|напомни(?:те)?(?: мне)?|提醒我一下)\W+(?:again\W+|noch ?mal\W+)?"
    r"(?:what|which|who|whom|whose|where|how|why|was|welche\w?|wie|wo|wer|warum|que"
    r"|cual\w*|como|donde"
    r"|quien|ce que|quel\w*|comment|ou|qui|cosa|come|quale|dove|chi|o que|qual|onde|quem|что|как\w*"
    r"|где|кто|почему|什么|怎么)(?![^\W_])"
)
"""A question in the form of a request, for folded text: "remind me what to ask"."""
_STORY = (
    r".{0,40}?(?<![^\W_])(?:story|stories|tale|fairy tale|fable|poem|song|limerick|sketch|scene"
    r"|storyline|screenplay|theaterstuck|drehbuch|cuentito|historieta|obra de teatro|guion"
    r"|piece de theatre|scenario|personnage|storiella|favoletta|copione|personaggio"
    r"|historinha|estorinha|roteiro|пьес\w|сценк\w|сценари\w"
    r"|\w{0,20}geschichte|marchen|gedicht|lied|fabel|szene|cuento|historia|relato|poema"
    r"|cancion|fabula|histoire|poeme|chanson|conte|fable|storia|favola|racconto|poesia"
    r"|filastrocca|canzone|fiaba|conto|cancao|сказк\w{1,2}|рассказ|истори\w|стих\w{0,10}|басн\w"
    r"|песн\w)(?![^\W_])"
)
_FICTION = re.compile(
    r"\W*(?:(?:\w+\W+){0,4}?(?:write|tell|invent|make up|create|compose|erfinde?|schreibe?"
    r"|erzahle?|dichte"
    r"|denk dir|escrib\w{1,4}|inventa\w{0,3}|invente\w{0,2}|crea|cuenta\w{0,3}|ecris|ecrivez"
    r"|raconte\w{0,2}|imagine\w{0,2}|compose\w{0,2}|scriv\w{1,3}|racconta\w{0,2}"
    r"|componi|escrev\w{1,2}|crie|conte|напиши|сочини|придумаи|расскажи)(?:те)?"
    # "Minha irmã faz …" tells what she does.
    r"|(?:faz|faca|haz(?:me)?|fais|faites|fammi|mach(?: mir)?|make me|give (?:me|us)|сделаи))"
    rf"(?![^\W_]){_STORY}"
)
"""A request for something invented, at the beginning of folded text."""
_INVENTS = re.compile(
    r"\W*(?:\w+\W+){0,6}?(?:(?:are|we're) (?:writing|inventing|making up)|inventons"
    r"|ecrivons|escribiendo|inventando|scrivendo|inventiamo|escrevendo|(?:bora|vamos) fazer"
    rf"|пишем|сочиняем|придумываем)(?![^\W_]){_STORY}"
)
"""That a story is being invented, at the beginning of folded text."""
_UNSPACED_FICTION = re.compile(
    r"(?:写|编|讲|创作).{0,12}?(?:故事|小说|诗|童话|剧本)"
    r"|(?:故事|小说|童话|剧本|相声).{0,4}?(?:开个?头|结尾|续写|接下去|想个)"
    r"|(?:物語|小説|童話|お話|詩).{0,12}?(?:書|作|考え|聞かせ)"
)
_CONTACT = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}\.\w|\+?\d(?:[ ()/-]?\d){6}")
_TO_SPEAKER = re.compile(
    r"(?<![^\W_])(?:(?:write|text|call|reach|e-?mail|message|ring|send|contact)(?: \w{1,12}){0,3}"
    r" (?:me|us)|(?:schreibe?|rufe?|erreich\w{0,3}|schicke?"
    r"|sende?)(?: \w{1,12}){0,3} (?:mir|mich|uns)"
    r"|(?:escrib[ei]|llama|llame|manda|mande|envia|envie|contacta|localiza)(?:me|nos)"
    r"|(?:ecri[sv]\w{0,2}|appelle\w?|joi\w{1,5}|contacte\w?|envoie\w?)-(?:moi|nous)"
    r"|(?:scrivi|chiama|contatta|manda|invia)(?:mi|ci|temi)"
    r"|me (?:escrev\w|lig\w{1,2}|mand\w|contat\w)|(?:escrev\w|lig\w{1,2}|mand\w)-me"
    r"|(?:пиши|звони|напиши|позвони|присылаи)(?:те)?)(?![^\W_])"
    r"|联系我|找我|打给我|发给我|给我(?:打|发)|連絡"
)
"""A request to reach the speaker, for folded text."""
_EXPERIENCE = {
    "en": re.compile(
        r"^(?:never|always) (?:really |quite )?(?:been|had|got|done|seen|met|\w+ed)\b"
    ),
    "it": re.compile(r"^(?:mai|sempre) (?:piu )?\w{1,20}[tsu][oaie]\b"),
    "es": re.compile(r"^(?:siempre|nunca) (?:he|hemos|habia|fui|tuve|estuve|\w{2,20}aba)\b"),
    "fr": re.compile(r"^(?:toujours|jamais) (?:eu|ete|vu|fait|pu|su|aime|\w{2,20}[ei])\b(?! moi)"),
    "pt": re.compile(
        r"^(?:sempre|nunca) (?:tive|fui|estive|fiz|vi|pude|\w{2,20}[ae]i|\w{2,20}ava)\b"
    ),
    "ru": re.compile(r"^(?:всегда|никогда)(?: не)? \w{1,20}л[аи]?\b"),
}
""""Always" or "never" with a verb that tells of the past, for folded text: the speaker has left
"I" out."""


def notes(sentence: str) -> bool:
    """Whether it tells something about the speaker: what to keep in mind, or where to reach it."""
    folded = fold(sentence)
    start = _NOTE.match(folded)
    if start is not None and (
        _MINE.search(folded, start.end()) or _DATE.search(folded, start.end())
    ):
        return True
    return bool(_CONTACT.search(folded) and _TO_SPEAKER.search(folded))


def asks_for_fiction(sentence: str) -> bool:
    """Whether it asks for a story or a poem: what it says of it is true of nobody."""
    folded = fold(sentence)
    return bool(
        _FICTION.match(folded) or (not folded.isascii() and _UNSPACED_FICTION.search(folded))
    )


def begins_fiction(sentence: str) -> bool:
    """Whether the sentences after it may tell a story. It can itself be true of its speaker: "Tom
    and I are writing a play"."""
    return asks_for_fiction(sentence) or bool(_INVENTS.match(fold(sentence)))


def asks_again(sentence: str) -> bool:
    """Whether it asks for something that was said before."""
    return bool(_REPEAT.search(fold(sentence)))


def is_experience(sentence: str, language: str) -> bool:
    """Whether it tells what the speaker has always or never done."""
    pattern = _EXPERIENCE.get(language)
    return bool(pattern and pattern.match(fold(sentence)))
