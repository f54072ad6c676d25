"""Lists of words that carry no information by themselves, for the languages with special handling.

Lower case, after NFKC and case folding (so `ß` is `ss`). A language without a list is treated like
English, which keeps too many sentences rather than too few.
"""

from __future__ import annotations

from memservice.domain.text.function_words import FUNCTION_WORDS, vocabulary

__all__ = ["FIRST_PERSON", "SECOND_PERSON", "STOP", "WEAK", "vocabulary"]

STOP = FUNCTION_WORDS

WEAK: dict[str, frozenset[str]] = {
    "en": vocabulary(
        "absolutely actually agree almost already alright always amazing anyway appreciate "
        "awesome bad beautiful best better bit care "
        "certainly check come comes coming congratulations cool course day definitely "
        "doing done enough exactly excellent excited "
        "exciting fair fantastic feel feels fine fun funny get gets getting give glad go "
        "goes going gone gonna good got great guess "
        "haha hear heard hello help helpful hey hi hope idea impressive incredible indeed "
        "inspiring interesting kidding kind kinda"
        " know "
        "later let lets like liked little ll look looking looks lol lot lots love loved "
        "lovely made make makes making maybe mean means "
        "moment morning much never nice night now nope okay ok perfect perhaps please "
        "pleasure point possible pretty probably put"
        " quite "
        "ready really right say says saying see seems sense soon sorry sound sounds still "
        "stuff super sure sweet take thank thanks"
        " thing "
        "things think thinking thought time today together tomorrow tonight totally true "
        "try understand wait wanna want wanted way "
        "weather welcome well went wonderful wow wrong yeah yep yes yesterday yet"
    ),
    "de": vocabulary(
        "ach ahnung aha alles bald besser bisschen bitte bestens cool danke dankeschön "
        "denke echt egal eigentlich einfach endlich fein "
        "finde findet freut froh ganz gar geht gehe gehen gemacht genau gern gerne gesagt "
        "gesehen gerade gestern glaube glauben gleich "
        "grossartig gut gute guten guter gutes hallo heute hi hmm hoffe hört interessant "
        "irgendwie jetzt klar klasse klingt komisch "
        "komme kommt leider liebe mache machen macht mag mal meine mega meinst mehr melde "
        "moin morgen möchte na natürlich nein nett "
        "okay ok perfekt prima richtig sache sage sagen schade schön schöne schönen "
        "schönes schon sehe sicher sieht spannend spass "
        "stimmt super tag tja toll tolle total tut übrigens verstanden verstehe vielen "
        "vielleicht wahnsinn wahrscheinlich warte weiss "
        "wetter wirklich wohl wow wunderbar zusammen"
    ),
    "fr": vocabulary(
        "bien bon bonne bonjour salut merci oui non super vraiment peut-être bravo accord "
        "aujourd hui demain hier temps"
    ),
    "es": vocabulary(
        "bien bueno buena hola gracias sí claro vale genial gusta quiero hoy mañana ayer "
        "verdad tiempo"
    ),
    "pt": vocabulary(
        "bem bom boa olá oi obrigado obrigada sim claro legal ótimo quero hoje amanhã ontem "
        "verdade tempo"
    ),
    "it": vocabulary(
        "bene buono buona ciao grazie sì certo bello ottimo voglio oggi domani ieri vero tempo"
    ),
}

FIRST_PERSON: dict[str, frozenset[str]] = {
    "en": vocabulary("i me my mine myself we us our ours ourselves im ive"),
    "de": vocabulary(
        "ich mich mir mein meine meinem meinen meiner meines wir uns unser unsere unserem "
        "unseren unserer"
    ),
    "fr": vocabulary("j je moi m me mon ma mes nous notre nos"),
    "es": vocabulary("yo me mi mis mí nos nosotros nuestra nuestro soy estoy tengo vivo trabajo"),
    "pt": vocabulary(
        "eu me meu meus minha minhas nós nos nosso nossa sou estou tenho moro trabalho"
    ),
    "it": vocabulary("io mi me mio mia miei mie noi ci nostro nostra sono ho abito lavoro"),
}

SECOND_PERSON: dict[str, frozenset[str]] = {
    "en": vocabulary("you your yours yourself u ur"),
    "de": vocabulary("du dich dir dein deine deinem deinen deiner euch euer eure"),
    "fr": vocabulary("tu toi ton ta tes vous votre vos"),
    "es": vocabulary("tú tu tus usted ustedes"),
    "pt": vocabulary("tu você vocês teu tua teus tuas"),
    "it": vocabulary("tu voi tuo tua tuoi tue vostro vostra"),
}

QUESTION_WORDS: dict[str, frozenset[str]] = {
    "en": vocabulary("what which who whose where when how why does did"),
    "de": vocabulary("wer wen wem wo wann wie warum welche welcher welches welchem welchen"),
    "fr": vocabulary("quel quelle quels quelles où combien comment pourquoi quand"),
    "es": vocabulary("qué cuál cuáles quién quiénes dónde cuándo cuánto cuántos cuántas cómo"),
    "pt": vocabulary("qual quais quem onde quando quanto quantos quantas"),
    "it": vocabulary("quale quali chi dove quando quanti quante perché"),
}
"""Words by which a question in one of these languages is told from one in another. A short one
has few other words of grammar, and several languages share those."""

EMPTY_CHINESE = vocabulary(
    "我们 我的 你们 他们 她们 这个 那个 这样 那样 这里 那里 一个 一下 一点 有点 非常 真的 "
    "但是 因为 所以 如果 虽然 而且 "
    "然后 今天 明天 昨天 现在 天气 不错 觉得 知道 认为 什么 怎么 喜欢 可以 应该 已经 还是 "
    "就是 不是 没有 开心 高兴 厉害 "
    "希望 时候 东西 事情 我 你 您 他 她 它 的 了 是 在 有 很 真 太 都 也 就 和 与 跟 这 那 "
    "个 吗 呢 吧 啊 呀 哦 嘛 哈 嗯 不 "
    "没 会 能 要 想 去 来 说 看 做 到 得 地 着 过 被 把 给 对 让 上 下 里 还 再 又 才 只 "
    "但 好 累 忙 最"
)

EMPTY_JAPANESE = vocabulary(
    "私たち わたし 私 僕 俺 あなた 彼女 彼 これ それ あれ この その あの ここ そこ そう "
    "こう とても すごく すごい ちょっと "
    "本当に 本当 今日 明日 昨日 今 天気 いいです 良い いい 好き 思います 思う 思った "
    "嬉しい 楽しみ 大丈夫 でしょう でした "
    "ですが ですね です だった ました ません ます ていた ている ています んでい ってい "
    "った って いた いる います ある "
    "あります ありました する します しました した して しい しく かった くて から まで "
    "より こと もの ため よう みたい "
    "けど でも しかし だから など たい なる なり なら たら ない なく れる られ という は "
    "が を に へ と で も の や か ね "
    "よ な だ た て さ い く し り る う"
)

SPEECH_VERBS: frozenset[str] = vocabulary(
    "said say says saying told tell tells asked ask asks wrote write writes replied "
    "answered quoted goes went like "
    "sagte sagt sagen meinte meint schrieb schreibt fragte fragt antwortete erzählte dit "
    "disait dijo dice detto diceva disse diz falou сказал сказала сказали говорит"
)
