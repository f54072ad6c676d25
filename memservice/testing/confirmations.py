"""Dialogues in which a peer confirms or picks what another peer said, and in which it does not. The
statements are those that a good model returns, and for the second table those of a careless one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from memservice.domain.records import Message
from memservice.spi.reasoner import Statement

NOW = datetime(2024, 5, 17, tzinfo=UTC)


class Dialogue(Struct, frozen=True):
    """bob says something, and alice answers."""

    other: str
    own: str
    statement: str
    """About alice."""
    basis: str = "confirmed"

    def messages(self, between: Sequence[tuple[str, str]] = ()) -> list[Message]:
        """The conversation, with further messages (author, content) between its two."""
        texts = [("bob", self.other), *between, ("alice", self.own)]
        return [_message(number, *item) for number, item in enumerate(texts, 1)]

    def derived(self, messages: Sequence[Message]) -> Statement:
        """What the model returns."""
        key = messages[-1].key
        if self.basis == "confirmed":
            return Statement(self.statement, (key,), basis="confirmed", confirms=(1,))
        return Statement(self.statement, (key,))


def _message(key: int, author: str, content: str) -> Message:
    return Message(
        key=key,
        uid=f"uid-{key}",
        workspace_key=1,
        session_key=1,
        author_key={"alice": 1, "bob": 2}[author],
        session="s",
        author=author,
        seq=key,
        content=content,
        tokens=1,
        tokens_through=key,
        created_at=NOW,
    )


CONFIRMED = (
    # A summary that is confirmed
    Dialogue(
        "So you work as a data engineer at Siemens in Munich since 2021.",
        "Yes, that's totally correct, you remembered everything!",
        "alice works as a data engineer at Siemens in Munich since 2021.",
    ),
    Dialogue(
        "You told me you're allergic to penicillin and shellfish.",
        "Right, please keep that in mind for all restaurant suggestions.",
        "alice is allergic to penicillin and shellfish.",
    ),
    Dialogue(
        "Your wedding is on September 14th in Porto, isn't it?",
        "Exactly, we're so looking forward to it!",
        "alice's wedding is on September 14th in Porto.",
    ),
    Dialogue(
        "If I remember well, you have two daughters, Mia and Lena.",
        "Good memory! They are growing up so quickly these days.",
        "alice has two daughters, Mia and Lena.",
    ),
    Dialogue(
        "You prefer morning flights and aisle seats.",
        "Absolutely, nothing has changed about how I travel.",
        "alice prefers morning flights and aisle seats.",
    ),
    Dialogue(
        "Is your budget for the kitchen still 12,000 euros?",
        "Yeah, my husband insists we stick with what we agreed.",
        "alice's budget for the kitchen is 12,000 euros.",
    ),
    Dialogue(
        "And you still play the cello in the Leipzig amateur orchestra?",
        "Still do, every single Tuesday evening after work.",
        "alice plays the cello in the Leipzig amateur orchestra.",
    ),
    Dialogue(
        "Shall I note that your sister Ines studies medicine in Coimbra?",
        "Oh yes please, that would help me later on.",
        "alice's sister Ines studies medicine in Coimbra.",
    ),
    # A choice
    Dialogue(
        "Would you like Hotel Aurora or the Villa Rosa?",
        "The second one sounds perfect, let's take that!",
        "alice wants to stay at the Villa Rosa.",
    ),
    Dialogue(
        "We could do A) the museum tour or B) the food market walk.",
        "B, because my kids get bored quickly with paintings.",
        "alice wants to do the food market walk.",
    ),
    Dialogue(
        "There are three plans: Basic, Family and Premium. Which one?",
        "I'd go with the last, considering what we spend already.",
        "alice chose the Premium plan.",
    ),
    Dialogue(
        "Train or plane to Vienna?",
        "Train, obviously, I hate airports and everything around them.",
        "alice wants to take the train to Vienna.",
    ),
    Dialogue(
        "Should the party be in the garden or in the town hall?",
        "The former, unless the forecast looks really terrible.",
        "alice wants the party in the garden.",
    ),
    Dialogue(
        "For dinner I can offer ramen, tacos or a Greek salad.",
        "Option 2 please, we had noodles yesterday already.",
        "alice chose tacos for dinner.",
    ),
    Dialogue(
        "Do you want the blue sofa, the grey one, or both samples?",
        "Both, so that my wife can compare them at home.",
        "alice wants samples of the blue and the grey sofa.",
    ),
    Dialogue(
        "I suggest a reminder at 7 am for your thyroid tablets.",
        "Sounds good, I keep forgetting them lately.",
        "alice wants a reminder at 7 am for her thyroid tablets.",
    ),
    # German
    Dialogue(
        "Sie wohnen also seit 2019 in Leipzig und arbeiten als Hebamme.",
        "Genau, das haben Sie sich sehr gut gemerkt!",
        "alice wohnt seit 2019 in Leipzig und arbeitet als Hebamme.",
    ),
    Dialogue(
        "Möchten Sie lieber das Hotel Sonne oder die Pension Edelweiß?",
        "Das zweite klingt wunderbar, bitte gleich buchen!",
        "alice möchte in der Pension Edelweiß übernachten.",
    ),
    Dialogue(
        "Dein Sohn Jonas kommt im August in die Schule, oder?",
        "Stimmt, wir haben gestern schon den Ranzen gekauft.",
        "alices Sohn Jonas kommt im August in die Schule.",
    ),
    Dialogue(
        "Du isst kein Fleisch und keinen Fisch mehr?",
        "Ja, seit dem Urlaub bei meiner Tante bleibe ich dabei.",
        "alice isst kein Fleisch und keinen Fisch mehr.",
    ),
    # French
    Dialogue(
        "Vous travaillez donc comme infirmière à Lyon depuis dix ans.",
        "C'est ça, vous avez une excellente mémoire !",
        "alice travaille comme infirmière à Lyon depuis dix ans.",
    ),
    Dialogue(
        "Préférez-vous la maison à Nantes ou l'appartement à Rennes ?",
        "La première me plaît davantage, surtout pour les enfants.",
        "alice préfère la maison à Nantes.",
    ),
    Dialogue(
        "Tu es allergique aux arachides, n'est-ce pas ?",
        "Oui, depuis toute petite malheureusement.",
        "alice est allergique aux arachides.",
    ),
    # Spanish
    Dialogue(
        "Entonces usted vive en Valencia y tiene dos hijos.",
        "Así es, me alegra mucho que lo recuerde.",
        "alice vive en Valencia y tiene dos hijos.",
    ),
    Dialogue(
        "¿Prefieres el curso de cerámica o el de fotografía?",
        "Me quedo con el segundo, siempre quise aprender eso.",
        "alice prefiere el curso de fotografía.",
    ),
    Dialogue(
        "¿Tu hermana Lucía se casa en octubre?",
        "Sí, estamos todos muy emocionados con los preparativos.",
        "La hermana de alice, Lucía, se casa en octubre.",
    ),
    # Portuguese
    Dialogue(
        "Então você mora no Recife e trabalha numa padaria.",
        "Isso mesmo, que bom que você se lembra!",
        "alice mora no Recife e trabalha numa padaria.",
    ),
    Dialogue(
        "Quer o voo da manhã ou o voo da noite?",
        "Fico com o primeiro, detesto chegar tarde.",
        "alice quer o voo da manhã.",
    ),
    Dialogue(
        "O seu cachorro se chama Bolota?",
        "Sim, meus filhos escolheram quando eram pequenos.",
        "O cachorro de alice se chama Bolota.",
    ),
    # Italian
    Dialogue(
        "Quindi lavora come architetto a Torino dal 2015.",
        "Esatto, complimenti per la memoria!",
        "alice lavora come architetto a Torino dal 2015.",
    ),
    Dialogue(
        "Vuole la camera con vista mare o quella sul giardino?",
        "Prendo la seconda, dormo meglio lontano dal rumore.",
        "alice vuole la camera sul giardino.",
    ),
    Dialogue(
        "Suo figlio Matteo è intollerante al lattosio?",
        "Certo, dobbiamo stare molto attenti quando usciamo.",
        "Il figlio di alice, Matteo, è intollerante al lattosio.",
    ),
    # Chinese
    Dialogue("所以您在上海的医院当护士？", "是的，您记得真清楚！", "alice在上海的医院当护士。"),
    Dialogue(
        "您想订靠窗的座位还是靠过道的座位？", "第二个吧，我腿比较长。", "alice想订靠过道的座位。"
    ),
    Dialogue("您对花生过敏。", "没错，请一定帮我注意。", "alice对花生过敏。"),
    Dialogue(
        "您女儿下个月去北京上大学？", "对，我们全家都很高兴。", "alice的女儿下个月去北京上大学。"
    ),
    # Japanese
    Dialogue(
        "京都で英語の先生をされているんですね。",
        "はい、よく覚えていてくれましたね！",
        "aliceは京都で英語の先生をしている。",
    ),
    Dialogue(
        "和室と洋室のどちらがよろしいですか？",
        "最初のほうでお願いします、畳が好きなので。",
        "aliceは和室を希望している。",
    ),
    Dialogue(
        "そばアレルギーがあるんでしたよね？",
        "そうなんです、子供の頃からずっと。",
        "aliceはそばアレルギーがある。",
    ),
    Dialogue(
        "来月、札幌に引っ越すのですか？",
        "ええ、夫の転勤が急に決まりまして。",
        "aliceは来月、札幌に引っ越す。",
    ),
)

NOT_CONFIRMED = (
    Dialogue("You own a yacht in Monaco.", "No, that is my cousin's.", "alice owns a yacht."),
    Dialogue(
        "You live in Rome, right?",
        "Not at all, wherever did you get that idea?",
        "alice lives in Rome.",
    ),
    Dialogue("I moved to Oslo last week.", "How was the journey up there?", "alice moved to Oslo."),
    Dialogue("I moved to Oslo last week.", "How nice for you!", "alice moved to Oslo.", "said"),
    Dialogue(
        "You are allergic to nuts.",
        "Never had any trouble with those.",
        "alice is allergic to nuts.",
    ),
    Dialogue(
        "Would you like Hotel Aurora or the Villa Rosa?",
        "Neither, we will stay with friends.",
        "alice wants to stay at the Villa Rosa.",
    ),
    Dialogue("Du hast drei Kinder.", "Nein, da irrst du dich gewaltig.", "alice hat drei Kinder."),
    Dialogue("Vous habitez à Paris ?", "Pas du tout, quelle idée !", "alice habite à Paris."),
    Dialogue("¿Vives en Madrid?", "No, para nada, qué va.", "alice vive en Madrid."),
    Dialogue("Você mora em Lisboa?", "Não, de jeito nenhum.", "alice mora em Lisboa."),
    Dialogue("Lei abita a Roma?", "No, assolutamente, si sbaglia.", "alice abita a Roma."),
    Dialogue("您住在北京吗？", "不是，您记错人了。", "alice住在北京。"),
    Dialogue("大阪にお住まいですか？", "いいえ、人違いだと思います。", "aliceは大阪に住んでいる。"),
)
