"""Words that carry little information by themselves, by language.

Lower case, after NFKC and case folding (so `ß` is `ss`). They tell which language a text is in, and
which of its words say nothing about its subject.
"""

from __future__ import annotations

from memservice.domain.text.folding import fold
from memservice.domain.text.words import STOP_WORDS


def vocabulary(text: str) -> frozenset[str]:
    """The words of a list, separated by spaces."""
    return frozenset(text.split())


FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": vocabulary(
        "a about above after again all also am an and any are aren as at be because been "
        "before being below between both but by can "
        "could couldn d did didn do does doesn doing don down during each either else even "
        "ever every few for from further had hadn "
        "has hasn have haven having he her here hers herself him himself his how i if in "
        "into is isn it its itself just ll m may me "
        "might mine more most must my myself need no nor not of off on once one only onto "
        "or other our ours ourselves out over own re "
        "s same shall she should shouldn so some such t than that the their theirs them "
        "themselves then there these they this those "
        "through to too under until up upon us ve very was wasn we were weren what when "
        "where whether which while who whom whose why "
        "will with within without won would wouldn you your yours yourself yourselves"
    ),
    "de": vocabulary(
        "aber alle allem allen aller alles als also am an ander andere anderen auch auf "
        "aus bei beim bin bis bist da dabei dadurch "
        "dafür damit dann daran darauf darin darum das dass dein deine deinem deinen "
        "deiner dem den denen denn der deren des dessen "
        "dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine "
        "einem einen einer eines er es etwas euch "
        "euer eure für gegen gewesen hab habe haben hat hatte hatten hattest hier hin "
        "hinter ich ihm ihn ihnen ihr ihre ihrem ihren "
        "ihrer im in indem ins ist ja jede jedem jeden jeder jedes jene kann kannst kein "
        "keine keinem keinen keiner können könnte man "
        "manche mein meine meinem meinen meiner meines mich mir mit muss musste müssen "
        "nach nicht nichts noch nun nur ob oder ohne "
        "sehr seid sein seine seinem seinen seiner sich sie sind so solche soll sollte "
        "sondern sonst über um und uns unser unsere "
        "unserem unseren unserer unter viel vom von vor wann war waren warst warum was weg "
        "weil weiter welche wenn wer werde werden "
        "weshalb wie wieder will willst wir wird wirst wo wollen worden wurde wurden zu "
        "zum zur zwar zwischen"
    ),
    "fr": vocabulary(
        "ai as au aux avec c ce ces cet cette d dans de des du elle elles en est et eu il "
        "ils j je l la le les leur leurs lui m ma "
        "mais me mes moi mon n ne nos notre nous on ont ou où par pas pour qu que qui s sa "
        "se ses si son sont suis sur t ta te tes toi "
        "ton tu un une vos votre vous y était être avoir très plus aussi toujours jamais"
    ),
    "es": vocabulary(
        "a al algo con como de del el ella ellas ellos en entre era es esa ese eso esta "
        "este esto está están estoy fue ha han hay he "
        "la las le les lo los me mi mis muy más no nos nosotros nuestra nuestro o para "
        "pero por porque que se sea ser si sin sobre son "
        "soy su sus también te tiene tengo tu tus un una uno unos y ya yo dónde cuándo cuál cuáles "
        "quién quiénes qué cómo cuántos cuántas"
    ),
    "pt": vocabulary(
        "a à ao aos as às com como da das de dela dele deles do dos e é ela elas ele eles em "
        "entre era essa esse esta este está estou eu foi há isso já lhe mais mas me meu meus "
        "minha minhas muito na nas não nem no nos nós nossa nosso o onde os ou para pela pelo "
        "por porque qual quais quando quantos que quem se sem ser seu seus sobre sou sua suas "
        "também tem tenho um uma umas uns você vocês"
    ),
    "it": vocabulary(
        "a ad agli ai al alla alle anche c che chi ci come con cosa cui d da dai dal dalla dei "
        "del della delle di dove e è ed era gli ha hai ho i il in io l la le lei li lo loro lui "
        "ma me mi mia mie miei mio molto ne nei nel nella noi non nostra nostro o per perché più "
        "qual quale quali quando quanti quello questa questo qui s se sei si sono su sua sue suo "
        "suoi sul sulla ti tra tu tua tuo un una uno voi"
    ),
}
"""Languages in Latin letters."""

_BY_SCRIPT: dict[str, frozenset[str]] = {
    "ru": vocabulary(
        "и в во не что он на я с со как а то все она так его но да ты к у же вы за бы "
        "по только ее мне было вот от меня еще нет о из ему теперь когда даже ну ли "
        "если уже или ни быть был него до вас нибудь вам ведь там потом себя ничего ей "
        "может они тут где есть надо ней для мы тебя их чем была сам чтоб без будто "
        "раз тоже себе под будет ж тогда кто этот того потому этого какой каким какие "
        "какая какое каких каком ним здесь этом один почти мой моя мое мои моей тем "
        "чтобы нее были куда зачем всех можно при об над больше тот через эти нас про "
        "них какую много разве эту свою этой перед том такой им более всю между это "
        "почему сколько который которые чья чей твой твоя наш наша ваш ваша очень"
    ),
    "ar": vocabulary(
        "في من على الى عن مع هذا هذه ذلك تلك هو هي هم هن انا نحن انت ما ماذا هل متى "
        "اين كيف لماذا كم لم لن لا ان كان كانت يكون قد كل بعد قبل عند عنده عندي لدي "
        "لديه له لها لي لك الذي التي الذين ثم او و ف ب ل لمن بين حتى منذ تم اي ليس فقط "
        "عدد"
    ),
}
"""Russian has `е` for `ё`; Arabic without hamza."""

_OF_QUESTIONS: dict[str, frozenset[str]] = {
    "de": vocabulary(
        "fand fanden gab geben gibt gemacht hast heißt machen macht woher wofür "
        "wohin wem wen wessen welchem welchen welcher welches wieviel wurdest"
    ),
    "es": vocabulary(
        "cada cual cuando cuanta cuantas cuanto cuantos desde donde estaba estan "
        "fueron fui haber hace hacen hacer hasta hemos hizo hubo pueden puede puedo "
        "poder quien quienes solo tener tienen dieron"
    ),
    "fr": vocabulary(
        "avons avez cela cette chaque chez combien comment depuis dont entre faire "
        "fais fait faite faites font laquelle lequel m peut peux pouvoir pourquoi "
        "quand quel quelle quelles quels quoi sous êtes appelle"
    ),
    "it": vocabulary(
        "abbiamo avere avete che cosa dove essere fa fanno fare fatta fatto fin fu "
        "hanno ogni perche posso possono potere può quanta quante quanto riesce "
        "riescono solo sta stanno"
    ),
    "pt": vocabulary(
        "ate cada estar estao faz fazem fazer fez foram havia haver houve ir num numa "
        "onde pode podem poder posso quanta quantas quanto ser so tinha vai vamos"
    ),
}
"""Words that questions add: who, when, and the verbs "do", "can" and "give"."""

STOP_WORDS_OF: dict[str, frozenset[str]] = {
    language: frozenset(map(fold, words | _OF_QUESTIONS.get(language, frozenset())))
    for language, words in (FUNCTION_WORDS | _BY_SCRIPT).items()
} | {"en": STOP_WORDS}
"""Folded words that a search leaves out, by language. English as in the analysis of all texts."""

PARTICLES = {
    "zh": frozenset("的了是吗呢吧啊在我你他她它们这那个和与就都也很什么怎样哪里谁几为何"),
    "ja": frozenset("のはをにがでともへやかなねよですますたてだ"),
}
"""Characters that carry no information in a search, alone or in pairs of them."""
