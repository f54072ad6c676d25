"""Requests that are worth remembering, and those that are not."""

from __future__ import annotations

import pytest

from memservice_extractive.language import detect
from memservice_extractive.worth import judge


@pytest.mark.parametrize(
    "sentence",
    [
        "Be concise.",
        "Use metric units.",
        "I'd like you to answer in French.",
        "Explain things as if I were five.",
        "Please send my orders to 5 Oak Street.",
        "Ship everything to my office.",
        "Fass dich kurz.",
        "Bitte keine Emojis.",
        "Schick alles an mein Büro, Mühlgasse 12.",
        "Sé breve.",
        "Evita los tecnicismos.",
        "Sois bref.",
        "Pas d'emojis, merci.",
        "Tutoie-moi.",
        "Diamoci del tu.",
        "Spedisci gli ordini al mio ufficio, via Roma 12.",
        "Responda em português.",
        "Evite jargões.",
        "Отвечай коротко.",
        "Пиши без смайликов.",
        "不要用表情符号。",
        "请用中文回答我。",
        "短く答えてください。",
        "荷物は会社に送ってください。",
        "Just one thing: answer me without jargon.",
        "Vornamen sind in Ordnung, aber erklär mir die Sachen ohne Fachbegriffe.",
        "Una cosa sola: scrivimi con parole semplici.",
        "Отвечай мне, пожалуйста, покороче.",
    ],
)
def test_a_request_about_all_answers_or_deliveries_is_an_instruction(sentence: str) -> None:
    assert judge(sentence, detect(sentence)).kind == "instruction"


@pytest.mark.parametrize(
    "sentence",
    [
        "Write an email to my boss.",
        "Send the report to Bob.",
        "Explain quantum physics.",
        "Use the second option.",
        "Keep going.",
        "Schreib mir eine Mail an meinen Chef.",
        "Dame una receta.",
        "Donne-moi une recette.",
        "Spiegami che cosa è la fotosintesi.",
        "Me dê uma receita.",
        "Объясни фотосинтез.",
        "解释一下光合作用。",
        "レシピを教えてください。",
    ],
)
def test_a_request_for_one_answer_is_not_kept(sentence: str) -> None:
    assert not judge(sentence, detect(sentence)).keep


@pytest.mark.parametrize(
    "sentence",
    [
        "Write a story about a girl who lives in Rome.",
        "Erfinde bitte eine Geschichte, in der ein Pirat einen Papagei verliert.",
        "Escribe un cuento sobre un pulpo que vive en Cádiz.",
        "Invente un poème sur un chat qui vit à Toulouse.",
        "Scrivi una favola su una volpe che vende ombrelli a Bari.",
        "Crie uma história sobre um robô que mora em Lisboa.",
        "Сочини сказку про ежа, который живёт на Марсе.",
        "写一个故事，主角是一只企鹅。",
        "月に住むうさぎの物語を書いてください。",
    ],
)
def test_what_a_story_should_be_about_is_not_kept(sentence: str) -> None:
    assert not judge(sentence, detect(sentence)).keep


@pytest.mark.parametrize(
    "sentence",
    [
        "Write to me at ada@example.org.",
        "Schreib mir an ada@example.org.",
        "Mándame los avisos al 600 123 987.",
        "Scrivimi pure a ada@example.org per le prenotazioni.",
        "Звони мне по номеру 8 900 555 01 77.",
    ],
)
def test_where_the_speaker_can_be_reached_is_kept(sentence: str) -> None:
    assert judge(sentence, detect(sentence)).keep
