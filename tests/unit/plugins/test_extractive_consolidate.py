"""Consolidating without a model: what is replaced by what, what is left alone, and what goes on the
card."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Known
from memservice_extractive.facts import Fact, read
from memservice_extractive.reasoner import ExtractiveReasoner
from support.examples import examples

START = datetime(2023, 5, 8, 10, tzinfo=UTC)


def conclusions_of(*contents: str, level: str = "explicit", same_time: bool = False) -> list[Known]:
    """One a day, with the uids k0, k1 … ."""
    return [
        Known(
            f"k{n}",
            content,
            level,
            START if same_time else START + timedelta(days=n),
            1,
            "bob",
            "bob",
        )
        for n, content in enumerate(contents)
    ]


def consolidated(
    rows: Sequence[Known], card: Sequence[str] = (), write_card: bool = True
) -> Consolidated:
    return ExtractiveReasoner().consolidate(
        ConsolidateRequest("bob", "bob", rows, card, write_card)
    )


def replaced(*contents: str) -> dict[str, str | None]:
    return {pair.old: pair.new for pair in consolidated(conclusions_of(*contents)).superseded}


def test_the_gold_scenario_is_consolidated() -> None:
    rows = conclusions_of(
        "I live in Rome.",
        "I like green tea.",
        "My favourite colour is blue.",
        "I like GREEN tea!",
        "Alice lives in Paris.",
        "I really like green tea.",
        "I moved to Berlin.",
        "My favourite colour is red.",
        "My favourite band is Blur.",
        "I do not like green tea.",
    )

    consolidation = consolidated(rows)

    assert [(pair.old, pair.new, pair.reason) for pair in consolidation.superseded] == [
        ("k0", "k6", "updated: residence"),
        ("k1", "k5", "near-duplicate"),
        ("k2", "k7", "updated: favourite colour"),
        ("k3", "k5", "near-duplicate"),
    ]
    assert consolidation.created == ()
    assert consolidation.card == [
        "ATTRIBUTE: I moved to Berlin.",
        "ATTRIBUTE: My favourite colour is red.",
        "ATTRIBUTE: My favourite band is Blur.",
    ]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Rome.", "I live in Berlin."),
        ("I live in Rome.", "I moved to Berlin last weekend."),
        ("我住在成都。", "上个月我搬到了重庆。"),
        ("I live in Rome.", "I have just moved to Berlin with my wife."),
        ("I live in Rome, Italy.", "Actually, I now live in Portland, Oregon."),
        ("I work at Siemens.", "I work as a designer at Bosch now."),
        ("I am 34 years old.", "I just turned 35."),
        ("My name is Bob.", "My name is Robert."),
        ("My email is bob@example.org.", "My new email is robert@example.org."),
        ("Bob lives in Rome.", "I live in Berlin."),
        ("Ich wohne in Hamburg.", "Ich bin nach Köln gezogen."),
        ("Ich arbeite bei Siemens.", "Ich arbeite jetzt bei Bosch."),
        ("Ich bin 30 Jahre alt.", "Ich bin 31 Jahre alt."),
        ("Mein Lieblingsessen ist Pizza.", "Mein Lieblingsessen ist Sushi."),
        ("我住在北京。", "我搬到了上海。"),
        ("我最喜欢的颜色是蓝色。", "我最喜欢的颜色是红色。"),
        ("私は東京に住んでいます。", "先月、大阪に引っ越しました。"),
        ("一番好きな色は青です。", "一番好きな色は赤です。"),
        ("I live in Rome.", "I live in rome"),
        ("I like tea", "Yes, I like tea!"),
        ("I love hiking.", "I love hiking because it calms me."),
    ],
)
def test_a_newer_value_replaces_the_older(older: str, newer: str) -> None:
    assert replaced(older, newer) == {"k0": "k1"}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Rome.", "I lived in Berlin."),
        ("I live in Rome.", "I used to live in Berlin."),
        ("I live in Rome.", "I moved to Berlin in 2015."),
        ("I live in Rome.", "I moved to Berlin when I was six."),
        ("I live in Rome.", "I live in Berlin on weekdays."),
        ("I live in Rome.", "If I live in Berlin I will need a car."),
        ("I live in Rome.", "I live in Italy."),
        ("I live in Germany.", "I live in Berlin."),
        ("I live in Rome.", "I live in a small flat."),
        ("I live in Rome.", "I live in Berlin and Paris."),
        ("I live in Rome.", "Alice lives in Berlin."),
        ("I live in Rome.", "My sister lives in Berlin."),
        ("I live in Rome.", 'Alice shouted happily "I live in Berlin" yesterday.'),
        ("I live in Rome.", "Do I live in Berlin?"),
        ("I live in Berlin.", "I live in Berlin Mitte."),
        ("I work at Siemens.", "I work at a bank."),
        ("My favourite colour is blue.", "My favourite band is Blur."),
        ("I like tea.", "I do not like tea."),
        ("I like tea.", "I like tea but not in the evening."),
        ("I have two dogs.", "I have three dogs."),
        ("I paid 20 euros for the bike.", "I paid 30 euros for the bike."),
        ("Anna loves Tom.", "Tom loves Anna."),
        ("I met Anna in the park.", "I met Lisa in the park."),
        ("My wife is a teacher.", "I am a teacher."),
        ("我太太是老师。", "我是老师。"),
        ("I have a dog.", "I have a dog house."),
        ("I went to the lake.", "I went to the lake and Anna swam."),
        ("I ran for 3.5 hours.", "I ran for 3:5 hours."),
        ("I want to marry.", "I married."),
        ("Ich mag Tee.", "Ich mag keinen Tee."),
        ("我喜欢喝茶。", "我不喜欢喝茶。"),
    ],
)
def test_uncertain_pairs_are_not_changed(older: str, newer: str) -> None:
    assert replaced(older, newer) == {}


def test_every_superseded_row_points_to_a_live_one() -> None:
    assert replaced(
        "I live in Rome.", "I live in Berlin.", "I live in Rome!", "Yes, I live in Berlin."
    ) == {
        "k0": "k3",
        "k1": "k3",
        "k2": "k3",
    }
    assert replaced("I live in Rome.", "I live in Berlin.", "I live in Rome.") == {
        "k0": "k2",
        "k1": "k2",
    }


def test_rows_of_the_same_time_do_not_replace_each_other() -> None:
    assert (
        consolidated(
            conclusions_of("I live in Rome.", "I live in Berlin.", same_time=True)
        ).superseded
        == []
    )


def test_only_explicit_rows_are_changed() -> None:
    rows = [
        *conclusions_of("I live in Rome.", "I live in Rome.", level="deductive"),
        *conclusions_of("I live in Berlin."),
    ]

    assert consolidated(rows).superseded == []


def test_the_card_is_verbatim_and_sorted_by_kind() -> None:
    rows = conclusions_of(
        "I live in Rome.",
        "My sister Anna lives in Oslo.",
        "I'm a nurse.",
        "Please always answer in German.",
        "My name is Bob.",
        "I am allergic to nuts.",
        "I went to the cinema yesterday.",
        "Ich bin verheiratet.",
        "我对花生过敏。",
        "妹の名前は花子です。",
    )

    assert consolidated(rows).card == [
        "INSTRUCTION: Please always answer in German.",
        "IDENTITY: I'm a nurse.",
        "IDENTITY: My name is Bob.",
        "ATTRIBUTE: I live in Rome.",
        "ATTRIBUTE: I am allergic to nuts.",
        "ATTRIBUTE: 我对花生过敏。",
        "RELATIONSHIP: My sister Anna lives in Oslo.",
        "RELATIONSHIP: Ich bin verheiratet.",
        "RELATIONSHIP: 妹の名前は花子です。",
    ]


def test_lines_of_the_card_stay_unless_a_newer_value_replaces_them() -> None:
    card = ["Likes long walks", "ATTRIBUTE: I live in Rome.", "IDENTITY: My name is Bob."]

    lines = consolidated(
        conclusions_of("I moved to Berlin.", "My name is Bob.", "I'm vegan."), card
    ).card

    assert lines == [
        "Likes long walks",
        "ATTRIBUTE: I moved to Berlin.",
        "IDENTITY: My name is Bob.",
        "ATTRIBUTE: I'm vegan.",
    ]


@pytest.mark.parametrize(
    "introduction",
    [
        "Moin, ich bin Jonas und wohne in Kiel.",
        "Hi, I'm Dana from Leeds.",
        "Hola, soy Marta y trabajo en una librería de Gijón.",
        "Salut, je m'appelle Luc et j'habite à Brest.",
        "Sono Carla, faccio la veterinaria a Siena.",
        "佐藤と申します。",
        "Oi! Sou o Bruno, moro em Recife.",
        "Меня зовут Вера, я живу в Перми.",
        "你好，我叫小林，住在成都。",
    ],
)
def test_an_introduction_is_on_the_card(introduction: str) -> None:
    assert consolidated(conclusions_of(introduction)).card == [f"IDENTITY: {introduction}"]


@pytest.mark.parametrize(
    ("introduction", "newer"),
    [
        ("I'm Dana and I live in Leeds.", "I moved to York."),
        ("Ich bin Jonas und wohne in Kiel.", "Ich wohne jetzt in Lübeck."),
        ("I'm Dana and I work for a bakery.", "I work at Brewmaster."),
    ],
)
def test_a_newer_value_replaces_an_introduction_that_tells_another(
    introduction: str, newer: str
) -> None:
    later = [f"ATTRIBUTE: {newer}"]
    assert consolidated(conclusions_of(introduction, newer)).card == later
    lines = [f"IDENTITY: {introduction}", "INSTRUCTION: Be brief."]
    assert consolidated(conclusions_of(newer), lines).card == [*later, lines[1]]


def test_an_introduction_stays_if_what_it_tells_is_still_true() -> None:
    lines = ["IDENTITY: Hi, I'm Dana from Leeds.", "RELATIONSHIP: My sister Ann lives in Rome."]
    card = consolidated(conclusions_of("I moved to York.", "I am 31 years old."), lines).card
    assert card == [*lines, "ATTRIBUTE: I moved to York.", "ATTRIBUTE: I am 31 years old."]


def test_the_card_is_unchanged_without_new_lines_or_permission() -> None:
    rows = conclusions_of("I live in Rome.")

    assert consolidated(rows, ["ATTRIBUTE: i live in  rome."]).card is None
    assert consolidated(rows, write_card=False).card is None
    assert consolidated(conclusions_of("I went to the cinema yesterday.")).card is None


def test_a_full_card_gets_no_lines_and_long_lines_are_left_out() -> None:
    full = [f"ATTRIBUTE: fact {number}" for number in range(40)]

    assert consolidated(conclusions_of("I'm vegan."), full).card is None
    assert (
        consolidated(conclusions_of("I am allergic to " + "nuts and " * 30 + "milk.")).card is None
    )


def test_statements_about_others_are_not_facts_of_the_speaker() -> None:
    assert read("Alice lives in Rome.", ["bob"]) is None
    assert read("Bob lives in Rome.", ["bob"]) == Fact("ATTRIBUTE", ("residence",), "rome")
    assert read("Alice is a teacher.", ["bob"]) is None


SENTENCES = [
    *(
        "I live in Rome.",
        "I live in Berlin.",
        "I moved to Oslo.",
        "I like tea.",
        "I really like tea!",
        "i like tea",
        "My name is Bob.",
    ),
    *(
        "I'm vegan.",
        "我住在北京。",
        "我搬到了上海。",
        "Ich wohne in Bonn.",
        "I like tea because it is hot.",
        "I like tea because it is hot and wet.",
    ),
]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from(SENTENCES) | st.text(max_size=30), max_size=10),
    st.lists(st.text(min_size=1, max_size=20), max_size=3),
    st.booleans(),
)
def test_consolidating_again_changes_nothing(
    contents: list[str], card: list[str], same_time: bool
) -> None:
    rows = conclusions_of(*contents, same_time=same_time)

    first = consolidated(rows, card)
    superseded = {pair.old for pair in first.superseded}
    again = consolidated(
        [row for row in rows if row.uid not in superseded],
        card if first.card is None else first.card,
    )

    assert len(superseded) == len(first.superseded)
    assert {pair.new for pair in first.superseded} <= {row.uid for row in rows} - superseded
    assert again.superseded == []
    assert again.card is None
