"""Questions about the one who asks, and texts about their writers."""

from __future__ import annotations

import pytest

from memservice.domain.text.persons import OPENING, asks_about_asker, is_about_writer

ABOUT_ASKER = (
    "What is my budget for the long run?",
    "Who is helping me with the login form?",
    "Can you list the order in which I brought up my troubles?",
    "Tell me my budget",
    "Wie hoch ist mein Budget für die Küche?",
    "Wann fahre ich nach Rom?",
    "Où est-ce que j'habite ?",
    "Quel est mon budget pour le voyage ?",
    "¿Cuándo es mi cita con el dentista?",
    "Quando è il mio esame?",
    "Qual é o meu orçamento?",
    "Когда у меня экзамен?",
    "我的预算是多少?",
    "私の予算はいくらですか",
    "내 예산은 얼마인가요, 나는 몰라",
)
ABOUT_OTHERS = (
    "",
    "What did you recommend me for my garden?",
    "Tell me about Caroline",
    "Show me a code snippet for the login form.",
    "What did Caroline tell Bob?",
    "Was hast du mir empfohlen?",
    "Was haben Sie mir empfohlen?",
    "Wo wohnt Hans?",
    "Qu'est-ce que tu m'as conseillé ?",
    "Où habite Lucie ?",
    "¿Qué me recomendaste para mi jardín?",
    "¿Dónde vive Lucía?",
    "Cosa mi hai consigliato per il mio orto?",
    "Dove vive Lucia?",
    "O que você me recomendou?",
    "Что ты мне посоветовал?",
    "Где живёт Иван?",
    "你推荐我什么?",
    "何を勧めてくれましたか",
)


@pytest.mark.parametrize("question", ABOUT_ASKER)
def test_a_question_in_the_first_person_is_about_its_asker(question: str) -> None:
    assert asks_about_asker(question)


@pytest.mark.parametrize("question", ABOUT_OTHERS)
def test_a_question_about_others_or_to_somebody_is_not(question: str) -> None:
    assert not asks_about_asker(question)


@pytest.mark.parametrize(
    "text",
    ["I planted my tomatoes", "Mein Garten", "mon jardin", "mi jardín", "мой сад", "我的花园"],
)
def test_a_text_with_a_possession_is_about_its_writer(text: str) -> None:
    assert is_about_writer(text)


@pytest.mark.parametrize(
    "text", ["I recommend a garden", "Let me know!", "The army", "x" * OPENING + " my garden", ""]
)
def test_help_quotations_and_parts_of_words_are_not(text: str) -> None:
    assert not is_about_writer(text)
