"""Whether a question is about the one who asks it, and whether a text is about its writer.

Only pronouns count, and the few verb forms without which a second person would be overlooked.
"""

from __future__ import annotations

from memservice.domain.text.folding import fold
from memservice.domain.text.late_pattern import late_pattern
from memservice.domain.text.relatives import languages_of

OPENING = 500
"""Characters at the beginning of a text that tell whether it is about its writer: the rest of a
long one is often quoted, a list or code."""

_FIRST = {
    "en": "i|me|my|mine|myself|we|us|our|ours",
    "de": "ich|mich|mir|mein(?:e[mnrs]?)?|wir|uns|unser(?:e[mnrs]?)?",
    "fr": "j|je|m|moi|mon|ma|mes|nous|notre|nos",
    "es": "yo|mi|mis|conmigo|nosotr[oa]s|nuestr[oa]s?",
    "pt": "eu|meus?|minhas?|comigo|noss[oa]s?",
    "it": "io|mio|mia|miei|mie|nostr[oaie]",
    "ru": "я|меня|мне|мной|мо[йяеи]|моего|моей|моему|моих|мою|мы|нас|нам|наша?|наше|наши",
}
_SECOND = {
    "en": "you|your|yours|yourself",
    "de": "du|dich|dir|dein(?:e[mnrs]?)?|euch|euer|eure[mnrs]?",
    "fr": "t|tu|toi|te|ton|ta|tes|vous|votre|vos",
    "es": r"tu|ti|te|tus|usted|ustedes|has|\w+[ai]ste",
    "pt": r"tu|ti|te|teus?|tuas?|voces?|\w+[ai]ste",
    "it": "tu|ti|te|tu[oae]|tuoi|voi|vi|hai|avete",
    "ru": "ты|тебя|тебе|тво[йяеи]|вы|вас|вам|ваш[аеи]?",
}
_PRONOUNS = {
    language: (
        late_pattern(rf"(?<!\w)(?:{_FIRST[language]})(?!\w)"),
        late_pattern(rf"(?<!\w)(?:{_SECOND[language]})(?!\w)"),
    )
    for language in _FIRST
}
_UNSPACED = (
    late_pattern("我|俺|僕|私|わたし|ぼく|저는|제가|나는|내가|나의|제 |내 "),
    late_pattern("你|您|あなた|君|くれ|くださ|당신|너는|네가|줘|줬|주세요|주었|주셨"),
)
_FORMAL_GERMAN = late_pattern(r"(?<=[\w,] )(?:Sie|Ihnen|Ihre?[mnrs]?)(?!\w)")
_REQUEST = late_pattern(
    r"(?<!\w)(?:(?:can|could|will|would) you|(?:give|let|remind|show|tell) me|"
    r"(?:erzahle?|gib|nenne?|sage?|zeige?) mir|(?:dis|donne|montre|rappelle)[- ]moi)(?!\w)"
)
"""How a question begins without saying whom it is about."""

_OWN = late_pattern(
    r"(?<!\w)(?:my|mine|mein(?:e[mnrs]?)?|mon|ma|mes|mis?|meus?|minhas?|mi[oa]|miei|mie|"
    r"мо[йяеи]|моего|моей|моему|моих|мою)(?!\w)|我|俺|僕|私|저는|제가|나는|내가|나의"
)


def asks_about_asker(question: str) -> bool:
    """Whether a question has a word of the first person in its language and none of the second: "my
    budget" is what the asker said, "what did you tell me" what another one did."""
    if _FORMAL_GERMAN.search(question):
        return False
    folded = _REQUEST.sub(" ", fold(question))
    spoken = [_UNSPACED] + [_PRONOUNS[each] for each in languages_of(question) if each in _PRONOUNS]
    return any(first.search(folded) for first, _ in spoken) and not any(
        second.search(folded) for _, second in spoken
    )


def is_about_writer(text: str) -> bool:
    """Whether the opening of a text says that something is its writer's own: "my garden". A helper
    says "I" as often, but seldom "my"."""
    return _OWN.search(fold(text[:OPENING])) is not None
