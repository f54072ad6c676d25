"""Set phrases by language: greetings, acknowledgements, filler, questions without a mark, commands
and standing instructions."""

from __future__ import annotations

import re

_NAME = r"[A-ZÄÖÜ][\w'’-]+"


def _any(*alternatives: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """A pattern of alternatives. Those that begin a text share one `^`: with one each, a search
    tries them all at every character."""
    starts = "|".join(f"(?:{each[1:]})" for each in alternatives if each.startswith("^"))
    others = [f"(?:{each})" for each in alternatives if not each.startswith("^")]
    return re.compile("|".join([*([f"^(?:{starts})"] if starts else []), *others]), flags)


GREETING = re.compile(
    r"^¡?(?i:hi|hiya|hello|hey|dear|greetings|good "
    r"(?:morning|afternoon|evening|night)|morning|welcome(?: back)?|hallo|moin|servus"
    r"|guten (?:morgen|tag|abend)|gute nacht|grüezi|grüß "
    r"(?:dich|gott)|liebe[r]?|bonjour|salut|bonsoir|coucou|hola|buenos días"
    r"|buenas(?: tardes| noches)?|ciao|salve|buongiorno|buonasera"
    r"|oi|olá|bom dia|boa (?:tarde|noite)"
    r"|привет|здравствуйте?|добрый (?:день|вечер)|доброе утро)"
    r"(?i: there| all| everyone| everybody| guys| again| zusammen| allerseits)?"
    rf"(?: {_NAME}){{0,2}}(?:\s*[,.!;:~–—-]+\s*|\s*$|\s+(?=[IiWwM]))"
)

OPENER = _any(
    (
        r"^(?:thanks|thank you|thx|many thanks|cheers|danke|vielen dank|danke "
        r"schön|dankeschön|merci|gracias)"
        r"(?: (?:so much|very much|a lot|again|a "
        r"bunch|sehr|vielmals|dir|euch|ihnen|nochmals?))*(?: (?:for|für|pour|por)\b[^,.!;]*)?"
        r"(?:\s*[,.!;:–—-]+\s*|\s*$)"
    ),
    (
        r"^(?:sorry|apologies|my apologies|entschuldigung|sorry about that|tut mir leid|es tut "
        r"mir leid|pardon|perdón)"
        r"(?: (?:for|about|für|wegen)\b[^,.!;]*)?(?:\s*[,.!;:–—-]+\s*|\s*$)"
    ),
    (
        r"^(?:congrats|congratulations|well done|glückwunsch|herzlichen "
        r"glückwunsch|félicitations|felicidades)"
        r"(?: (?:on|zu|zum|zur|pour|por)\b[^,.!;]*)?(?:\s*[,.!;:–—-]+\s*|\s*$)"
    ),
    (
        r"^(?:yes|yeah|yep|yup|no|nope|nah|ok|okay|k|sure|sure thing|of "
        r"course|absolutely|definitely|exactly|totally|indeed|right"
        r"|correct|true"
        r"|got it|understood|noted|i see|makes "
        r"sense|well|oh|ah|aha|wow|whoa|haha+|hehe+|lol|hmm+|um+|uh+|yay|aw+|ugh|oops|great|cool"
        r"|nice|awesome"
        r"|perfect|amazing|fantastic|wonderful|excellent|sounds good|fine|alright|all "
        r"right|good|anyway|anyways|so|please|by the way|btw"
        r"|fyi"
        r"|no problem|no worries|never mind|you'?re welcome|my pleasure|oh my god|omg|oh no|oh "
        r"wow|good question|great question|honestly"
        r"|actually"
        r"|ja|jep|jo|nein|nee|doch|klar|genau|stimmt|richtig|gut|alles klar|na "
        r"klar|natürlich|verstanden|verstehe|ach|ach so|achso|aha"
        r"|oh je"
        r"|super|toll|prima|schön|cool|perfekt|wunderbar|gern|gerne|gern geschehen|bitte|kein "
        r"problem|na ja|naja|tja|also|übrigens"
        r"|eigentlich"
        r"|oui|non|d'accord|bien sûr|bravo|sí|si|vale|claro)(?:\s*[,.!;:–—-]+\s*|\s*$)"
    ),
)

FILLER: dict[str, re.Pattern[str]] = {
    "en": _any(
        r"^(?:i )?(?:really )?hope (?:you|your|this|that|all|it|everything|to)\b",
        r"^have (?:a|an|fun)\b.*(?:day|night|evening|weekend|one|trip|time|fun|week)\b",
        r"^(?:see|talk to|speak to|catch|write) (?:you|ya|soon|later)\b",
        (
            r"^(?:take care|good luck|happy (?:birthday|new "
            r"year|holidays|easter|anniversary)|merry christmas|best(?: regards| wishes)?"
            r"|kind regards|regards|cheers|bye|goodbye|good ?night|safe travels|enjoy|keep "
            r"(?:it up|going|up)|way to go|my pleasure)\b"
        ),
        r"^(?:please )?let me know\b",
        (
            r"^(?:i'?m |i am )?(?:so |very |really "
            r")?(?:glad|happy|pleased|sorry|excited|delighted) (?:to "
            r"(?:hear|help|see|assist|know)"
            r"|for you|you|that you|it|i could)\b"
        ),
        (
            r"^(?:it'?s |it was |was )?(?:so |very )?(?:nice|great|good|lovely|a pleasure) "
            r"(?:to (?:meet|see|hear|talk)|meeting|talking"
            r"|seeing|hearing|chatting)\b"
        ),
        (
            r"^(?:that|this|it)(?:'s| is| was| would be| makes| sounds| looks| "
            r"seems)\b(?!.*\b(?:i|my|me|we|our)\b)(?:\W+\w+){0,4}\W*$"
        ),
        r"^sounds like\b",
        (
            r"^i (?:totally |completely |fully |really |also "
            r")*(?:agree|understand|see|know|think so|guess|bet|suppose|get it|hear you"
            r"|appreciate)\b"
            r"(?:\W+(?:it|that|this|so|you|with|what|mean|your|all|the|support|advice|help|kind"
            r"|words|feel))*\W*$"
        ),
        r"^i (?:do not|don'?t) (?:know|mind|care|think so|understand)\W*$",
        r"^as an ai\b",
        r"^i(?:'m| am) (?:here (?:to|for)|happy to|able to|not able to|unable to|just an|an ai)\b",
        (
            r"^i(?:'m| am) (?:so |very |really |just |doing |pretty |all |not "
            r")*(?:fine|good|ok|okay|great|well|back|here|ready|sure"
            r"|sorry|tired|listening)"
            r"(?:[,.! ]+(?:thanks|thank you|too|now|though|today))*\W*$"
        ),
        r"^i (?:can|could|will|'ll) (?:help|assist|do that)\b",
        r"^here(?:'s| is| are) (?!my\b|our\b)",
        (
            r"^(?:just kidding|what an?\b|how "
            r"(?:nice|lovely|cool|sweet|wonderful|exciting|sad)\b|one moment|give me a "
            r"(?:sec|second"
            r"|moment|minute)"
            r"|hold on|wait|hang on|brb|be right back|just a)\b"
        ),
    ),
    "de": _any(
        r"^(?:ich )?hoffe,? (?:dir|euch|ihnen|du|ihr|sie|es|alles|das|dass)\b",
        (
            r"^(?:mir|uns) geht(?:'s| es)? (?:es )?(?:auch |ganz |sehr |gerade "
            r")*(?:gut|super|prima|bestens|okay)\b"
        ),
        (
            r"^(?:bis (?:bald|morgen|dann|später|gleich|nächste|zum)|viel "
            r"(?:glück|spaß|erfolg)|gute besserung"
            r"|(?:einen )?schöne[ns]? (?:tag|abend|woche)"
            r"|schönes wochenende|freut mich|freue mich|keine ahnung|kein problem|alles "
            r"(?:gut|klar|gute)|mit freundlichen grüßen"
            r"|auf wiedersehen|tschüss"
            r"|(?:liebe|viele|beste|herzliche) grüße|frohe weihnachten|frohes neues|mach'?s "
            r"gut|pass auf dich auf)\b"
        ),
        (
            r"^ich (?:weiß|verstehe|glaube|denke|finde|sehe)(?:,? "
            r"(?:es|das|dich|auch|nicht|schon|so|ja|was du meinst|super|gut"
            r"|toll))*\W*$"
        ),
        (
            r"^ich bin (?:auch |so |sehr |ganz |wieder |gerade "
            r")*(?:da|hier|müde|froh|bereit|zurück)\W*$"
        ),
        r"^(?:wie (?:schön|toll|cool|nett|schade)|was für eine?|so ein)\b",
        (
            r"^(?:das|es) (?:ist|war|klingt|wäre|hört "
            r"sich|freut|tut|sieht|macht)\b(?!.*\b(?:ich|mein\w*|wir"
            r"|unser\w*)\b)(?:\W+\w+){0,4}\W*$"
        ),
        r"^(?:klingt|hört sich)\b",
        r"^(?:einen moment|moment|warte|sag (?:mir )?bescheid|melde dich|ich helfe)\b",
        r"^ich kann (?:dir|ihnen|euch)\b",
    ),
}

QUESTION: dict[str, re.Pattern[str]] = {
    "en": _any(
        (
            r"^(?:and |but |so |also )?(?:how \w+|which \w+|whose \w+|what "
            r"(?:time|kind|sort|type|colou?r|year|day)) (?:\w+ )?(?:is|are"
            r"|was|were|do|does|did|can|could|should|would|will|has|have)\b"
        ),
        (
            r"^(?:and |but |so |also )?(?:what|why|how|where|who|when)(?:'s|'re| is| are| do| "
            r"does| did| can| could| should| would| will"
            r"| about| come)\b"
        ),
        (
            r"^(?:and |but |so "
            r")?(?:can|could|would|will|do|did|does|are|were|have|has|should|shall|may|might|is|was"
            r"|isn't|aren't|don't"
            r"|won't) "
            r"(?:you|i|we|it|there|this|that|he|she|they|someone|anyone)\b"
        ),
    ),
    "de": _any(
        (
            r"^(?:und |aber |also "
            r")?(?:was|wie|wo|wer|wann|warum|wieso|weshalb|woher|wohin|welche[rs]?) "
            r"(?:ist|sind|war|machst|macht"
            r"|geht|kann|könn\w+|soll\w*|würde\w*"
            r"|hast|hat|haben|habt|meinst|kommst|heißt|bedeutet|viel\w*|lange|oft)\b"
        ),
        (
            r"^(?:und |aber "
            r")?(?:kannst|könntest|würdest|willst|hast|bist|weißt|magst|möchtest|darf|soll|können"
            r"|könnten|haben"
            r"|sind) (?:du|ich|wir|sie|ihr)\b"
        ),
    ),
    "zh": _any(
        r"[吗呢]$",
        r"^(?:什么|怎么|为什么|哪里|哪儿|谁|多少)",
        r"(?:是不是|能不能|可不可以|有没有|好不好)",
    ),
    "ja": _any(
        r"(?:です|ます|でしょう|ました|でした|ません|かな|の|んだ)か(?:ね|な)?$",
        r"かな$",
        r"^(?:何|なに|なぜ|どうして|どこ|誰|いつ|どう)(?:が|を|で|して|です|や|思)",
    ),
}

_DETERMINED = (
    r"(?:me|us|a|an|the|this|that|it|these|those|my|your|some|all|him|her|them|to|in|for|out"
    r"|up|how|what|why|where|which|every\w*"
    r"|more|each|\d+"
    r"|one|two|three|four|five|ten)\b"
)
COMMAND: dict[str, re.Pattern[str]] = {
    "en": _any(
        r"^(?:now |then |also |and )?please\b",
        (
            r"^(?:now |then |also |and |next "
            r")?(?:write|rewrite|translate|explain|summari[sz]e|tell|show me|give "
            r"me|generate|calculate"
            r"|compute|list|describe"
            r"|refactor|implement|debug|remind|send|print|search|google|ignore"
            r"|compare|provide|proofread|draft|analy[sz]e)\b(?! "
            r"(?:is"
            r"|are|was|has|i)\b)"
        ),
        (
            r"^(?:now |then |also |and |next "
            r")?(?:add|buy|book|call|change|check|convert|create|delete|do|draw|edit|find"
            r"|fix|format"
            r"|get"
            r"|give|help|keep|look|make|open"
            r"|order|pick|plan|play|put|read|recommend|remove|repeat|replace|return|review|run"
            r"|schedule|set|show|start|stop|suggest"
            r"|take|test|try|turn|update|use)"
            rf" {_DETERMINED}"
        ),
        r"^i(?: want| need| would like|'d like|'d love) you to\b",
        (
            r"^(?:do not|don'?t|never|always|stop|avoid|call me|answer|respond|reply|use|refer "
            r"to me|address me)\b"
        ),
    ),
    "de": _any(
        r"^(?:und |dann |jetzt |nun )?bitte\b",
        (
            r"^(?:und |dann |jetzt |nun "
            r")?(?:schreibe?|übersetze?|erkläre?|zeige?|gib|nenne?|erstelle?|fasse?|hilf|berechne"
            r"|lies|prüfe?"
            r"|korrigiere?|beschreibe?"
            r"|vergleiche?|erzähle?|schicke?|sage?|liste|suche?|finde?|mache?|öffne|lösche?"
            r"|formuliere?|antworte?|verwende|benutze?)"
            r" "
            r"(?:mir|uns|bitte|das|den|die|dies\w*|eine?n?|alle\w*|es|ihn|sie|mal|mich|auf|kurz"
            r"|\d+)\b"
        ),
        (
            r"^(?:schreiben|übersetzen|erklären|zeigen|geben|nennen|erstellen"
            r"|antworten|verwenden|prüfen) "
            r"sie\b"
        ),
        r"^ich (?:möchte|will|hätte gern),? dass du\b",
        (
            r"^(?:merke? dir|vergiss nicht|denke? daran|denk dran|ab jetzt|ab "
            r"sofort|künftig|in zukunft)\b"
        ),
    ),
    "zh": _any(
        r"^(?:请|麻烦|帮我|帮忙|给我|替我|翻译|解释|总结|告诉我|列出|推荐|查一?下|写一|写个|写篇|你能|您能|能不能|可以帮|记住|记得|别忘|不要|别|以后"
        r"|今后|从现在起|叫我)"
    ),
    "ja": _any(
        r"(?:ください|下さい|くれ|してほしい|して欲しい|教えて|書いて|訳して|お願い(?:します|いたします)?|頼む|覚えて(?:おいて|て)?|と呼んで)(?:ね|よ)?$",
    ),
    "es": _any(
        r"^(?:y |ahora |luego )?por favor\b",
        (
            r"^(?:y |ahora |luego )?(?:escr[ií]be(?:me|lo)?|traduce|expl[ií]ca(?:me|lo)?|resume"
            r"|d[ií]me|dame"
            r"|mu[eé]stra(?:me)?|busca|calcula|haz(?:me)?|crea|genera|responde|resp[oó]ndeme"
            r"|contesta|cont[eé]stame"
            r"|usa|utiliza|tr[aá]tame|tut[eé]ame|evita|h[aá]blame|recuerda|recu[eé]rdame"
            r"|no olvides|ll[aá]mame|env[ií]a(?:me|lo)?"
            r"|m[aá]nda(?:me|lo)?|an[oó]ta)\b"
        ),
        r"^(?:siempre|nunca|a partir de ahora|de ahora en adelante|quiero que|no me)\b",
    ),
    "fr": _any(
        r"^(?:et |maintenant |puis )?(?:s'il (?:te|vous) pla[iî]t|merci de)\b",
        (
            r"^(?:et |maintenant |puis )?(?:[eé]cris|[eé]crivez|traduis|traduisez|explique"
            r"|expliquez|r[eé]sume"
            r"|r[eé]sumez|dis|dites|donne|donnez|montre|montrez|cherche|cherchez|calcule|calculez"
            r"|r[eé]ponds"
            r"|r[eé]pondez|utilise|utilisez|rappelle|rappelez|n'oublie|n'oubliez|appelle|appelez"
            r"|envoie|envoyez|note|notez|tutoie|tutoyez|vouvoie|vouvoyez|[eé]vite"
            r"|[eé]vitez)(?:-|\b)"
        ),
        (
            r"^(?:toujours|jamais|d[eé]sormais|dor[eé]navant|[aà] partir de maintenant|je veux que"
            r"|ne me)\b"
        ),
    ),
    "it": _any(
        r"^(?:e |ora |poi )?per favore\b",
        (
            r"^(?:e |ora |poi )?(?:scrivi(?:mi)?|traduci|spiega(?:mi)?|riassumi|dimmi|dammi"
            r"|mostra(?:mi)?|cerca|calcola|rispondi(?:mi)?"
            r"|usa|evita|dammi del|parlami|ricorda(?:ti)?|ricordami|non dimenticare"
            r"|chiamami|invia(?:mi)?|manda(?:mi|lo)?"
            r"|annota)\b"
        ),
        r"^(?:sempre|mai|d'ora in poi|da ora in poi|voglio che|non mi)\b",
    ),
    "pt": _any(
        r"^(?:e |agora |depois )?por favor\b",
        (
            r"^(?:e |agora |depois )?(?:escrev[ae]|traduz[ae]?|expli(?:ca|que)|resum[ae]"
            r"|diga(?:-me)?|evite|me (?:trate|d[eê]|diga|mostre|responda|chame|lembre|envie|mande)"
            r"|mostr[ae]|procur[ae]|calcul[ae]|respond[ae]|us[ae]|lembre(?:-se|-me)?"
            r"|n[aã]o (?:se )?esque[cç]a|envi[ae]|mande|anote)\b"
        ),
        r"^(?:sempre|nunca|de agora em diante|a partir de agora|quero que)\b",
    ),
    "ru": _any(
        r"^(?:а |теперь |и )?пожалуйста\b",
        (
            r"^(?:а |теперь |и )?(?:напиши|переведи|объясни|расскажи|скажи|покажи|найди|посчитай"
            r"|сделай|отвечай|ответь"
            r"|обращайся|общайся|пиши|говори|давай|присылай|избегай"
            r"|используй|запомни|напомни|не забудь|не забывай|называй|зови|отправь|пришли"
            r"|запиши)(?:те)?\b"
        ),
        r"^(?:всегда|никогда|отныне|впредь|с этого момента|хочу, чтобы)\b",
    ),
}

REPLIES = _any(
    r"\byour (?:\w+ )?(?:answers|replies|responses)\b",
    r"\b(?:deine|ihre) (?:\w+ )?antworten\b",
    r"\b(?:tus|sus) respuestas\b",
    r"\b(?:tes|vos) réponses\b",
    r"\b(?:le tue|le sue) risposte\b",
    r"\b(?:tuas|suas) respostas\b",
    r"\b(?:твои|ваши|свои) ответы\b",
    r"(?:你|您)的回答|回答は",
)
"""What a request is about that holds for all answers, not for one."""

STANDING: dict[str, re.Pattern[str]] = {
    "en": _any(
        (
            r"\b(?:always|never|from now on|in (?:the )?future|going forward|whenever|every "
            r"time|remember|don'?t forget|keep in mind"
            r"|note that)\b"
        ),
        (
            r"\bcall me "
            r"(?!(?:back|at|on|in|when|if|later|tomorrow|today|tonight|a|an|the|asap|now"
            r"|please)\b)\w"
        ),
        (
            r"^(?:please )?(?:do not|don'?t) (?:ever "
            r")?(?:call|use|answer|send|mention|ask|include|write|suggest|recommend|add|reply"
            r"|respond|show|say)\b"
        ),
        (
            r"^(?:please )?(?:answer|respond|reply|write|speak|talk)(?: to me)? (?:only "
            r")?(?:in|with) (?:only )?(?:\w+ )?"
            r"(?:english|german|french|spanish|italian|chinese|japanese|short|bullet|plain|metric"
            r"|simple|british|american)\b"
        ),
        r"\b(?:refer to|address) me\b|\b(?:by default|starting now|from here on|as of now"
        r"|in all replies)\b",
        r"\bremind me\b",
    ),
    "de": _any(
        (
            r"\b(?:immer|nie|niemals|ab jetzt|ab sofort|künftig|in zukunft|jedes "
            r"mal|stets|merke? dir|vergiss nicht|denke? daran"
            r"|denk dran)\b"
        ),
        r"\b(?:nenne?|duze?|sieze?) mich\b|\b(?:fortan|ab heute|von nun an|grundsätzlich"
        r"|generell)\b",
        (
            r"\b(?:antworte?|schreibe?|antworten sie) (?:mir )?(?:bitte )?(?:nur )?(?:auf|in) "
            r"(?:deutsch|englisch|französisch"
            r"|stichpunkten|kurzen)\b"
        ),
        r"\berinnere? mich\b",
    ),
    "es": _any(
        (
            r"\b(?:siempre|nunca|jam[aá]s|a partir de ahora|de ahora en adelante|en (?:el )?futuro"
            r"|cada vez|recuerda"
            r"|recu[eé]rdame|no olvides|ten en cuenta|ll[aá]mame|resp[oó]ndeme|cont[eé]stame"
            r"|tr[aá]tame|tut[eé]ame|desde ahora|en adelante|por defecto)\b"
        ),
        r"\bno (?:me )?(?:uses|escribas|env[ií]es|llames|preguntes|menciones|respondas)\b",
    ),
    "fr": _any(
        (
            r"\b(?:toujours|jamais|d[eé]sormais|dor[eé]navant|[aà] partir de maintenant"
            r"|[aà] l'avenir|[aà] chaque fois"
            r"|rappelle(?:z)?-(?:moi|toi|vous)|n'oublie(?:z)?|appelle(?:z)?-moi|r[eé]ponds-moi"
            r"|r[eé]pondez-moi|tutoie[sz]?-moi|tutoyez-moi|vouvoie[sz]?-moi|vouvoyez-moi"
            r"|d[eè]s maintenant|d[eè]s [aà] pr[eé]sent|par d[eé]faut)\b"
        ),
    ),
    "it": _any(
        (
            r"\b(?:sempre|mai|d'ora in poi|da ora in poi|in futuro|ogni volta|ricorda(?:ti)?"
            r"|ricordami"
            r"|non dimenticare|tieni presente|chiamami|rispondimi|da oggi in poi|d'ora innanzi"
            r"|dammi del (?:tu|lei)|in avanti)\b"
        ),
    ),
    "pt": _any(
        (
            r"\b(?:sempre|nunca|jamais|de agora em diante|a partir de agora|no futuro|toda vez"
            r"|lembre(?:-se|-me)?"
            r"|n[aã]o (?:se )?esque[cç]a|tenha em mente|me chame|me responda|daqui em diante"
            r"|daqui (?:pra|para a) frente|a partir de hoje|me trate)\b"
        ),
    ),
    "ru": _any(
        (
            r"\b(?:всегда|никогда|отныне|впредь|в будущем|каждый раз|с этого момента|запомни(?:те)?"
            r"|не забудь"
            r"|не забывай|напоминай|напомни|называй(?:те)? меня|зови(?:те)? меня|теперь"
            r"|на «?(?:ты|вы)»?"
            r"|с этих пор|по умолчанию|только (?:на|по))(?![^\W_])"
        ),
    ),
    "zh": _any(
        r"总是|从今天起|往后|永远|始终|每次|以后|今后|从现在起|记住|记得|别忘|一直|叫我|提醒我"
    ),
    "ja": _any(r"覚えて|忘れない|今後|今から|これから|常に|いつも|必ず|毎回|と呼んで|リマインド"),
}
"""Instructions that stay valid after the answer: worth remembering, unlike other commands."""

CJK_OPENER: dict[str, re.Pattern[str]] = {
    "zh": re.compile(
        r"^(?:(?:你好|您好|大家好|早上好|下午好|晚上好|嗨)(?:呀|啊)?|(?:早安|晚安|谢谢你的\w{0,6}|谢谢(?:你|您|大家)?|多谢|好的|好吧|好啊"
        r"|好|行|嗯+|哦+|噢|啊|哇|哈+|嘿+|是的|是啊|是|对的|对啊"
        r"|对|没错"
        r"|不是|不|不客气|没关系|没问题|没事|明白了?|知道了|收到|再见|拜拜|太好了|太棒了|真的|不错|当然|抱歉|对不起|不好意思|辛苦了|加油|恭喜你?"
        r"|原来如此)(?=[，,、。！!～~\s…]|$))[，,、。！!～~\s…]*"
    ),
    "ja": re.compile(
        r"^(?:(?:こんにちは|こんばんは|おはよう(?:ございます)?|はじめまして|初めまして)|(?:どうも)?ありがとう(?:ございます|ございました)?|(?:はい"
        r"|いいえ|いや|うん|ええ|そうですね|そうです(?:か)?|そうだね"
        r"|なるほど(?:ですね)?|了解(?:です|しました)?|わかりました|分かりました|承知しました|すごい(?:ですね)?|いいですね|いいね|よろしく(?:お願いします"
        r"|お願いいたします)?|お疲れ様(?:です|でした)?|すみません"
        r"|ごめん(?:なさい)?|じゃあ|またね?|また明日|さようなら|おやすみ(?:なさい)?|もちろん(?:です)?|大丈夫(?:です)?|えっと|あの|まあ|へえ|わあ|笑"
        r"|w+|おめでとう(?:ございます)?)(?=[、。，！!～~\s…ー]"
        r"|$))[、。，！!～~\s…ー]*"
    ),
}

CJK_FILLER: dict[str, re.Pattern[str]] = {
    "zh": _any(
        r"^(?:祝你|祝您|保重|一路平安|生日快乐|新年快乐|希望你|希望您|明天见|回头见|下次见|再见|辛苦|加油|哈哈|那就好)",
        r"^我(?:也)?(?:很好|知道了?|明白了?|同意|觉得也是|也是|在)$",
    ),
    "ja": _any(
        (
            r"^(?:また(?:明日|今度|後で|ね)|お大事に|頑張って|お元気で|楽しみにして|それは(?:よかった|良かった|すごい|いい)|よかった|良かった|私も(?:そう"
            r"|同じ)|そう思い|何か(?:あれば|ありましたら))"
        ),
        r"^(?:私は|僕は)?元気です$",
    ),
}
