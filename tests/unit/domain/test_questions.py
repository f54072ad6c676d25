"""Whether a message ends with a question."""

from __future__ import annotations

import pytest

from memservice.domain.text.questions import is_question


@pytest.mark.parametrize(
    "text",
    [
        "Have you been there before?",
        "I went to Ghent. And you? :)",
        'She asked: "Where is it?"',
        "Wo wohnst du?! ",
        "¿Dónde vives?",
        "あなたはどこに住んでいますか。",
        "你吃了吗",
        "你住在哪里？",
        "أين تسكن؟",
        f"{'word ' * 200}and you?",
    ],
)
def test_a_text_that_ends_with_a_question(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Never.",
        "Really? I did not know that.",
        "return x;",
        "我住在北京。",
        f"Why? {'a' * 300}",
    ],
)
def test_a_text_that_ends_with_something_else(text: str) -> None:
    assert not is_question(text)
