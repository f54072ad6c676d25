"""The order of the closest statements, if none certainly answers a question."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.domain.text.folding import fold
from memservice.spi.reasoner import AnswerRequest
from memservice.spi.toolbox import Evidence, Passage
from memservice_extractive import nearest
from memservice_extractive.answer_types import has_type, types_asked
from memservice_extractive.findings import find
from memservice_extractive.nearest import closeness
from memservice_extractive.own_names import is_form_of
from memservice_extractive.question_frames import without_frame
from memservice_extractive.relevance import ENOUGH, Question
from memservice_extractive.replies import begins_with_pronoun
from memservice_extractive.sentences import split

SAID = datetime(2024, 5, 2, 9, tzinfo=UTC)


class Talk:
    """Conclusions of one person, each from a message of its own."""

    has_chains = False
    has_cards = False

    def __init__(self, *statements: str, messages: dict[str, str] | None = None) -> None:
        self.statements = statements
        self.messages = messages or {}

    def conclusions(self, query: str, limit: int) -> list[Evidence]:
        return [Evidence("conclusion", text, text, SAID, about="ida") for text in self.statements][
            :limit
        ]

    def behind(self, uid: str) -> list[Passage]:
        content = self.messages.get(uid, uid)
        return [[Evidence("message", f"m {uid}", content, SAID, author="ida")]]


def closest(question: str, *statements: str, messages: dict[str, str] | None = None) -> list[str]:
    tools: Any = Talk(*statements, messages=messages)
    findings = find(AnswerRequest(question, "ida", [], tools=tools))
    assert not findings.answers
    return [piece.text for piece in findings.pieces]


@pytest.mark.parametrize(
    ("language", "framed", "question"),
    [
        ("de", "Kannst du mir sagen, wo Ida wohnt?", "wo ida wohnt?"),
        ("en", "Do you happen to know where Ida lives?", "where ida lives?"),
        ("es", "Me gustaría saber dónde vive Ida.", "donde vive ida."),
        ("fr", "Peux-tu me dire où habite Ida ?", "ou habite ida ?"),
        ("it", "Sai dirmi dove abita Ida?", "dove abita ida?"),
        ("pt", "Você sabe onde a Ida mora?", "onde a ida mora?"),
        ("ru", "Не подскажешь, где живёт Ида?", "где живет ида?"),
        ("zh", "请问怡达住在哪里？", "怡达住在哪里?"),
        ("ja", "伊田さんはどこに住んでいるか分かりますか？", "伊田さんはどこに住んでいる"),
    ],
)
def test_what_only_says_that_something_is_asked_is_no_part_of_a_question(
    language: str, framed: str, question: str
) -> None:
    assert without_frame(fold(framed), language) == question
    assert without_frame(question, language) == question


def test_a_question_that_is_only_a_frame_stays() -> None:
    assert without_frame("do you know?", "en") == "do you know?"


def test_a_longer_form_of_an_id_is_a_name_of_the_subject() -> None:
    assert is_form_of("kaluana", ["kalu"])
    assert is_form_of("noors", ["noor"])
    assert not is_form_of("benzin", ["ben"])
    question = Question("Com quem o Kaluanã é casado?", ["kalu"], "pt")
    assert question.score("Minha mulher Janaína é médica.", "pt") >= ENOUGH


def test_the_own_name_of_a_chinese_speaker_is_no_word_of_the_question() -> None:
    question = Question("怡达林怕什么？", ["ida"], "zh").with_names_of(["你好，我是怡达林。"])
    assert not question.content.words
    other = Question("怡达林怕什么？", ["ida"], "zh").with_names_of(["怡达林来了。"])
    assert other.content.words


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Wann ist Idas Prüfung?", "Am 3. Mai hab ich Zwischenprüfung."),
        ("Für welchen Verein ist Ida?", "Mein Lieblingsverein ist der HSV."),
    ],
)
def test_a_german_compound_has_the_topic_of_its_last_part(question: str, statement: str) -> None:
    assert Question(question, ["ida"], "de").score(statement, "de") >= ENOUGH


@pytest.mark.parametrize(
    ("language", "question", "kind", "statement", "other"),
    [
        ("de", "Wohin fuhr Ida?", "place", "Wir waren in Bremen.", "Wir waren müde."),
        ("en", "Where did Ida go?", "place", "We went to Bremen.", "We went early."),
        ("fr", "Pourquoi Ida rit-elle ?", "reason", "Parce que c'est drôle.", "C'est drôle."),
        ("es", "¿Con quién baila Ida?", "person", "Bailo con Raúl.", "Bailo mucho."),
        ("it", "Quanto costa?", "number", "Costa 30 euro.", "Costa troppo."),
        ("pt", "Quantas cadeiras tem?", "number", "Tenho quarenta.", "Tenho muitas."),
        ("ru", "Где была Ида?", "place", "Мы были в Риге.", "Мы были рады."),
        ("zh", "怡达为什么笑？", "reason", "因为好玩。", "好玩。"),
        ("ja", "いくつありますか？", "number", "三つあります。", "あります。"),
    ],
)
def test_the_question_word_tells_the_type_of_the_answer(
    language: str, question: str, kind: str, statement: str, other: str
) -> None:
    assert kind in types_asked(fold(question), language)
    assert has_type(statement, kind, language)
    assert not has_type(other, kind, language)


def test_a_value_of_the_type_that_is_asked_for_comes_first() -> None:
    near, reason = "We got lost near Bremen.", "We got lost because of the fog."
    assert closest("Where did Ida drop the keys?", reason, near)[0] == near
    assert closest("Why did Ida drop the keys?", near, reason)[0] == reason


def test_a_topic_that_is_near_comes_before_one_that_is_not() -> None:
    near, other = "I get hives from penicillin.", "I play the cello."
    assert closest("Which medicine must Ida not be given?", other, near)[0] == near


def test_an_introduction_comes_last() -> None:
    introduction, other = "Hello, Ida here again.", "The ceiling leaks."
    assert closest("What did Ida paint?", introduction, other)[0] == other


def test_a_statement_is_shown_in_its_message() -> None:
    sentence = "Something got stolen."
    message = f"{sentence} I bought a scooter instead."
    assert closest("What did Ida ride after that?", sentence, messages={sentence: message}) == [
        message
    ]
    assert closest(
        "What did Ida ride after that?", sentence, messages={sentence: "Corrected."}
    ) == [sentence]


def test_mine_needs_the_sentence_before() -> None:
    assert begins_with_pronoun("mine, called Biscuit, came back wet")
    assert begins_with_pronoun("o meu, o Trovão, voltou cheio")
    assert begins_with_pronoun("meine heißt Gerda")
    assert not begins_with_pronoun("meine Frau heißt Gerda")


def test_a_day_and_month_in_figures_end_no_sentence_before_a_small_letter() -> None:
    text = "am 30.5. hab ich prüfung, drück mir die daumen"
    assert split(text, "de") == [text]
    assert split("Ich komme am 3.4. Dann gehe ich.", "de") == [
        "Ich komme am 3.4.",
        "Dann gehe ich.",
    ]


@pytest.mark.parametrize(
    ("language", "question", "introduction", "statement"),
    [
        (
            "fr",
            "Quand la sœur d'Ida se marie-t-elle ?",
            "Ma sœur Anna est là.",
            "Le mariage d'Anna est le 9 mai.",
        ),
        (
            "en",
            "When does Ida's sister marry?",
            "My sister Anna is here.",
            "Anna's wedding is on 9 May.",
        ),
        ("ru", "Когда свадьба у сестры Иды?", "Моя сестра Анна здесь.", "Свадьба у Анна 9 мая."),
        ("zh", "怡达的妹妹什么时候结婚？", "我妹妹安娜来了。", "安娜5月9号办婚礼。"),
    ],
)
def test_the_name_of_a_relative_stands_for_the_relative(
    language: str, question: str, introduction: str, statement: str
) -> None:
    query = Question(question, ["ida"], language)
    assert query.with_names_of([introduction, statement]).score(statement, language) >= ENOUGH
    assert query.with_names_of([statement]).score(statement, language) < ENOUGH


@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        ("en", "What is Ida's budget?", "We set aside £900 for the shed."),
        ("de", "Welches Budget hat Ida?", "Für den Schuppen haben wir 900 Euro."),
        ("zh", "怡达的预算是多少？", "棚子最多九百块。"),
    ],
)
def test_a_sum_tells_of_money(language: str, question: str, statement: str) -> None:
    assert Question(question, ["ida"], language).score(statement, language) >= ENOUGH


def test_the_weekend_is_a_time_if_something_else_is_asked() -> None:
    question = Question("Was verkauft Ida am Wochenende?", ["ida"], "de")
    assert "leisure" not in question.content.topics
    assert "leisure" in Question("Was macht Ida am Wochenende?", ["ida"], "de").content.topics


def test_a_single_answer_is_followed_by_its_message() -> None:
    statement = "I collect them."
    message = f"{statement} Old spoons, mostly."
    tools: Any = Talk(statement, messages={statement: message})
    findings = find(AnswerRequest("What does Ida collect?", "ida", [], tools=tools))
    assert findings.answers
    assert [piece.text for piece in findings.pieces] == [statement, message]


def test_an_answer_with_a_value_stands_alone() -> None:
    """Its message says no more of what is asked, and older values would mislead."""
    statement = "By the way, I moved to York last weekend."
    message = f"Thanks, it works now! {statement}"
    tools: Any = Talk(statement, "Hi, I'm Ida from Leeds.", messages={statement: message})
    findings = find(AnswerRequest("Where does Ida live?", "ida", [], tools=tools))
    assert findings.answers
    assert [piece.text for piece in findings.pieces] == [statement]


def test_a_request_that_tells_of_the_topic_is_the_closest_statement() -> None:
    address = "Please ship everything to my office, 12 Mill Lane, York."
    tools: Any = Talk("By the way, I moved to York last weekend.", address)
    findings = find(AnswerRequest("Where should parcels be sent?", "ida", [], tools=tools))
    assert next(piece.text for piece in findings.pieces) == address


def test_a_request_about_answers_is_unsuited_unless_the_question_is_about_them() -> None:
    request = "Be brief in your answers please."
    about_style, other = (
        Question(text, ["ida"]) for text in ("How long should answers be?", "Where does Ida live?")
    )
    assert about_style.content.topics
    assert closeness(about_style, request, "en", is_own=True) >= 0
    assert closeness(other, request, "en", is_own=True) < 0


@pytest.mark.parametrize("letters", [41, 20_000])
def test_a_word_that_is_longer_than_words_are_is_not_compared_by_parts(letters: int) -> None:
    word = "abcdefghij" * (letters // 10) + "k" * (letters % 10)
    assert nearest._part_in_common(word, word) == 0.0
    assert nearest._part_in_common(word[:40], word) == 1.0
