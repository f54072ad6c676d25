"""Requests about all answers, in any form."""

from __future__ import annotations

import pytest

from memservice_extractive.language import detect
from memservice_extractive.lasting_requests import lasts
from memservice_extractive.worth import judge

LASTING = [
    "Could you stop using emojis?",
    "Can you keep everything you write me under a hundred words?",
    "From now on, metric only.",
    "When you answer me, use simple words.",
    "Kannst du mir künftig in kurzen Sätzen antworten?",
    "Ich hätte gern, dass du mich duzt.",
    "¿Puedes escribirme siempre sin tablas?",
    "Quand tu me réponds, évite le jargon.",
    "Mi puoi scrivere sempre con frasi brevi, per favore?",
    "Pode me responder sempre em poucas linhas?",
    "Больше никаких таблиц, пожалуйста.",
    "能不能每次都用简体字回复我？",
    "これからは短めに返してくれると助かる。",
]
OTHERS = [
    "Can you write me a short poem?",
    "Could you explain to me in simple words what a mortgage is?",
    "I always write in English at work.",
    "My grandmother always writes me long letters.",
    "Kannst du mir eine kurze Liste schreiben?",
    "Ich schreibe immer lange Listen.",
    "Siempre escribo en inglés en el trabajo.",
    "Je fais toujours des listes courtes.",
    "Mio padre parla sempre in dialetto con me.",
    "Я всегда пишу длинные письма.",
    "妈妈总是给我写很长的信。",
    "母はいつも長い手紙を書いてくれる。",
]


@pytest.mark.parametrize("sentence", LASTING)
def test_a_request_about_all_answers_is_an_instruction(sentence: str) -> None:
    language = detect(sentence)
    assert lasts(sentence, language)
    assert judge(sentence, language).kind == "instruction"


@pytest.mark.parametrize("sentence", OTHERS)
def test_a_request_for_one_text_and_a_habit_of_the_speaker_are_none(sentence: str) -> None:
    assert not lasts(sentence, detect(sentence))
