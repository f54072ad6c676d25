"""Sentences that say whom they are about only together with another one: short replies to a
question, and sentences that begin with a pronoun."""

from __future__ import annotations

import re

from memservice.domain.text.folding import fold
from memservice_extractive import topics
from memservice_extractive.facts import read
from memservice_extractive.language import UNSPACED, detect, words
from memservice_extractive.lexicon import FIRST_PERSON, STOP
from memservice_extractive.sentences import split
from memservice_extractive.worth import core, is_question, judge

MAX_REPLY_WORDS = 9
MAX_REPLY_CHARACTERS = 24
"""For Chinese and Japanese."""
_ALWAYS_SHORT = 4, 12
"""Words, or characters, of a reply that never says whom it is about. A longer one can state a fact
of the speaker that has a form of its own, and is stored alone then."""
MIN_QUESTION_LETTERS = 3
MAX_QUESTION = 200
"""Characters of a question that is stored with its reply."""
_MAX_READ = 4_000
MAX_FRAGMENT_WORDS = 3
_LETTER = re.compile(r"[^\W\d_]")

_PRONOUN = re.compile(
    r"(?:he|she|it|they|his|her|its|their|er|sie|es|sein|seine|ihr|ihre|il|elle|ils|elles"
    r"|lui|lei|loro|ele|ela|eles|elas|ella|ellos|ellas|он|она|оно|они|его|ее|их)(?![^\W_])"
    r"|(?:他|她|它|名字|その|彼|名前は)"
    r"|(?:mine|ours|meine[rs]?|unsere[rs]?|el mio|la mia|los mios|las mias|le mien|la mienne"
    r"|les miens|les miennes|il mio|i miei|le mie|o meu|a minha|os meus|as minhas|мои|моя)"
    r"(?=,| (?:is|are|ist|sind|heisst|heissen|hat|est|es|e|se|si|s'appelle|tem|tiene|ha|has|зовут)"
    r"(?![^\W_]))"
)
_ADVERB = re.compile(
    r"^(?:now|today|then|and|also|but|jetzt|nun|heute|dann|und|auch|aber|ahora|hoy|y|pero"
    r"|maintenant|desormais|et|mais|adesso|oggi|ma|agora|hoje|mas|теперь|сеичас|сегодня|и|а|но"
    r"|现在|而且|今は),? *"
)
"""What can stand before the pronoun."""
_COPULA = re.compile(r"^(?:È|Era|Sarà|Es|Son|Era|Será|Serán|É|São|Foi) [^?]*$")
"""A verb without a subject at the beginning of a sentence, in languages that leave pronouns out;
for text that is not folded."""
_ES_IS_A_PRONOUN = frozenset({"de"})
"""For folded text. A possessive such as Spanish "su" can be polite address, so it is not listed."""
_NOT_A_SUBJECT = re.compile(r"^(?:it|es|il) (?:is|was|s|ist|war|fait|gibt|y)(?![^\W_])")
_EMPTY_REPLY = re.compile(
    r"^(?:yes|yeah|yep|no|nope|ok|okay|sure|maybe|thanks|thank you|ja|nein|klar|danke|doch|oui|non"
    r"|merci|si|sim|nao|obrigad[oa]|gracias|da|да|нет|спасибо|grazie|vale|claro|好的?|是的?|不是?"
    r"|对|没有|谢谢|はい|いいえ|うん|そうです|ありがとう.*|fine|good|great|gut|bien|bem|bene)$"
)
_OF_FEELING = re.compile(
    r"\b(?:how are you|how is it going|how's it going|what's up|wie geht|como estas|comment ca va"
    r"|comment vas|como vai|come stai|как дела)\b|你好吗|お元気"
)
"""Questions whose replies are not worth remembering."""


def last_question(content: str) -> str:
    """The question at the end of a message; "" if it does not end with one."""
    text = " ".join(content.split())[-_MAX_READ:]
    if not text or text[-1] not in "?？":
        return ""
    language = detect(text)
    last = split(text, language)[-1]
    asks = (
        is_question(last, language)
        and len(_LETTER.findall(last)) >= MIN_QUESTION_LETTERS
        and not _OF_FEELING.search(fold(last))
    )
    return last if asks and len(last) <= MAX_QUESTION else ""


def is_short_reply(sentence: str, question: str) -> bool:
    """Whether a sentence is too short to say whom it is about, and has content."""
    language = detect(sentence)
    if set(words(sentence)) <= set(words(question)):
        return False  # "Do you want …? – I want": a "yes"
    if _EMPTY_REPLY.match(" ".join(words(sentence))) or is_question(sentence, language):
        return False
    if language in UNSPACED:
        return (
            len(sentence) <= MAX_REPLY_CHARACTERS
            and judge(sentence, language).kind != "filler"
            and (len(sentence) <= _ALWAYS_SHORT[1] or read(sentence) is None)
        )
    tokens = words(sentence)
    if len(tokens) > _ALWAYS_SHORT[0] and read(sentence) is not None:
        return False
    # With a first person it says itself whom it is about.
    own = FIRST_PERSON.get(language, FIRST_PERSON["en"])
    return 0 < len(tokens) <= MAX_REPLY_WORDS and own.isdisjoint(tokens)


def begins_with_pronoun(sentence: str) -> bool:
    """Whether its subject is a pronoun of the third person, so that the sentence before it is
    needed."""
    folded = fold(sentence)
    if _PRONOUN.match(folded, _start(folded)) and not _NOT_A_SUBJECT.match(folded):
        return True
    return bool(_COPULA.match(sentence)) and detect(sentence) not in _ES_IS_A_PRONOUN


def is_fragment(sentence: str) -> bool:
    """Whether it begins with a few words without a verb of the speaker, which continue the sentence
    before it: "I bought a horn! Second hand, dented."."""
    first, comma, _ = sentence.partition(",")
    tokens = words(first)
    if not comma or not 0 < len(tokens) <= MAX_FRAGMENT_WORDS:
        return False
    language = detect(sentence)
    if tokens[0] in STOP.get(language, STOP["en"]) - FIRST_PERSON.get(language, frozenset()):
        return False  # a place or time: "In Rome, she …"
    if language in UNSPACED or core(sentence, language) != sentence:
        return False
    return not topics.cues(language).subject.search(fold(sentence)) and read(sentence) is None


def _start(folded: str) -> int:
    """The end of an adverb at the beginning."""
    adverb = _ADVERB.match(folded)
    return adverb.end() if adverb else 0
