"""Scenes in other languages, two of which are written without spaces. The kinds of question are the
same as in English."""

from __future__ import annotations

from memservice_bench.scenes import Scene

GERMAN = (
    Scene(
        "Balkon",
        ("Was wächst dieses Jahr auf dem Balkon?",),
        ("Vor allem {v}, der Rest ist ertrunken.",),
        ("Tomaten", "Basilikum", "Erdbeeren", "Minze"),
        ("Was wächst bei {n} auf dem Balkon?",),
    ),
    Scene(
        "Welpe",
        ("Wie heißt der Welpe denn nun?",),
        ("{v}! Die Kinder haben abgestimmt.",),
        ("Keks", "Strolch", "Waffel", "Komet"),
        ("Wie heißt der Welpe von {n}?",),
        (),
        ("Welchen Namen trägt das Haustier von {n}?",),
    ),
    Scene(
        "langes Wochenende",
        ("Wohin geht es am langen Wochenende?",),
        ("Nach {v}, endlich. Die Fahrkarten waren günstig.",),
        ("Lübeck", "Graz", "Basel", "Erfurt"),
        ("Wohin fuhr {n} am langen Wochenende?",),
    ),
    Scene(
        "Abendkurs",
        ("Wie läuft der Abendkurs?",),
        ("Wir sind schon bei {v}, mir raucht der Kopf.",),
        ("Buchhaltung", "Gebärden", "Aquarellen", "Schweißen"),
        ("Was lernt {n} im Abendkurs?",),
    ),
    Scene(
        "Werkstatt",
        ("Was hat die Werkstatt gefunden?",),
        ("{v} war hinüber. Ein Vermögen!",),
        ("Die Kupplung", "Der Auspuff", "Die Wasserpumpe"),
        ("Was hat die Werkstatt bei {n} gefunden?",),
    ),
    Scene(
        "wach",
        ("Was hält dich wach?",),
        ("{v} über mir, von zwei bis fünf.",),
        ("Der Trommler", "Das Baby", "Der Papagei"),
        ("Was hält {n} wach?",),
        (),
        ("Warum schläft {n} schlecht?",),
    ),
)
GERMAN_TALK = (
    ("Wie war dein Wochenende?", "Ruhig, ich habe nichts getan."),
    ("Mein Zug kam zu spät.", "Meiner auch, {p}."),
    ("Was für eine Woche.", "Wem sagst du das."),
    ("Hast du gegessen?", "Ein Brot unterwegs."),
)

SPANISH = (
    Scene(
        "cachorro",
        ("¿Y cómo se llama al final el cachorro?",),
        ("¡{v}! Lo votaron los niños.",),
        ("Galleta", "Cometa", "Churro", "Nube"),
        ("¿Cómo se llama el cachorro de {n}?",),
        (),
        ("¿Qué nombre tiene la mascota de {n}?",),
    ),
    Scene(
        "puente",
        ("¿Adónde vas en el puente?",),
        ("A {v}, por fin. Los billetes eran una ganga.",),
        ("Oviedo", "Évora", "Cádiz", "Burgos"),
        ("¿Adónde fue {n} en el puente?",),
    ),
    Scene(
        "entrevista",
        ("¿Qué tal la entrevista?",),
        ("¡Me cogieron! Empiezo de {v} en dos semanas.",),
        ("bibliotecaria", "pastelero", "guardabosques", "matrona"),
        ("¿Qué resultó de la entrevista de {n}?",),
    ),
    Scene(
        "manchas",
        ("¿Qué dijo la médica de las manchas?",),
        ("Es por {v}. Tengo que evitarlo.",),
        ("el kiwi", "el marisco", "la mostaza", "el látex"),
        ("¿De qué eran las manchas de {n}?",),
    ),
    Scene(
        "invitados",
        ("¿Qué cocinas para los invitados?",),
        ("{v}, nunca falla.",),
        ("Paella", "Lentejas", "Croquetas", "Gazpacho"),
        ("¿Qué cocinó {n} para los invitados?",),
    ),
    Scene(
        "dormir",
        ("¿Qué no te deja dormir?",),
        ("{v} de arriba, de dos a cinco.",),
        ("El batería", "El bebé", "La lavadora"),
        ("¿Qué no deja dormir a {n}?",),
    ),
)
SPANISH_TALK = (
    ("¿Qué tal el fin de semana?", "Tranquilo, no hice nada."),
    ("Mi tren llegó tarde.", "El mío también, {p}."),
    ("Vaya semana.", "A mí me lo dices."),
    ("¿Has comido?", "Un bocadillo por el camino."),
)

JAPANESE = (
    Scene(
        "子犬",
        ("子犬の名前は決まった？",),
        ("{v}だよ！子どもたちが投票したんだ。",),
        ("ビスケット", "もち", "うどん", "コメット"),
        ("{n}の子犬の名前は何ですか？",),
        (),
        ("{n}の飼い犬は何と呼ばれていますか？",),
    ),
    Scene(
        "連休",
        ("連休はどこへ行くの？",),
        ("やっと{v}。切符が安かったから。",),
        ("金沢", "松江", "函館", "尾道"),
        ("{n}は連休にどこへ行きましたか？",),
    ),
    Scene(
        "陶芸教室",
        ("陶芸教室はどう？",),
        ("ゆっくりだけど、土曜に{v}ができたよ。",),
        ("青い鉢", "湯のみ", "花びん", "皿"),
        ("{n}は陶芸教室で何を作りましたか？",),
    ),
    Scene(
        "お客さん",
        ("お客さんに何を作るの？",),
        ("{v}だね。失敗しないから。",),
        ("餃子", "おでん", "すき焼き", "豚汁"),
        ("{n}はお客さんに何を作りましたか？",),
    ),
    Scene(
        "ベランダ",
        ("ベランダで何を育てているの？",),
        ("ほとんど{v}。残りは雨でだめになった。",),
        ("トマト", "紫蘇", "苺", "唐辛子"),
        ("{n}はベランダで何を育てていますか？",),
    ),
    Scene(
        "楽器",
        ("どの楽器を始めたの？",),
        ("祖父が{v}を遺してくれたんだ。",),
        ("三味線", "尺八", "バイオリン", "琴"),
        ("{n}はどの楽器を始めましたか？",),
    ),
)
JAPANESE_TALK = (
    ("週末はどうだった？", "静かだったよ。何もしなかった。"),
    ("電車がまた遅れた。", "私もだよ、{p}。"),
    ("大変な一週間だった。", "本当にね。"),
    ("ご飯食べた？", "途中でパンを少し。"),
)

CHINESE = (
    Scene(
        "小狗",
        ("小狗最后叫什么名字？",),
        ("{v}！孩子们投票决定的。",),
        ("饼干", "汤圆", "豆腐", "彗星"),
        ("{n}的小狗叫什么名字？",),
        (),
        ("{n}的宠物怎么称呼？",),
    ),
    Scene(
        "长周末",
        ("长周末你去哪儿？",),
        ("终于去{v}了，车票很便宜。",),
        ("苏州", "大理", "青岛", "敦煌"),
        ("{n}长周末去了哪儿？",),
    ),
    Scene(
        "面试",
        ("面试怎么样了？",),
        ("成了！两周后我开始当{v}。",),
        ("图书管理员", "糕点师", "护林员", "助产士"),
        ("{n}的面试怎么样了？",),
    ),
    Scene(
        "阳台",
        ("今年阳台上种什么？",),
        ("主要是{v}，别的都淹死了。",),
        ("番茄", "辣椒", "草莓", "薄荷"),
        ("{n}在阳台上种什么？",),
    ),
    Scene(
        "夜校",
        ("夜校的课怎么样？",),
        ("已经学到{v}了，我头都晕。",),
        ("会计", "手语", "水彩", "焊接"),
        ("{n}在夜校学什么？",),
    ),
    Scene(
        "客人",
        ("你给客人做什么菜？",),
        ("{v}，从来不会失败。",),
        ("饺子", "红烧肉", "火锅", "春卷"),
        ("{n}给客人做了什么菜？",),
    ),
)
CHINESE_TALK = (
    ("周末过得怎么样？", "很安静，什么都没做。"),
    ("火车又晚点了。", "我的也是，{p}。"),
    ("这一周真累。", "可不是嘛。"),
    ("你吃了吗？", "路上吃了点面包。"),
)

ABROAD: dict[
    str, tuple[tuple[Scene, ...], tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...]]
] = {
    "de": (
        GERMAN,
        GERMAN_TALK,
        ("{p}, ich dachte gestern an das Thema {l}.", "Mein Bruder redet nur noch davon: {l}."),
        ("Jannik", "Svenja", "Ottilie"),
    ),
    "es": (
        SPANISH,
        SPANISH_TALK,
        ("{p}, ayer pensé en lo de {l}.", "Mi hermano no habla de otra cosa: {l}."),
        ("Nerea", "Iker", "Rocío"),
    ),
    "ja": (
        JAPANESE,
        JAPANESE_TALK,
        ("{p}、昨日{l}のことを考えたよ。", "弟は{l}の話ばかりだ。"),
        ("さくら", "健太", "美咲"),
    ),
    "zh": (
        CHINESE,
        CHINESE_TALK,
        ("{p}，昨天我想到了{l}的事。", "我弟弟老是说{l}。"),
        ("小明", "丽华", "建国"),
    ),
}
"""Scenes, small talk, idle mentions and names, by language."""
