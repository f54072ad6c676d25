"""Patterns of sentences that state a fact, by language.

`<WHO>` stands for the observed peer's names. A slot form must match the whole sentence, so that it
does not match with a condition, a second value or a time in the past. `value` is the value of the
slot, `key` its subject.
"""

from __future__ import annotations

_END = r"\s*+[.!…]*+$"
_CJK_END = r"\s*+[.!…。！]*+$"
_EN_TAIL = (
    r"(?: (?:now|again|currently|these days|recently|today|at the moment|with "
    r"(?:my|our|a|an|the|two|three) [\w ]{2,40}|because [^,;]++"
    r"|this (?:week|weekend|month|year|spring|summer|autumn|fall|winter)|last "
    r"(?:week|weekend|month|year|spring|summer|autumn|fall|winter|\w{3,6}day)|yesterday))?"
) + _END
_EN_VALUE = r"(?P<value>(?:[^,.;!?()\d]|\.(?=\S)|(?<=\bSt)\.(?= )){1,100}?)"
_EN_PLACE = (
    r"(?P<value>(?:[^,.;!?()\d]|\.(?=\S)|(?<=\bSt)\.(?= )){1,100}?(?:, (?:the )?[A-Z]\w+(?: "
    r"[A-Z]\w+)?)?)"
)
_EN_NOW = r"(?:(?:now|currently|still|just|recently) )?"
_EN_AM = rf"(?i:i am|i'm|(?:<WHO>) is) {_EN_NOW}"
_EN_KIN = (
    r"(?:sister|brother|mother|mom|mum|father|dad|wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|son|daughter|kid|child|baby"
    r"|grandmother|grandma"
    r"|grandfather|grandpa|aunt|uncle|cousin|niece|nephew|boss|manager|colleague|coworker|best "
    r"friend|friend|roommate|flatmate"
    r"|neighbou?r|dog|cat|twin"
    r"|mother-in-law|father-in-law|sister-in-law|brother-in-law|stepmother|stepfather|teacher|therapist|doctor)"
)
_EN_MY = r"(?i:my|(?:<WHO>)'s)"

_DE_NOW = (
    r"(?:(?:jetzt|nun|inzwischen|mittlerweile|derzeit|aktuell|seit "
    r"kurzem|gerade|kürzlich|wieder) )?"
)
_DE_TAIL = (
    r"(?: (?:jetzt|wieder|zurzeit|zusammen|mit (?:mein|unser|ein|zwei|drei)[\w ]{2,40}))?" + _END
)
_DE_VALUE = r"(?P<value>(?:[^,.;!?()\d]|\.(?=\S)|(?<=\bSt)\.(?= )){1,100}?)"
_DE_KIN = (
    r"(?:Schwester|Bruder|Mutter|Mama|Vater|Papa|Frau|Ehefrau|Mann|Ehemann|Partner(?:in)?|Freund(?:in)?|Sohn|Tochter|Kind|Oma|Opa"
    r"|Großmutter|Großvater|Tante"
    r"|Onkel|Cousine?|Nichte|Neffe|Chef(?:in)?|Kolleg(?:e|in)|Mitbewohner(?:in)?|Nachbar(?:in)?|Hund|Katze|Kater|Schwiegermutter"
    r"|Schwiegervater)"
)

_ZH_VALUE = r"(?P<value>[^，,。！!？?；;、但以前过]{1,20}?)"
_ZH_KIN = (
    "(?:妹妹|姐姐|弟弟|哥哥|妈妈|母亲|爸爸|父亲|妻子|老婆|太太|丈夫|老公|女朋友|男朋友"
    "|儿子|女儿|孩子|奶奶|爷爷|外婆|外公|阿姨|叔叔|老板|同事|朋友|室友|邻居|狗|猫|老师)"
)
_JA_ME = r"(?:(?:私|僕|俺|わたし|<WHO>)は、?)?(?:今は?、?|現在は?、?)?"
_JA_VALUE = r"(?P<value>[^、。！？!?はがもをとに]{1,20}?)"
_JA_KIN = (
    "(?:妹|姉|弟|兄|母|父|妻|夫|主人|彼女|彼氏|息子|娘|子供"
    "|祖母|祖父|叔母|叔父|上司|同僚|友達|友人|犬|猫)"
)

SLOT_FORMS: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (
        (
            "residence",
            (
                rf"^(?:(?i:i|<WHO>) {_EN_NOW}(?:live|lives|reside|resides)|{_EN_AM}living) "
                rf"(?:now )?in {_EN_PLACE}{_EN_TAIL}"
            ),
        ),
        (
            "residence",
            (
                rf"^(?i:i|i've|i have|(?:<WHO>)(?: has)?) {_EN_NOW}(?:moved|relocated) to "
                rf"{_EN_PLACE}{_EN_TAIL}"
            ),
        ),
        ("age", rf"^{_EN_AM}(?P<value>\d{{1,3}}) years old(?: now)?{_END}"),
        (
            "age",
            (
                rf"^(?i:i|i've|i have|(?:<WHO>)(?: has)?) {_EN_NOW}turned "
                rf"(?P<value>\d{{1,3}})(?: today| yesterday| last week"
                rf"| this week)?{_END}"
            ),
        ),
        ("name", rf"^{_EN_MY} (?:full |real )?name is (?P<value>[^,.;!?()\d]{{1,60}}?){_END}"),
        (
            "employer",
            rf"^(?:(?i:i|<WHO>) {_EN_NOW}works?|{_EN_AM}working) (?:at|for) {_EN_VALUE}{_EN_TAIL}",
        ),
        (
            "employer",
            (
                rf"^(?:(?i:i|<WHO>) {_EN_NOW}works?|{_EN_AM}working) as an? [\w ]{{2,40}} "
                rf"(?:at|for) {_EN_VALUE}{_EN_TAIL}"
            ),
        ),
        (
            "favourite",
            (
                rf"^{_EN_MY} (?:new |current )?favou?rite (?P<key>[\w -]{{2,40}}?) is (?:now "
                rf")?(?P<value>[^,.;!?()]{{1,80}}?){_EN_TAIL}"
            ),
        ),
        (
            "attribute",
            (
                rf"^{_EN_MY} (?:new |current )?(?P<key>e-?mail(?: address)?|phone "
                r"number|mobile number|birthday|time ?zone|job title"
                r"|address|pronouns|mother tongue"
                r"|native language|nickname) (?:is|are) (?:now "
                rf")?(?P<value>\S[^;!?]{{0,100}}?){_END}"
            ),
        ),
    ),
    "de": (
        (
            "residence",
            rf"^(?i:ich|<WHO>) (?:wohne|lebe|wohnt|lebt) {_DE_NOW}in {_DE_VALUE}{_DE_TAIL}",
        ),
        ("residence", rf"^(?:wohne|lebe|Wohne|Lebe) ich {_DE_NOW}in {_DE_VALUE}{_DE_TAIL}"),
        (
            "residence",
            (
                rf"^(?i:ich bin|(?:<WHO>) ist) {_DE_NOW}(?:letzte\w* \w+ )?nach {_DE_VALUE} "
                rf"(?:gezogen|umgezogen){_END}"
            ),
        ),
        ("age", rf"^(?i:ich bin|(?:<WHO>) ist) {_DE_NOW}(?P<value>\d{{1,3}}) Jahre alt{_END}"),
        (
            "age",
            (
                rf"^(?i:ich bin|(?:<WHO>) ist) {_DE_NOW}(?:gestern |heute "
                rf")?(?P<value>\d{{1,3}}) geworden{_END}"
            ),
        ),
        (
            "name",
            (
                r"^(?:(?i:mein name ist|ich heiße|ich heisse|(?:<WHO>) heißt)) "
                rf"(?P<value>[^,.;!?()\d]{{1,60}}?){_END}"
            ),
        ),
        (
            "employer",
            (
                rf"^(?i:ich|<WHO>) arbeitet? {_DE_NOW}(?:als [\w ]{{2,40}} )?(?:bei|für) "
                rf"(?:der |dem )?{_DE_VALUE}{_DE_TAIL}"
            ),
        ),
        (
            "favourite",
            (
                rf"^(?i:meine?|(?:<WHO>)s) Lieblings-?(?P<key>\w{{2,40}}) (?:ist|sind) "
                rf"(?:jetzt )?(?P<value>[^,.;!?()]{{1,80}}?){_DE_TAIL}"
            ),
        ),
        (
            "attribute",
            (
                r"^(?i:meine?) (?:neue[r]? "
                r")?(?P<key>E-Mail(?:-?Adresse)?|Telefonnummer|Handynummer|Geburtstag|Zeitzone|Adresse"
                r"|Muttersprache|Spitzname)"
                rf" (?:ist|lautet) (?:jetzt )?(?P<value>\S[^;!?]{{0,100}}?){_END}"
            ),
        ),
    ),
    "zh": (
        (
            "residence",
            rf"^(?:我|<WHO>)(?:现在|目前|如今)?(?:住在|居住在){_ZH_VALUE}(?:了)?{_CJK_END}",
        ),
        (
            "residence",
            rf"^(?:昨天|上周末?|上个?月)?(?:我|<WHO>)(?:现在|刚|刚刚|最近|已经|昨天|上个月|上周末?)?(?:搬到|搬去|搬家到)了?{_ZH_VALUE}(?:了)?{_CJK_END}",
        ),
        (
            "age",
            rf"^(?:我|<WHO>)(?:今年|现在|已经)?(?P<value>\d{{1,3}}|[一二三四五六七八九十百]{{1,5}})岁了?{_CJK_END}",
        ),
        (
            "name",
            rf"^(?:我叫|我的名字是|我的名字叫|我名叫)(?P<value>[^，,。！!？?；;、\s]{{1,10}}?){_CJK_END}",
        ),
        ("employer", rf"^(?:我|<WHO>)(?:现在|目前)?在{_ZH_VALUE}(?:工作|上班)了?{_CJK_END}"),
        (
            "favourite",
            rf"^我(?:现在)?最(?:喜欢|爱)的(?P<key>[^，。是]{{1,10}})是{_ZH_VALUE}{_CJK_END}",
        ),
    ),
    "ja": (
        (
            "residence",
            rf"^{_JA_ME}{_JA_VALUE}に(?:住んでいます|住んでる|住んでいる|暮らしています|在住です){_CJK_END}",
        ),
        (
            "residence",
            rf"^{_JA_ME}(?:先月、?|先週、?|最近、?)?{_JA_VALUE}[にへ]引っ越し(?:ました|た){_CJK_END}",
        ),
        ("age", rf"^{_JA_ME}(?P<value>\d{{1,3}})歳(?:です|になりました|になった){_CJK_END}"),
        (
            "name",
            rf"^(?:私の|僕の)?名前は(?P<value>[^、。！？\s]{{1,15}}?)(?:です|と(?:言|い)います|と申します){_CJK_END}",
        ),
        (
            "employer",
            rf"^{_JA_ME}{_JA_VALUE}(?:で働いています|で働いている|に勤めています|に勤めている|勤務です){_CJK_END}",
        ),
        (
            "favourite",
            rf"^(?:私の|僕の)?(?:一番|いちばん)好きな(?P<key>[^、。は]{{1,12}})は(?P<value>[^、。！？]{{1,20}}?)です{_CJK_END}",
        ),
    ),
}

CARD_FORMS: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (
        (
            "RELATIONSHIP",
            (
                rf"\b{_EN_MY} (?:\w+ )?{_EN_KIN}(?:'s name is|,? is (?:called|named)|,| "
                r"called| named| is)? [A-Z][\w'-]+"
            ),
        ),
        (
            "RELATIONSHIP",
            (
                rf"^{_EN_AM}(?:married|engaged|divorced|widowed|single)\b(?:(?! to (?:the|my "
                r"job)\b).)*$"
            ),
        ),
        (
            "RELATIONSHIP",
            (
                r"^(?i:i have|i've got|we have|(?:<WHO>) has) "
                rf"(?:an?|one|two|three|four|five|six|\d) (?:\w+ )?{_EN_KIN}(?:s|ren)?\b"
                r"|^(?i:i|we) have (?:two|three|four|\d) (?:kids|children)\b"
            ),
        ),
        (
            "ATTRIBUTE",
            (
                rf"^{_EN_AM}(?:\w+ )?(?:vegetarian|vegan|pescatarian|allergic "
                r"to|lactose|gluten|diabetic|pregnant|left-handed"
                r"|colou?r-?blind|deaf|blind|dyslexic|retired)\b"
            ),
        ),
        (
            "ATTRIBUTE",
            (
                r"^(?i:i have|i've got|i suffer from|(?:<WHO>) (?:has|suffers from)) (?:an? "
                r")?(?:\w+ )?(?:asthma|diabetes|allerg(?:y"
                r"|ies)|adhd|ADHD|epilepsy|migraines?|celiac|coeliac)\b"
            ),
        ),
        (
            "ATTRIBUTE",
            (
                r"^(?i:i do not|i don't|i never|i can't|i cannot|(?:<WHO>) (?:doesn't|does "
                r"not)) (?:eat|drink|smoke|drive)\b"
            ),
        ),
        ("ATTRIBUTE", r"^(?i:i|<WHO>) (?:also )?(?:speaks?|prefers?) \w"),
        ("ATTRIBUTE", r"^(?i:i was|(?:<WHO>) was) born (?:in|on)\b"),
        (
            "IDENTITY",
            (
                rf"^{_EN_AM}(?:an?) "
                r"(?!bit\b|little\b|lot\b|few\b|fan\b|big\b|huge\b|mess\b|couple\b|\w+ (?:fan"
                rf"|bit)\b)[\w' -]{{3,70}}{_END}"
            ),
        ),
    ),
    "de": (
        (
            "RELATIONSHIP",
            rf"\b[Mm]eine?[mnrs]? (?:\w+ )?{_DE_KIN}(?: heißt| namens|,)? [A-ZÄÖÜ][\w-]+",
        ),
        (
            "RELATIONSHIP",
            (
                r"^(?i:ich bin|(?:<WHO>) ist) (?:\w+ "
                r")?(?:verheiratet|verlobt|geschieden|verwitwet|ledig|Single)\b"
            ),
        ),
        (
            "RELATIONSHIP",
            (
                r"^(?i:ich habe|wir haben|(?:<WHO>) hat) (?:eine[n]?|zwei|drei|vier|\d) "
                rf"(?:\w+ )?(?:{_DE_KIN}|Kinder|Söhne|Töchter"
                r"|Hunde|Katzen|Brüder|Schwestern|Geschwister)\b"
            ),
        ),
        ("ATTRIBUTE", r"^(?i:ich bin|(?:<WHO>) ist) .*\b(?:allergisch|Allergiker(?:in)?)\b"),
        (
            "ATTRIBUTE",
            (
                r"^(?i:ich bin|(?:<WHO>) ist) (?:\w+ "
                r")?(?:Vegetarier(?:in)?|Veganer(?:in)?|vegan|laktoseintolerant|Diabetiker(?:in)?"
                r"|schwanger|Linkshänder(?:in)?|Rentner(?:in)?)\b"
            ),
        ),
        ("ATTRIBUTE", r"^(?i:ich) (?:esse|trinke|rauche) (?:kein\w*|nicht|nie)\b"),
        ("ATTRIBUTE", r"^(?i:ich) (?:spreche|bevorzuge) \w"),
        ("ATTRIBUTE", r"^(?i:ich (?:wurde|bin)) .*\bgeboren\b"),
        (
            "IDENTITY",
            (
                r"^(?i:ich bin|(?:<WHO>) ist) (?:(?:eine?|von Beruf|gelernte[r]?) "
                r")?[A-ZÄÖÜ][\wäöüß-]{3,}(?: (?:bei|in|aus|an|am"
                r"|von) [\w .-]{2,50})?\s*[.!]*$"
            ),
        ),
    ),
    "zh": (
        ("RELATIONSHIP", rf"我的?{_ZH_KIN}(?:的名字)?(?:叫|是)\w"),
        (
            "RELATIONSHIP",
            rf"^我(?:已经)?(?:结婚|离婚|订婚|已婚|未婚|单身)|^我有[一两二三四五\d]个?(?:{_ZH_KIN})",
        ),
        (
            "ATTRIBUTE",
            r"^我对.{1,15}过敏|^我(?:一直)?吃素|^我是素食|^我不(?:吃|喝|抽)\w|^我会(?:说|讲)\w|^我(?:是)?.{0,12}出生|^我更喜欢\w|^我有(?:糖尿病|哮喘|高血压)",
        ),
        (
            "IDENTITY",
            r"^我是(?:一[名位个]|个)?[^，。！？]{1,14}(?:师|生|员|人|家|工|手|医|者)[。！.!]*$",
        ),
    ),
    "ja": (
        ("RELATIONSHIP", rf"{_JA_KIN}の名前は\w|{_JA_KIN}は\w{{1,12}}(?:という|といい|と言い)"),
        (
            "RELATIONSHIP",
            rf"^{_JA_ME}(?:結婚して|離婚して|独身)|^{_JA_ME}(?:子供|子ども|{_JA_KIN})が\w*(?:人|匹|います)",
        ),
        (
            "ATTRIBUTE",
            rf"アレルギーが?(?:です|あります|ある|を持って)|^{_JA_ME}(?:ベジタリアン|ヴィーガン|菜食)|(?:が食べられません|は食べません|が飲めません|は飲みません)|生まれです|で生まれました|語(?:が|を)話せ",
        ),
        (
            "IDENTITY",
            rf"^{_JA_ME}[^、。！？は]{{0,14}}(?:師|員|生|者|医|人|家|士|エンジニア|プログラマー|デザイナー)です[。！.!]*$",
        ),
    ),
}
