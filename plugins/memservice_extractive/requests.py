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
    r"|notre|j|mio|mia|miei|mie|nostr[oaie]|meus?|minhas?|noss[oa]s?|мо[йяеиюих]\w?|наш\w{0,2}|мне|меня)"
    r"(?![^\W_])|我|私|僕"
)
_REPEAT = re.compile(
    r"(?<![^\W_])(?:remind me|erinnere? mich|recuerdame|rappelle-moi|rappelez-moi|ricordami"
    r"|lembre-me|me lembre|напомни(?:те)?(?: мне)?|提醒我一下)\W+(?:again\W+|noch ?mal\W+)?"
    r"(?:what|which|who|whom|whose|where|how|why|was|welche\w?|wie|wo|wer|warum|que|cual\w*|como|donde"
    r"|quien|ce que|quel\w*|comment|ou|qui|cosa|come|quale|dove|chi|o que|qual|onde|quem|что|как\w*"
    r"|где|кто|почему|什么|怎么)(?![^\W_])"
)
"""A question in the form of a request, for folded text: "remind me what to ask"."""
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
    """Whether it asks to keep in mind something about the speaker, which it tells."""
    folded = fold(sentence)
    start = _NOTE.match(folded)
    return start is not None and bool(_MINE.search(folded, start.end()))


def asks_again(sentence: str) -> bool:
    """Whether it asks for something that was said before."""
    return bool(_REPEAT.search(fold(sentence)))


def is_experience(sentence: str, language: str) -> bool:
    """Whether it tells what the speaker has always or never done."""
    pattern = _EXPERIENCE.get(language)
    return bool(pattern and pattern.match(fold(sentence)))
