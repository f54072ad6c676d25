"""Statements within questions and requests, and statements that begin like a request."""

from __future__ import annotations

import pytest

from memservice_extractive.derive import judged


def statements_of(text: str) -> list[tuple[str, str]]:
    return [(sentence, judgement.kind) for sentence, judgement in judged(text) if judgement.keep]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("I play the harp at church, do you know a good teacher?", "I play the harp at church"),
        ("Ich spiele Harfe in der Kirche, kennst du Noten?", "Ich spiele Harfe in der Kirche"),
        ("Je fais du judo le mardi, c'est dangereux ?", "Je fais du judo le mardi"),
        ("Tengo dos conejos en casa, ¿qué comen?", "Tengo dos conejos en casa"),
        ("Ho due conigli in casa, cosa mangiano?", "Ho due conigli in casa"),
        ("Eu toco harpa na igreja, você conhece alguém?", "Eu toco harpa na igreja"),
        ("Я играю на арфе в церкви, где найти ноты?", "Я играю на арфе в церкви"),
        ("我在教堂弹竖琴，你认识老师吗？", "我在教堂弹竖琴"),
        ("Tenemos un loro que habla, ¿es normal?", "Tenemos un loro que habla"),
        ("Abbiamo un pappagallo che parla, è normale?", "Abbiamo un pappagallo che parla"),
        ("Temos um papagaio que fala, isso é normal?", "Temos um papagaio que fala"),
        ("女儿在学小提琴，每天练一小时，会不会太多？", "女儿在学小提琴，每天练一小时"),
        ("Mein Bruder wohnt in Jena, wie weit ist das?", "Mein Bruder wohnt in Jena"),
    ],
)
def test_the_clause_before_a_question_is_kept(text: str, statement: str) -> None:
    assert statements_of(text) == [(statement, "statement")]


@pytest.mark.parametrize(
    "text",
    [
        "If I play the harp at church, do I need a permit?",
        "Should I play the harp at church, or is that too loud?",
        "When I was in Rome, did you know me?",
        "Do you know Rome, my favourite city?",
        "Well, is that normal?",
        "Para una boda de día, ¿qué zapatos van bien?",
        "If I had a million, would you help me?",
    ],
)
def test_a_question_that_tells_nothing_is_left_out(text: str) -> None:
    assert statements_of(text) == []


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("Make me a list: I'm flying to Malta on Monday", "I'm flying to Malta on Monday"),
        ("Note down my new phone number 0161 496 0000", None),
        ("Запиши мой новый адрес: Садовая улица, дом 5", None),
        ("Anota mi nuevo número, 600 100 200", None),
        ("记一下我的新号码 13800000000", None),
    ],
)
def test_what_a_request_tells_is_kept(text: str, statement: str | None) -> None:
    assert statements_of(text) == [(statement or text, "statement")]


@pytest.mark.parametrize(
    "text",
    [
        "Remind me what to ask the doctor",
        "Rappelle-moi comment on fait les crêpes",
        "Anota los pasos de esta receta",
        "Make me a list: bread, butter, jam",
    ],
)
def test_a_request_that_tells_nothing_is_left_out(text: str) -> None:
    assert statements_of(text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Mai avuto problemi con la schiena", "statement"),
        ("Never been to Iceland or Norway", "statement"),
        ("Nunca he probado el sushi", "statement"),
        ("Никогда не пробовал суши", "statement"),
        ("Mai usare emoji nelle risposte che mi dai", "instruction"),
        ("Never use emojis in your answers", "instruction"),
        ("Remind me every Monday to water the plants", "instruction"),
    ],
)
def test_experience_is_no_instruction(text: str, kind: str) -> None:
    assert statements_of(text) == [(text, kind)]
