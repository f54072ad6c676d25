"""Statements that are about what a question asks, and do not tell it."""

from __future__ import annotations

import pytest

from memservice_extractive.relevance import ENOUGH, Question


def answers(question: str, statement: str, language: str) -> bool:
    query = Question(question, ["ada"], language).with_names_of([statement])
    return query.score(statement, language) >= ENOUGH


@pytest.mark.parametrize(
    ("language", "question", "answer", "other"),
    [
        ("en", "When is Ada's birthday?", "My birthday is in May.", "I hated my birthday party."),
        ("de", "Wann hat Ada Geburtstag?", "Geburtstag ist im Mai.", "Der Geburtstag war laut."),
        ("pt", "Em que mês Ada nasceu?", "Nasci em maio.", "Nasci em Natal."),
        ("ru", "Когда у Ады день рождения?", "Мой день рождения в мае.", "Не люблю день рождения."),
        ("zh", "Ada的生日是几月几号？", "我的生日是5月3日。", "我不喜欢过生日。"),
        ("ja", "Adaさんの誕生日はいつですか？", "誕生日は5月です。", "誕生日は嫌いです。"),
    ],
)
def test_a_question_for_a_time_needs_a_time(
    language: str, question: str, answer: str, other: str
) -> None:
    assert answers(question, answer, language)
    assert not answers(question, other, language)


@pytest.mark.parametrize(
    ("language", "question", "answer", "other"),
    [
        ("en", "What is Ada's wife called?", "My wife Rose bakes.", "My wife bakes a lot."),
        ("de", "Wie heißt Adas Frau?", "Meine Frau Rosa backt.", "Meine Frau mag Kuchen."),
        ("es", "¿Cómo se llama la mujer de Ada?", "Mi mujer se llama Rosa.", "Mi mujer canta."),
        ("fr", "Comment s'appelle la femme d'Ada ?", "Rose, ma femme, chante.", "Ma femme chante."),
        ("it", "Come si chiama la moglie di Ada?", "Mia moglie è Rosa.", "Mia moglie canta bene."),
        ("zh", "Ada的妻子叫什么名字？", "我妻子叫李娜。", "我妻子很会做饭。"),
        ("ja", "Adaさんの夫の名前は何ですか？", "夫の慎吾と旅行しました。", "夫は料理が上手です。"),
    ],
)
def test_a_question_for_the_name_of_a_relative_needs_a_name(
    language: str, question: str, answer: str, other: str
) -> None:
    assert answers(question, answer, language)
    assert not answers(question, other, language)


@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        ("fr", "Quel âge a Ada ?", "J'habite ici depuis six ans."),
        ("es", "¿Cuántos años tiene Ada?", "Vivo aquí desde hace seis años."),
        ("it", "Quanti anni ha Ada?", "Vivo qui da dieci anni."),
    ],
)
def test_a_number_of_years_is_no_age_after_a_word_for_a_duration(
    language: str, question: str, statement: str
) -> None:
    assert not answers(question, statement, language)


@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        ("fr", "Quel âge a la fille d'Ada ?", "Ma fille vient d'avoir huit ans."),
        ("es", "¿Cuántos años tiene Ada?", "Hoy cumplo treinta y seis años."),
        ("ru", "Сколько лет Аде?", "Мне двадцать девять лет."),
        ("de", "Wie alt ist Ada?", "Ich bin achtundfünfzig."),
    ],
)
def test_numbers_can_be_words(language: str, question: str, statement: str) -> None:
    assert answers(question, statement, language)


@pytest.mark.parametrize(
    ("language", "question", "other"),
    [
        ("en", "What is Ada's nephew called?", "My aunt Rose lives in Oslo."),
        ("pt", "Como se chama a neta de Ada?", "Minha comadre Rosa mora em Natal."),
        ("ja", "Adaさんの夫の職業は何ですか？", "妹が農家に嫁ぎます。"),
        ("en", "Where did Ada study?", "My aunt sent me a book, she studied in Rome."),
        ("es", "¿Dónde estudió Ada?", "Mi cuñada me escribió, ella estudió en Roma."),
    ],
)
def test_statements_about_one_relative_answer_nothing_about_another_person(
    language: str, question: str, other: str
) -> None:
    assert not answers(question, other, language)


def test_a_relative_answers_only_what_is_told_of_it() -> None:
    assert not answers("Where did Ada meet her husband?", "My husband Tom hung the lights.", "en")
    assert not answers("Where does Ada's sister live?", "My sister-in-law lives in Oslo.", "en")


@pytest.mark.parametrize(
    ("language", "question", "of_speaker", "statement"),
    [
        ("de", "Wo wohnt Adas Schwester?", "Wo wohnt Ada?", "Meine Schwester wohnt in Oslo."),
        ("en", "Where does her sister live?", "Where does Ada live?", "My sister lives in Oslo."),
        ("es", "¿Dónde vive su hermana?", "¿Dónde vive Ada?", "Mi hermana vive en Oslo."),
        ("fr", "Où habite sa sœur ?", "Où habite Ada ?", "Ma sœur habite à Oslo."),
        ("it", "Dove abita sua sorella?", "Dove abita Ada?", "Mia sorella abita a Oslo."),
        ("pt", "Onde mora a irmã de Ada?", "Onde mora Ada?", "Minha irmã mora em Oslo."),
        ("ru", "Где живёт её сестра?", "Где живёт Ада?", "Моя сестра живёт в Осло."),
        ("zh", "她姐姐住在哪里？", "Ada住在哪里？", "我姐姐住在奥斯陆，我常去看她。"),
        ("ja", "妹さんはどこに住む？", "Adaはどこに住む？", "妹はオスロに住む。"),
    ],
)
def test_what_is_told_of_a_relative_answers_only_questions_about_the_relative(
    language: str, question: str, of_speaker: str, statement: str
) -> None:
    assert answers(question, statement, language)
    assert not answers(of_speaker, statement, language)


@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        ("de", "Was arbeitet ihr Bruder?", "Mein Bruder ist Koch."),
        ("es", "¿En qué trabaja su hermana?", "Mi hermana es policía."),
        ("fr", "Que fait son frère dans la vie ?", "Mon frère est cuisinier."),
        ("it", "Che lavoro fa sua sorella?", "Mia sorella è meccanica."),
        ("pt", "Qual é a profissão da irmã dela?", "Minha irmã é policial."),
    ],
)
def test_professions_are_read_in_the_third_person(
    language: str, question: str, statement: str
) -> None:
    assert answers(question, statement, language)


def test_names_without_a_number_tell_how_many_there_are() -> None:
    assert answers("How many sisters does Ada have?", "My sisters are Ann and Joy.", "en")
