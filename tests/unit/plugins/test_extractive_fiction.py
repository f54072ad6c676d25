"""What a message tells of a story that it asks for is true of nobody."""

from __future__ import annotations

import pytest

from memservice_extractive.derive import judged
from memservice_extractive.fiction import invented


@pytest.mark.parametrize(
    "text",
    [
        "We are writing a silly crime story. Captain Bun lives in a mill and breeds eels.",
        "Schreib mir eine Gutenachtgeschichte. Ein Bär namens Otto wohnt in einer Mühle.",
        "Escríbeme un cuento corto: un pirata llamado Leo vive en la Luna y cría anguilas.",
        "On invente une histoire. Le roi Biscuit vit dans un moulin et élève des furets.",
        "Scrivi una favola. Una volpe di nome Zita abita in un mulino.",
        "Bora fazer uma historinha: um jacaré chamado Téo é dentista na Lua.",
        "Сочини сказку. Медведь Потап живёт на мельнице и разводит угрей.",
        "帮我给剧本开个头：有个叫阿丁的机器人，住在磨坊里，养了一条鲸鱼。",
        "童話を書いてください。くまのゴンは水車小屋に住んでいます。",
    ],
)
def test_sentences_of_a_story_are_not_kept(text: str) -> None:
    assert [sentence for sentence, judgement in judged(text) if judgement.keep] == []


def test_what_follows_a_story_about_the_speaker_is_kept() -> None:
    text = "Write a story for my son. A bear lives in a mill. I live in Bristol by the river."
    remaining = [sentence for sentence, judgement in judged(text) if judgement.keep]
    assert remaining == ["I live in Bristol by the river."]


def test_what_stands_before_a_story_is_not_part_of_it() -> None:
    sentences = ["Rome was hot.", "Write a poem about a bear.", "It lives in a mill."]
    assert invented(sentences, "en") == [False, True, True]
