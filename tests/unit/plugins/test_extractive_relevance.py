"""Which statements answer a question."""

from __future__ import annotations

import pytest

from memservice_extractive.relevance import ENOUGH, Question
from memservice_extractive.subjects import topics_told


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "question", "acting", "own"),
    [
        ("de", "Was ist Ada von Beruf?", "Der Arzt hat mir Tee verordnet.", "Ich bin Ärztin."),
        ("en", "What does Ada do for a living?", "The doctor gave me tea.", "I'm a doctor."),
        ("es", "¿A qué se dedica Ada?", "La arquitecta llamó ayer.", "Soy arquitecta."),
        ("fr", "Quel est le métier d'Ada ?", "Le boulanger a fermé.", "Je suis boulangère."),
        ("it", "Che lavoro fa Ada?", "L'idraulico viene domani.", "Faccio l'idraulica."),
        ("pt", "Qual é a profissão da Ada?", "A dentista ligou.", "Sou dentista."),
        ("ru", "Кем работает Ада?", "Врач назначил мне чай.", "Я врач."),
        ("zh", "艾达做什么工作？", "医生让我多喝水。", "我是医生。"),
    ],
)
def test_a_profession_of_somebody_who_acts_is_not_that_of_the_speaker(
    language: str, question: str, acting: str, own: str
) -> None:
    assert score(question, own, language) >= ENOUGH
    assert score(question, acting, language) < ENOUGH


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        ("de", "Wo macht die Familie Urlaub?", "Wir haben ein Ferienhaus an der Mosel gemietet."),
        ("en", "Which pets does the family have?", "We have two goldfish."),
        ("es", "¿Qué mascotas tiene la familia?", "Tenemos dos gatos."),
        ("fr", "Où la famille part-elle en vacances ?", "On a loué un gîte en Ardèche."),
        ("it", "Dove va in vacanza la famiglia?", "Abbiamo prenotato un campeggio in Umbria."),
        ("pt", "Que animais a família tem?", "Temos dois gatos."),
        ("zh", "一家人养了什么宠物？", "我们养了两只猫。"),
    ],
)
def test_the_family_is_the_speaker_with_its_own(
    language: str, question: str, statement: str
) -> None:
    assert score(question, statement, language) >= ENOUGH


def test_a_question_for_the_family_alone_is_about_relatives() -> None:
    assert score("Who belongs to the family?", "I have two sisters, Jo and Mia.", "en") < ENOUGH
    assert "relatives" in Question("Tell me about the family.", ["ada"], "en").content.topics


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        (
            "de",
            "Welche Schule besucht Adas Sohn?",
            "Mein Sohn ist aufs Goethe-Gymnasium gewechselt.",
        ),
        ("en", "Which school does Ada's son go to?", "My son started at Oakfield Primary."),
        ("es", "¿A qué colegio va la hija de Ada?", "Mi hija empezó en el colegio Cervantes."),
        ("fr", "Dans quelle école est le fils d'Ada ?", "Mon fils est à l'école Jules-Verne."),
        ("it", "Che scuola fa il figlio di Ada?", "Mio figlio va al liceo Volta."),
        ("pt", "Em que escola estuda o filho da Ada?", "Meu filho entrou no Colégio Central."),
        ("ru", "В какой школе учится сын Ады?", "Мой сын ходит в пятую гимназию."),
        ("zh", "她儿子在哪个学校？", "我儿子转到了育才小学。"),
        ("ja", "エイダさんの息子さんの学校はどこですか？", "息子は緑ヶ丘小学校に通っています。"),
    ],
)
def test_the_school_of_a_child_is_told_by_the_kind_of_school(
    language: str, question: str, statement: str
) -> None:
    assert score(question, statement, language) >= ENOUGH


def test_a_school_does_not_answer_a_question_for_a_university() -> None:
    statement = "Our school has a new roof."
    assert score("At which university did Ada study?", statement, "en") < ENOUGH


@pytest.mark.parametrize(
    ("language", "question", "statement"),
    [
        ("de", "Wohin sollen Adas Briefe?", "Am besten in den Lindenweg 7."),
        ("en", "Where should Ada's post go?", "Best to 12 Oak Tree Road, somebody is in."),
        ("es", "¿A dónde se envían las cartas?", "Mejor al apartado de correos 31."),
        ("fr", "Où envoyer le courrier d'Ada ?", "Plutôt au 4, rue des Lilas."),
        ("it", "Dove si manda la posta di Ada?", "Meglio in via Garibaldi 9."),
        ("pt", "Para onde vão as cartas da Ada?", "Melhor na rua das Flores 8."),
        ("ru", "Куда отправлять письма Ады?", "Лучше на улицу Мира, дом 5."),
        ("zh", "艾达的包裹寄到哪里？", "最好是人民路88号。"),
    ],
)
def test_an_address_with_a_street_tells_where_to_send_things(
    language: str, question: str, statement: str
) -> None:
    assert "delivery" in Question(question, ["ada"], language).content.topics
    assert topics_told(statement, language, frozenset({"delivery"}))


@pytest.mark.parametrize(
    ("language", "statement", "questions"),
    [
        (
            "de",
            "Bitte schickt alles in mein Büro, Mühlgasse 12.",
            "Wohin sollen Pakete geschickt werden?|Wie lautet Adas Lieferadresse?"
            "|Wohin soll ich das Paket senden?",
        ),
        (
            "en",
            "Please ship everything to my office, 12 Mill Lane, York.",
            "Where should parcels be sent?|What is Ada's delivery address?"
            "|Where do I send the parcel?|What's the shipping address?",
        ),
        (
            "es",
            "Por favor, envíen todo a mi oficina, calle Mayor 3.",
            "¿Adónde hay que enviar los paquetes?|¿Cuál es la dirección de entrega de Ada?"
            "|¿A qué dirección se envían los pedidos?",
        ),
        (
            "fr",
            "Merci de tout envoyer à mon bureau, 3 rue Verte.",
            "Où faut-il envoyer les colis ?|Quelle est l'adresse de livraison d'Ada ?",
        ),
        (
            "it",
            "Per favore spedite tutto in ufficio, via Roma 3.",
            "Dove vanno spediti i pacchi?|Qual è l'indirizzo di consegna di Ada?",
        ),
        (
            "ja",
            "荷物は全部会社に送ってください。",
            "荷物はどこに送ればいいですか？|配送先はどこですか？",
        ),
        (
            "pt",
            "Por favor, mande tudo para o meu escritório, rua Verde 3.",
            "Para onde devem ser enviadas as encomendas?|Qual é o endereço de entrega da Ada?",
        ),
        (
            "ru",
            "Пожалуйста, присылайте всё в офис, улица Мира 3.",
            "Куда отправлять посылки?|Какой адрес доставки?",
        ),
        ("zh", "请把所有东西寄到我办公室。", "包裹寄到哪里？|收货地址是什么？"),
    ],
)
def test_a_request_where_to_send_things_answers_where_they_go(
    language: str, statement: str, questions: str
) -> None:
    for question in questions.split("|"):
        assert score(question, statement, language) >= ENOUGH, question


def test_a_home_is_no_address_for_deliveries() -> None:
    assert score("What is Ada's delivery address?", "I live in Leeds.", "en") < ENOUGH
    assert score("What is Ada's address?", "I live in Leeds.", "en") >= ENOUGH


def test_a_delivery_can_be_a_deadline() -> None:
    question = Question("¿Cuándo es la entrega del informe?", ["ada"], "es")
    assert "deadline" in question.content.topics


def test_a_statement_with_the_time_that_is_asked_for_comes_before_one_without() -> None:
    question = "When does the new sofa arrive?"
    with_day = score(question, "The courier moved the delivery to 3 June.", "en")
    assert with_day > score(question, "The courier moved the delivery again.", "en")


def test_a_spanish_pronoun_is_no_tea() -> None:
    assert score("¿Qué bebe Ada?", "Ya te dije que me quedo en casa.", "es") < ENOUGH
