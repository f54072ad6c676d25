"""Which statements answer a question."""

from __future__ import annotations

import pytest

from memservice_extractive.relevance import ENOUGH, Question


def score(question: str, statement: str, language: str, *, others: tuple[str, ...] = ()) -> float:
    query = Question(question, ["ada"], language).with_names_of([statement, *others])
    return query.score(statement, language)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        ("de", "Was hält Ada von Elektrorollern?", "Elektroroller gehören verboten."),
        ("de", "Womit verdient Ada ihr Geld?", "Ich arbeite in einer Gärtnerei."),
        ("it", "Qual è l'indirizzo e-mail di Ada?", "Scrivimi a ada@example.org."),
        ("en", "What is Ada's e-mail address?", "I'm ada@example.org."),
    ],
)
def test_other_forms_and_longer_expressions_are_understood(
    language: str, question: str, statement: str
) -> None:
    assert score(question, statement, language) >= ENOUGH


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "question", "statement", "other"),
    [
        (
            "de",
            "Was macht Vroni beruflich?",
            "Ich bin Tontechniker.",
            "Meine Schwester Vroni lacht viel.",
        ),
        ("zh", "子轩做什么工作？", "我现在当瑜伽教练。", "我弟弟子轩5月订婚。"),
        (
            "ja",
            "美咲さんの仕事は何ですか？",
            "今はパン屋で働いています。",
            "妹の美咲が結婚します。",
        ),
    ],
)
def test_a_question_about_a_relative_by_name_needs_the_name(
    language: str, question: str, statement: str, other: str
) -> None:
    assert score(question, statement, language) >= ENOUGH
    assert score(question, statement, language, others=(other,)) < ENOUGH


def test_the_wedding_of_a_relative_names_no_partner_of_the_speaker() -> None:
    sister = "Meine Schwester heiratet am 7. September."
    assert score("Wie heißt Adas Mann?", sister, "de") < ENOUGH
    assert score("Wie heißt Adas Mann?", "Mein Mann heißt Jo.", "de") >= ENOUGH


def test_a_story_that_was_asked_for_tells_nothing_of_the_speaker() -> None:
    story = "Erfinde eine Geschichte, in der ein Pirat einen Papagei verliert."
    assert score("Welches Haustier hat Ada?", story, "de") < ENOUGH


def test_a_railway_carriage_is_no_car() -> None:
    assert score("車は何ですか？", "満員電車は最悪だと思います。", "ja") < ENOUGH
    assert score("車は何ですか？", "車はヤリスです。", "ja") >= ENOUGH


def test_a_relative_that_is_with_the_speaker_is_not_the_subject() -> None:
    assert score("楓はどこへ旅行しますか？", "妹と台湾へ旅行します。", "ja") >= ENOUGH
    assert score("楓はどこへ旅行しますか？", "妹が台湾へ旅行します。", "ja") < ENOUGH


def test_a_statement_about_a_relative_alone_answers_no_question_about_the_speaker() -> None:
    assert score("Where does Ada live?", "My sister Clara lives in Oslo.", "en") < ENOUGH
    assert score("Where does Clara live?", "My sister Clara lives in Oslo.", "en") >= ENOUGH


def test_a_name_in_another_script_is_no_word_of_the_question() -> None:
    assert score("Кем работает Вера?", "Теперь я работаю флористом.", "ru") >= ENOUGH


def test_a_reply_tells_what_its_question_asks_for() -> None:
    assert score("How old is Ada?", "How old are you? – 34", "en") >= ENOUGH
    assert score("Wie alt ist Ada?", "Wie alt bist du? – 34", "de") >= ENOUGH


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("What does Ida's sister do for a living?", "My sister marries, and I work as a nurse."),
        ("How old is Ida's brother?", "I turn 29 in May, my brother knows that."),
        ("What is Ida's brother called?", "My sister Vera is in Rome."),
    ],
)
def test_what_is_told_of_the_speaker_or_of_another_relative_is_no_answer(
    question: str, statement: str
) -> None:
    assert Question(question, ["ida"]).score(statement, "en") < ENOUGH


def test_what_the_speaker_tells_of_itself_after_a_relative_is_an_answer() -> None:
    statement = "My brother takes over the shop, and I was hired by a brewery."
    assert Question("Where does Ida work?", ["ida"]).score(statement, "en") >= ENOUGH


def test_an_aversion_weighs_more_than_the_kind_of_thing() -> None:
    question = Question("Which food can't Ida stand?", ["ida"])
    aversion = question.score("Coriander tastes like soap to me.", "en")
    assert aversion > question.score("I cook dinner at seven.", "en")
