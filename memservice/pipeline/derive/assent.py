"""Whether a message agrees with a message of another peer, or picks one of its options: in English,
German, French, Spanish, Portuguese, Italian, Chinese and Japanese."""

from __future__ import annotations

import re

from memservice.domain.text.folding import UNSPACED, fold

OPENING_WORDS = 8
"""Words at the start of a message that are checked for agreement or denial."""
OPENING_CHARACTERS = 14
"""The same in characters, for scripts without spaces."""

_YES = (
    # English
    "yes|yeah|yep|yup|yess|aye|sure|right|correct|exactly|indeed|absolutely|definitely|true|"
    "precisely|certainly|ok|okay|agreed|perfect|great|of course|spot on|you got it|you've got it|"
    "that's it|that is it|sounds good|sounds perfect|sounds great|works for me|fine by me|"
    "good memory|you remembered|i do|i am|i did|we do|we are|i have|still do|still am|"
    # German
    "ja|jawohl|jep|jap|genau|stimmt|richtig|klar|natuerlich|natürlich|korrekt|exakt|gerne|passt|"
    "einverstanden|auf jeden fall|so ist es|das ist richtig|das stimmt|in ordnung|perfekt|doch|"
    # French
    "oui|ouais|exactement|exact|tout a fait|bien sur|d'accord|c'est ca|c'est vrai|parfait|"
    "absolument|effectivement|en effet|volontiers|"
    # Spanish
    "si|claro|exacto|exactamente|correcto|asi es|por supuesto|vale|de acuerdo|perfecto|"
    "efectivamente|eso es|cierto|desde luego|"
    # Portuguese
    "sim|isso|isso mesmo|exatamente|certo|correto|claro que sim|com certeza|perfeito|combinado|"
    "e isso|verdade|"
    # Italian
    "esatto|esattamente|certo|certamente|giusto|corretto|d'accordo|va bene|perfetto|proprio cosi|"
    "e vero|vero|volentieri"
)
_YES_UNSPACED = (
    "是的|是啊|对|對|没错|沒錯|正是|好的|好啊|可以|行|当然|當然|嗯|确实|確實|"
    "はい|ええ|うん|そう|その通り|そのとおり|正解|もちろん|いいね|いいです|了解|確かに|です ね"
)
_CHOICE = (
    # English
    "first|second|third|fourth|last|former|latter|both|that one|this one|"
    "the one|let's take|i'll take|i'd take|option|number|go with|"
    # German
    "erste|ersten|erstes|zweite|zweiten|zweites|dritte|dritten|drittes|letzte|letzten|beide|"
    "beides|ersteres|letzteres|das da|nehme|nehmen wir|nummer|"
    # French
    "premier|premiere|deuxieme|seconde|troisieme|dernier|derniere|les deux|celui|celle|"
    "je prends|on prend|"
    # Spanish
    "primero|primera|segundo|segunda|tercero|tercera|ultimo|ultima|ambos|ambas|los dos|las dos|"
    "opcion|me quedo con|"
    # Portuguese
    "primeiro|primeira|terceiro|terceira|os dois|as duas|opcao|fico com|"
    # Italian
    "primo|prima|secondo|seconda|terzo|terza|ultimo|entrambi|entrambe|tutti e due|opzione|prendo"
)
_CHOICE_UNSPACED = (
    "第一|第二|第三|前者|后者|後者|两个都|兩個都|都要|这个|那个|這個|那個|选|選|"
    "一つ目|二つ目|三つ目|最初|最後|両方|どちらも|それ|そっち|こっち|一番目|二番目|にします"
)
_NO = (
    "no|nope|nah|not|never|don't|doesn't|isn't|wasn't|aren't|wrong|incorrect|neither|actually no|"
    "nein|nee|nicht|nie|falsch|kein|keine|"
    "non|pas|jamais|faux|"
    "nunca|falso|incorrecto|"
    "nao|errado|"
    "mai|sbagliato"
)
_NO_UNSPACED = "不|没有|沒有|错了|錯了|いいえ|いや|違|ちが|じゃない|ではない|ません"
_NO_EXCEPTIONS = re.compile(
    "没错|沒錯|不错|不錯|no doubt|no problem|why not|not bad|warum nicht|nicht schlecht|pas mal|"
    "pourquoi pas|por que no|perche no|porque nao"
)


def _compiled(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{fold(words)})(?![\w'])")


_SPACED = (_compiled(_NO), _compiled(_YES), _compiled(_CHOICE))
_JOINED = tuple(
    re.compile(fold(words)) for words in (_NO_UNSPACED, _YES_UNSPACED, _CHOICE_UNSPACED)
)
_LABEL = re.compile(r"^\W*(?:option |nummer |number |n[o°] ?)?(?:[a-e]|[1-9])(?:[.,!)]|$)")
"""The letter or the number of an option, at the start of a message."""


def confirms(text: str) -> bool:
    """Whether the opening of a message agrees, or picks an option, before any denial."""
    folded = _NO_EXCEPTIONS.sub("yes", fold(text))
    is_unspaced = UNSPACED.search(folded) is not None
    denial, *assents = _JOINED if is_unspaced else _SPACED
    opening = _opening(folded, is_unspaced)
    refusal = denial.search(opening)
    starts = [match.start() for assent in assents if (match := assent.search(opening))]
    if not starts:
        return _LABEL.match(folded) is not None
    return refusal is None or min(starts) < refusal.start()


def denies(text: str) -> bool:
    """Whether the opening of a message denies or refuses something."""
    folded = _NO_EXCEPTIONS.sub("yes", fold(text))
    is_unspaced = UNSPACED.search(folded) is not None
    denial = (_JOINED if is_unspaced else _SPACED)[0]
    return denial.search(_opening(folded, is_unspaced)) is not None


def _opening(folded: str, is_unspaced: bool) -> str:
    if is_unspaced:
        return folded[:OPENING_CHARACTERS]
    return " ".join(re.findall(r"[\w']+", folded)[:OPENING_WORDS])
