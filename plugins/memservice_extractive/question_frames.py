"""What surrounds a question and is no part of it: "Can you tell me where she lives?"."""

from __future__ import annotations

import re
from functools import cache

_BEFORE = {
    "de": r"(?:kannst|konntest|wurdest) du (?:mir |uns )?(?:bitte )?(?:mal )?(?:sagen|verraten)"
    r"|(?:konnen|konnten) sie (?:mir |uns )?(?:bitte )?(?:sagen|verraten)|weisst du(?: noch)?"
    r"|wissen sie(?: noch)?|ich (?:wurde|mochte|will) (?:gerne? )?wissen|ich wusste (?:gerne?)"
    r"|ich frage mich|sag(?:e|en sie)? (?:mir|mal|uns)(?: bitte| mal)?|verrate? mir"
    r"|hast du eine ahnung|mich (?:wurde interessieren|interessiert)|erinnerst du dich(?: daran)?",
    "en": r"(?:can|could|would|will) you (?:please |maybe )?(?:tell|remind) (?:me|us)(?: again)?"
    r"|do you (?:happen to )?(?:know|remember|recall)(?: by any chance)?"
    r"|i(?:'d| would) (?:really )?(?:like|love) to (?:know|find out)|i (?:want|need) to know"
    r"|i(?:'m| am| was) (?:just )?(?:wondering|curious|curious about)|i wonder|any idea"
    r"|have you any idea|do you have any idea|(?:please )?(?:tell|remind) (?:me|us)(?: again)?"
    r"|just out of curiosity|out of curiosity",
    "es": r"(?:me|nos) (?:puedes|podrias|puede|podria) (?:decir|recordar)"
    r"|(?:puedes|podrias|puede|podria) (?:decirme|recordarme)|(?:tu )?sabes|sabe usted"
    r"|(?:me gustaria|quisiera|quiero|querria) saber|dime|recuerdame|me pregunto|te acuerdas de"
    r"|tienes idea de|por casualidad sabes",
    "fr": r"(?:est-ce que )?(?:tu peux|vous pouvez|tu pourrais|vous pourriez) (?:me|nous) dire"
    r"|(?:peux|pourrais)-tu (?:me|nous) (?:dire|rappeler)"
    r"|(?:pouvez|pourriez)-vous (?:me|nous) (?:dire|rappeler)"
    r"|(?:est-ce que )?(?:tu sais|vous savez)"
    r"|sais-tu|savez-vous|(?:j'aimerais|je voudrais|j'aurais voulu|je veux) savoir|je me demande"
    r"|dis-moi|dites-moi|rappelle-moi|tu te souviens",
    "it": r"(?:mi )?sai dir(?:e|mi)|(?:mi )?(?:puoi|potresti|puo|potrebbe) dir(?:e|mi)"
    r"|(?:vorrei|mi piacerebbe|voglio|volevo) sapere|(?:lo )?sai|sa dirmi|dimmi|mi dici|ricordami"
    r"|mi chiedo|ti ricordi|hai idea di",
    "pt": r"(?:voce |tu )?(?:pode|poderia|podes|consegue) (?:me )?dizer(?:-me)?|me diz|me diga"
    r"|diga-me|(?:voce |tu )?(?:sabe|sabes)(?: me)?(?: dizer)?"
    r"|(?:eu )?(?:gostaria|queria|quero) (?:de )?saber|me lembra|(?:voce )?(?:se )?lembra"
    r"|fico me perguntando|faz ideia de|sera que",
    "ru": r"(?:ты |вы )?не (?:подскажешь|подскажете|знаешь|знаете|помнишь|помните)"
    r"|(?:подскажи|скажи|напомни|расскажи)(?:те)?(?: мне)?(?:,? пожалуйста)?"
    r"|(?:ты )?(?:знаешь|помнишь)(?: ли)?(?: ты)?|(?:вы )?(?:знаете|помните)"
    r"|(?:мне )?(?:бы )?хотел(?:ось|а)?(?: бы)? (?:узнать|знать)|(?:мне )?интересно(?: узнать)?"
    r"|можешь (?:сказать|напомнить)|можете (?:сказать|напомнить)|не мог(?:ла?)? бы ты сказать",
    "zh": r"请问(?:一下)?|(?:你|您)?知(?:不知)?道|(?:你|您)?能(?:不能)?告诉我|(?:你|您)?可以告诉我"
    r"|(?:我)?想(?:知道|问一?下|了解一?下)|告诉我|(?:你|您)?还记得|(?:我)?问一下|麻烦问一?下",
    "ja": r"(?:ところで|ちなみに|すみませんが?|あの)[、,]?",
}
_AFTER = {
    "zh": r"(?:你|您)?知道吗|(?:你|您)?记得吗",
    "ja": r"(?:か|って|のか)?(?:、)?(?:分か(?:る|ります)|わか(?:る|ります)|知って(?:る|いる|います)"
    r"|覚えて(?:る|いる|います)|知りたい(?:です)?(?:が|けど)?|教えて(?:ください|くれる|くれますか"
    r"|もらえますか)?)か?",
}


@cache
def _patterns(language: str) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    before, after = _BEFORE.get(language), _AFTER.get(language)
    return (
        re.compile(
            rf"\W*(?:{before})(?![^\W_'])[\s,:，、]*"
            if before and language not in _AFTER
            else rf"\W*(?:{before})[\s,:，、]*"
        )
        if before
        else None,
        re.compile(rf"(?:{after})\W*$") if after else None,
    )


def without_frame(folded: str, language: str) -> str:
    """A question, in folded text, without what only says that it is one; itself if nothing else
    remains."""
    before, after = _patterns(language)
    rest = folded
    if before and (match := before.match(rest)):
        rest = rest[match.end() :]
    if after:
        rest = after.sub("", rest)
    return rest if any(map(str.isalnum, rest)) else folded
