"""What is derived from a message, exactly: a table in three languages (and a few rows of a
fourth)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memservice.spi.reasoner import DeriveRequest, Utterance
from memservice_extractive.reasoner import ExtractiveReasoner

SAID = datetime(2023, 5, 8, 10, tzinfo=UTC)

ENGLISH: list[tuple[str, list[str]]] = [
    ("Hi Alice! I moved to Berlin last month. How are you?", ["I moved to Berlin last month."]),
    ("I am.", []),
    ("Thanks for the help!", []),
    ("Yes, I live in Rome.", ["Yes, I live in Rome."]),
    ("Wow, that's amazing, Caroline!", []),
    ("My sister Anna is allergic to peanuts.", ["My sister Anna is allergic to peanuts."]),
    ("Alice is allergic to peanuts.", ["Alice is allergic to peanuts."]),
    (
        "You are allergic to nuts. Your mother told me yesterday.",
        ["Your mother told me yesterday."],
    ),
    ("Please write a poem about cats. I have three cats.", ["I have three cats."]),
    ("Please always answer in German.", ["Please always answer in German."]),
    ("Remember that I am allergic to nuts.", ["Remember that I am allergic to nuts."]),
    (
        "Don't worry about it. Don't use emojis in your answers.",
        ["Don't use emojis in your answers."],
    ),
    ("I love it! I love hiking.", ["I love hiking."]),
    (
        "Dr. Smith in St. Louis treats me since Jan. 5, e.g. for asthma. I like him.",
        ["Dr. Smith in St. Louis treats me since Jan. 5, e.g. for asthma."],
    ),
    ("> I live in Paris.\nNo, I live in Rome.", ["No, I live in Rome."]),
    ('Alice said: "I live in Rome. I love it." I live in Oslo.', ["I live in Oslo."]),
    ("alice: I live in Rome.\nbob: I live in Oslo.", ["I live in Oslo."]),
    ("The weather is nice today.", []),
    ("https://example.org/a.b?x=1", []),
    (
        "See https://example.org/a.b?x=1. I wrote that article in 2019.",
        ["I wrote that article in 2019."],
    ),
    ("```python\nhome = 'Rome'\n```\nI use Python 3.11 at work.", ["I use Python 3.11 at work."]),
    (
        "- I run marathons\n- I am 34 years old\n1. My dog is called Rex",
        ["I run marathons", "I am 34 years old", "My dog is called Rex"],
    ),
    ("When I was six I lived in Ghana.", ["When I was six I lived in Ghana."]),
    ("can you help me with my taxes", []),
    ("ok cool. Opera tickets.", []),
    ("I'd like you to summarise this text.", []),
    ("I hope you are well. Have a great day!", []),
    (
        "Sorry for the late reply, I was in hospital with my son.",
        ["Sorry for the late reply, I was in hospital with my son."],
    ),
    ("I live in Rome. I live in Rome. i live in rome.", ["I live in Rome."]),
    (
        "I earn $3.50 an hour at www.example.org... It closes at 5 p.m. every day.",
        ["I earn $3.50 an hour at www.example.org... It closes at 5 p.m. every day."],
    ),
]

GERMAN: list[tuple[str, list[str]]] = [
    (
        "Ich heiße Jonas und wohne in St. Gallen. Dr. Müller ist mein Hausarzt.",
        ["Ich heiße Jonas und wohne in St. Gallen.", "Dr. Müller ist mein Hausarzt."],
    ),
    ("Guten Morgen! Wie geht's? Danke, mir geht es gut.", []),
    ("Schreib mir bitte ein Gedicht. Ich mag Tee.", ["Ich mag Tee."]),
    ("Bitte antworte immer auf Deutsch.", ["Bitte antworte immer auf Deutsch."]),
    (
        "Am 3. Oktober ziehe ich nach Hamburg. Das klingt toll!",
        ["Am 3. Oktober ziehe ich nach Hamburg."],
    ),
    (
        "Könntest du mir helfen. Meine Schwester Anna arbeitet bei Siemens.",
        ["Meine Schwester Anna arbeitet bei Siemens."],
    ),
    (
        "Ich bin gegen Nüsse allergisch, z.B. gegen Haselnüsse.",
        ["Ich bin gegen Nüsse allergisch, z.B. gegen Haselnüsse."],
    ),
    ("Ach so, verstehe. Alles klar, bis morgen!", []),
    ("Nenn mich bitte Jo.", ["Nenn mich bitte Jo."]),
    ("Er sagte: „Ich komme bald.“ Ich habe zwei Kinder.", ["Ich habe zwei Kinder."]),
    ("Du bist so nett. Ich weiß.", []),
    ("Liebe Grüße, Tom", []),
]

CHINESE: list[tuple[str, list[str]]] = [
    ("你好！我叫王伟，住在北京。你呢？", ["我叫王伟，住在北京。"]),
    ("好的，谢谢。", []),
    (
        "我对花生过敏。今天天气不错。我每天早上跑五公里！",
        ["我对花生过敏。", "我每天早上跑五公里！"],
    ),
    ("请帮我写一首诗。请以后用中文回答。", ["请以后用中文回答。"]),
    ("你真厉害！我也觉得。哈哈哈", []),
    ("我妹妹叫小红，她是医生。", ["我妹妹叫小红，她是医生。"]),
    ("他说：“我住在上海。”我住在广州。", ["我住在广州。"]),
    ("你是哪里人？我是四川人，喜欢吃辣。", ["我是四川人，喜欢吃辣。"]),
    ("嗯嗯，知道了。再见！", []),
    ("我在Google工作了3年。", ["我在Google工作了3年。"]),
]

JAPANESE: list[tuple[str, list[str]]] = [
    ("こんにちは。私は東京に住んでいます。お元気ですか？", ["私は東京に住んでいます。"]),
    ("犬を飼っています。名前はポチです。", ["犬を飼っています。名前はポチです。"]),
    ("ありがとうございます。はい、そうです。", []),
    ("今日はいい天気ですね。詩を書いてください。", []),
    (
        "これからは日本語で答えてください。来月、大阪に引っ越します！",
        ["これからは日本語で答えてください。", "来月、大阪に引っ越します！"],
    ),
    ("彼は「私は医者です」と言った。妹は看護師です。", ["妹は看護師です。"]),
    ("どこに住んでいますか。卵アレルギーがあります。", ["卵アレルギーがあります。"]),
    ("なるほど、わかりました。また明日！", []),
]

TABLE = [*ENGLISH, *GERMAN, *CHINESE, *JAPANESE]


def test_the_table_has_sixty_rows() -> None:
    assert len(TABLE) == 60
    assert len({content for content, _ in TABLE}) == 60


@pytest.mark.slow
@pytest.mark.parametrize(("content", "expected"), TABLE, ids=range(len(TABLE)))
def test_exactly_these_sentences_are_derived(content: str, expected: list[str]) -> None:
    request = DeriveRequest(
        "bob", [Utterance(7, "u7", "bob", content, SAID)], names={"alice": "Alice"}
    )

    derived = ExtractiveReasoner().derive(request)

    assert [statement.content for statement in derived.statements] == expected
    assert all(
        statement.message_keys == (7,) and statement.level == "explicit"
        for statement in derived.statements
    )
    assert (derived.spent.model, derived.spent.input_tokens, derived.spent.output_tokens) == (
        None,
        0,
        0,
    )
