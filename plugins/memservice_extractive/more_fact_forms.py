"""Patterns of sentences that state a fact, in Spanish, French, Italian, Portuguese and Russian,
written like those of `fact_forms`."""

from __future__ import annotations

_END = r"\s*+[.!…]*+$"
_VALUE = r"(?P<value>(?:[^,.;!?()\d]|\.(?=\S)){1,100}?)"
_AGE = r"(?P<value>\d{1,3})"
_LONG_VALUE = r"(?P<value>[^,.;!?()]{1,80}?)"

_ES_KIN = (
    r"(?:hermana|hermano|madre|mamá|padre|papá|mujer|esposa|marido|esposo|pareja|novia|novio|hija"
    r"|hijo|abuela|abuelo|tía|tío|prima|primo|jefa|jefe|amiga|amigo|perra|perro|gata|gato)"
)
_FR_KIN = (
    r"(?:sœur|frère|mère|maman|père|papa|femme|épouse|mari|époux|compagne|compagnon|copine|copain"
    r"|fille|fils|grand-mère|grand-père|tante|oncle|cousine|cousin|chef|amie|ami|chienne|chien"
    r"|chatte|chat)"
)
_IT_KIN = (
    r"(?:sorella|fratello|madre|mamma|padre|papà|moglie|marito|compagna|compagno|fidanzata"
    r"|fidanzato|figlia|figlio|nonna|nonno|zia|zio|cugina|cugino|capo|amica|amico|cane|gatta|gatto)"
)
_PT_KIN = (
    r"(?:irmã|irmão|mãe|pai|mulher|esposa|marido|esposo|namorada|namorado|filha|filho|avó|avô|tia"
    r"|tio|prima|primo|chefe|amiga|amigo|cachorra|cachorro|gata|gato)"
)
_RU_KIN = (
    r"(?:сестр[аыу]|брата?|мам[ау]|мать|отца?|папа|жен[ауы]|муж|мужа|девушка|парень|дочь|сына?"
    r"|бабушк[ау]|дедушк[ау]|тётя|дядя|начальник|подруг[ау]|друга?|собак[ау]|кошк[ау]|кота?)"
)

MORE_SLOT_FORMS: dict[str, tuple[tuple[str, str], ...]] = {
    "es": (
        (
            "residence",
            (rf"^(?:(?i:yo|<WHO>) )?(?:[Aa]hora )?(?i:vivo|vive) (?:ahora )?en {_VALUE}{_END}"),
        ),
        (
            "residence",
            (
                r"^(?:(?:[Ll]a semana pasada|[Ee]l mes pasado|[Aa]hora|[Aa]yer),? )?"
                r"(?i:me mudé|nos mudamos) "
                rf"a {_VALUE}(?: (?:la semana pasada|el mes pasado|ayer))?{_END}"
            ),
        ),
        ("age", rf"^(?i:(?:yo )?tengo|<WHO> tiene) {_AGE} años{_END}"),
        ("name", rf"^(?i:me llamo|mi nombre es) {_VALUE}{_END}"),
        (
            "employer",
            (
                rf"^(?:[Aa]hora )?(?i:trabajo|<WHO> trabaja) (?:como [\w ]{{2,40}} )?(?:en|para) "
                rf"{_VALUE}{_END}"
            ),
        ),
        (
            "favourite",
            (rf"^(?i:mi) (?P<key>\w{{2,30}}) (?:favorit[oa]|preferid[oa]) es {_LONG_VALUE}{_END}"),
        ),
    ),
    "fr": (
        (
            "residence",
            (rf"^(?i:j['’]habite|je vis|<WHO> habite) (?:maintenant )?(?:à|au|en) {_VALUE}{_END}"),
        ),
        (
            "residence",
            (
                r"^(?i:j['’]ai|nous avons|on a) (?:récemment )?déménagé (?:à|au|en) "
                rf"{_VALUE}"
                rf"(?: (?:le week-end dernier|la semaine dernière|le mois dernier|hier))?{_END}"
            ),
        ),
        ("age", rf"^(?i:j['’]ai|<WHO> a) {_AGE} ans{_END}"),
        ("name", rf"^(?i:je m['’]appelle|mon nom est) {_VALUE}{_END}"),
        (
            "employer",
            (
                rf"^(?i:je travaille|<WHO> travaille) (?:maintenant )?(?:comme [\w ]{{2,40}} "
                rf")?(?:chez|à|pour) {_VALUE}{_END}"
            ),
        ),
        (
            "favourite",
            (
                rf"^(?i:mon|ma) (?P<key>\w{{2,30}}) préférée?,? (?:est|c['’]est) "
                rf"{_LONG_VALUE}{_END}"
            ),
        ),
    ),
    "it": (
        (
            "residence",
            (
                rf"^(?i:(?:io )?(?:vivo|abito)|<WHO> (?:vive|abita)) (?:ora |adesso )?(?:a|in) "
                rf"{_VALUE}{_END}"
            ),
        ),
        (
            "residence",
            (rf"^(?i:mi sono|ci siamo) (?:appena )?trasferit[aoie] (?:a|in) {_VALUE}{_END}"),
        ),
        ("age", rf"^(?i:(?:io )?ho|<WHO> ha) {_AGE} anni{_END}"),
        ("name", rf"^(?i:mi chiamo|il mio nome è) {_VALUE}{_END}"),
        (
            "employer",
            (
                rf"^(?:[Oo]ra )?(?i:lavoro|<WHO> lavora) (?:come [\w ]{{2,40}} )?(?:da|per|alla"
                rf"|presso) {_VALUE}{_END}"
            ),
        ),
        (
            "favourite",
            (rf"^(?i:il mio|la mia) (?P<key>\w{{2,30}}) preferit[oa] è {_LONG_VALUE}{_END}"),
        ),
    ),
    "pt": (
        (
            "residence",
            (
                rf"^(?:[Aa]gora )?(?i:(?:eu )?(?:moro|vivo)|<WHO> mora) (?:agora )?(?:em|no|na) "
                rf"{_VALUE}{_END}"
            ),
        ),
        (
            "residence",
            (
                r"^(?i:(?:eu )?me mudei|(?:nós )?nos mudamos) para (?:o |a )?"
                rf"{_VALUE}(?: (?:na semana passada|no mês passado|ontem))?{_END}"
            ),
        ),
        ("age", rf"^(?i:(?:eu )?tenho|<WHO> tem) {_AGE} anos{_END}"),
        ("name", rf"^(?i:(?:eu )?me chamo|meu nome é) {_VALUE}{_END}"),
        (
            "employer",
            (
                rf"^(?:[Aa]gora )?(?i:(?:eu )?trabalho|<WHO> trabalha) (?:como [\w ]{{2,40}} "
                rf")?(?:na|no|para|em|numa|num) {_VALUE}{_END}"
            ),
        ),
        (
            "favourite",
            (
                rf"^(?i:meu|minha) (?P<key>\w{{2,30}}) (?:favorit[oa]|preferid[oa]) é "
                rf"{_LONG_VALUE}{_END}"
            ),
        ),
    ),
    "ru": (
        (
            "residence",
            (rf"^(?i:я (?:сейчас |теперь )?живу|<WHO> живёт) (?:сейчас )?в {_VALUE}{_END}"),
        ),
        (
            "residence",
            (
                r"^(?:(?i:на прошлой неделе|в прошлом месяце|недавно|вчера) )?(?i:я|мы) "
                rf"перееха(?:л|ла|ли) в {_VALUE}{_END}"
            ),
        ),
        ("age", rf"^(?i:мне|<WHO>) (?:сейчас )?{_AGE} (?:лет|года?){_END}"),
        ("name", rf"^(?i:меня зовут|моё имя) {_VALUE}{_END}"),
        ("employer", rf"^(?i:я (?:сейчас |теперь )?работаю|<WHO> работает) в {_VALUE}{_END}"),
        (
            "favourite",
            (rf"^(?i:мо[йяё]) любим(?:ый|ая|ое) (?P<key>\w{{2,30}}) ?[—–-]? {_LONG_VALUE}{_END}"),
        ),
    ),
}

MORE_CARD_FORMS: dict[str, tuple[tuple[str, str], ...]] = {
    "es": (
        ("RELATIONSHIP", rf"\b[Mm]i {_ES_KIN}(?: se llama|,)? [A-ZÁÉÍÓÚÑ][\w-]+"),
        ("RELATIONSHIP", r"^(?i:estoy|soy) (?:casad|solter|divorciad|viud|prometid)[oa]\b"),
        (
            "RELATIONSHIP",
            (rf"^(?i:tengo|tenemos) (?:una?|dos|tres|cuatro|\d) (?:{_ES_KIN}|hij[oa])(?:e?s)?\b"),
        ),
        (
            "ATTRIBUTE",
            (
                r"^(?i:soy) (?:alérgic[oa]|vegetarian[oa]|vegan[oa]|diabétic[oa]|zurd[oa]"
                r"|celíac[oa])\b"
            ),
        ),
        ("ATTRIBUTE", r"^(?i:no) (?:como|bebo|fumo)\b"),
        ("ATTRIBUTE", r"^(?i:hablo|prefiero) \w"),
        (
            "IDENTITY",
            (
                r"^(?i:soy) (?:una? )?[a-zñáéíóú]{4,30}(?:or|ora|ero|era|ista|ente|ante|ado|ada"
                r"|ico|ica)(?: de [\w ]{3,40})?[.!]*$"
            ),
        ),
    ),
    "fr": (
        ("RELATIONSHIP", rf"\b(?:[Mm]on|[Mm]a) {_FR_KIN}(?: s['’]appelle|,)? [A-ZÀ-Þ][\w-]+"),
        ("RELATIONSHIP", r"^(?i:je suis) (?:marié|célibataire|divorcé|veu[fv]|fiancé)"),
        (
            "RELATIONSHIP",
            (rf"^(?i:j['’]ai|nous avons) (?:une?|deux|trois|quatre|\d) (?:{_FR_KIN}|enfant)s?\b"),
        ),
        (
            "ATTRIBUTE",
            (
                r"^(?i:je suis) (?:allergique|végétarien|végétalien|végane|diabétique|gauch"
                r"|enceinte)"
            ),
        ),
        ("ATTRIBUTE", r"^(?i:je ne) (?:mange|bois|fume) (?:pas|plus|jamais)\b"),
        ("ATTRIBUTE", r"^(?i:je parle|je préfère) \w"),
        (
            "IDENTITY",
            (
                r"^(?i:je suis) (?:une? )?[a-zà-ÿ]{4,30}(?:eur|euse|ien|ienne|ier|ière|iste|ant"
                r"|ante|cin|ecte)[.!]*$"
            ),
        ),
    ),
    "it": (
        ("RELATIONSHIP", rf"\b[Mm]i[ao] {_IT_KIN}(?: si chiama|,)? [A-ZÀ-Þ][\w-]+"),
        ("RELATIONSHIP", r"^(?i:sono) (?:sposat|fidanzat|divorziat|vedov|single|celibe|nubile)"),
        ("ATTRIBUTE", r"^(?i:sono) (?:allergic|vegetarian|vegan|diabetic|mancin|celiac)"),
        ("ATTRIBUTE", r"^(?i:non) (?:mangio|bevo|fumo)\b"),
        ("ATTRIBUTE", r"^(?i:parlo|preferisco) \w"),
    ),
    "pt": (
        ("RELATIONSHIP", rf"\b(?:[Mm]eu|[Mm]inha) {_PT_KIN}(?: se chama|,)? [A-ZÀ-Þ][\w-]+"),
        ("RELATIONSHIP", r"^(?i:(?:eu )?sou) (?:casad|solteir|divorciad|viúv|noiv)[oa]\b"),
        (
            "RELATIONSHIP",
            (
                rf"^(?i:(?:eu )?tenho|temos) (?:uma?|dois|duas|três|quatro|\d) (?:{_PT_KIN}"
                rf"|filh[oa])s?\b"
            ),
        ),
        (
            "ATTRIBUTE",
            (
                r"^(?i:(?:eu )?sou) (?:alérgic[oa]|vegetarian[oa]|vegan[oa]|diabétic[oa]"
                r"|canhot[oa]|celíac[oa])\b"
            ),
        ),
        ("ATTRIBUTE", r"^(?i:(?:eu )?não) (?:como|bebo|fumo)\b"),
        ("ATTRIBUTE", r"^(?i:(?:eu )?(?:falo|prefiro)) \w"),
    ),
    "ru": (
        ("RELATIONSHIP", rf"\b(?i:мо[йяеёю]|моего|моей|мою) {_RU_KIN}(?: зовут|,)? [А-ЯЁ][\w-]+"),
        ("RELATIONSHIP", r"^(?i:я) (?:женат|замужем|холост|разведён|разведена)\b"),
        (
            "RELATIONSHIP",
            (
                r"^(?i:у меня|у нас) (?:есть )?(?:двое|трое|один|одна|два|две|три) (?:детей"
                r"|ребёнок|сына?|дочер|дочь|брата?|сестр)"
            ),
        ),
        (
            "ATTRIBUTE",
            (
                r"^(?i:у меня) аллергия\b|^(?i:я) (?:аллергик|вегетарианец|вегетарианка|веган"
                r"|диабетик|левша)\b"
            ),
        ),
        ("ATTRIBUTE", r"^(?i:я) не (?:ем|пью|курю)\b"),
        ("ATTRIBUTE", r"^(?i:я) (?:говорю по-|предпочитаю )\w"),
    ),
}
