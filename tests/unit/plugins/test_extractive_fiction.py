"""What a message tells of a story that it asks for is true of nobody."""

from __future__ import annotations

import pytest

from memservice_extractive.derive import judged
from memservice_extractive.fiction import invented


@pytest.mark.parametrize(
    "text",
    [
        "Write us a silly crime story. Captain Bun lives in a mill and breeds eels.",
        "Schreib mir eine Gutenachtgeschichte. Ein Bär namens Otto wohnt in einer Mühle.",
        "Escríbeme un cuento corto: un pirata llamado Leo vive en la Luna y cría anguilas.",
        "Invente une histoire. Le roi Biscuit vit dans un moulin et élève des furets.",
        "Scrivi una favola. Una volpe di nome Zita abita in un mulino.",
        "Faz uma historinha: um jacaré chamado Téo é dentista na Lua.",
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


@pytest.mark.parametrize(
    ("own", "story"),
    [
        ("Tom and I are writing a crime story.", "Captain Bun breeds eels in a mill."),
        ("Leo y yo estamos escribiendo un cuento.", "Un pirata cría anguilas en la Luna."),
    ],
)
def test_who_tells_a_story_is_told_and_the_story_is_not(own: str, story: str) -> None:
    remaining = [sentence for sentence, judgement in judged(f"{own} {story}") if judgement.keep]
    assert remaining == [own]


@pytest.mark.parametrize(
    "sentence",
    [
        "My kids always make a scene at the dentist.",
        "Minha irmã faz roteiro para a televisão.",
        "I asked my brother in Leeds to write a poem.",
    ],
)
def test_what_relatives_do_is_no_request_for_a_story(sentence: str) -> None:
    assert [text for text, judgement in judged(sentence) if judgement.keep] == [sentence]
