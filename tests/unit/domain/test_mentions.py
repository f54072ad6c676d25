"""Mentions of a name in texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.text.mentions import Mentions


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (["Ann"], "Ann, ANN and ann's cat", "[erased], [erased] and [erased]'s cat"),
        (["Ann"], "Anna, Joann, ann_1 and ann2", "Anna, Joann, ann_1 and ann2"),
        (["Ann Lee"], "Ann Lee met ann\n lee, not Ann", "[erased] met [erased], not Ann"),
        (["Ann", "Ann Lee"], "Ann Lee and Ann", "[erased] and [erased]"),
        (["a.b"], "a.b, a+b", "[erased], a+b"),
        (["José"], "JOSÉ and Jose\u0301", "[erased] and [erased]"),
        (["Jose"], "Jose\u0301 is not Jose", "Jose\u0301 is not [erased]"),
        (["Çelik"], "çelik", "[erased]"),
        (["小明"], "我喜欢小明的猫", "我喜欢[erased]的猫"),
        (["小明", "b"], "小明b", "[erased][erased]"),
        (["Ann"], "[ERASED] [erased]", "[ERASED] [erased]"),
        (["erased"], "[erased] was erased", "[erased] was [erased]"),
        (["Dr. No"], "Dr. No. Dr. Nobody", "[erased]. Dr. Nobody"),
        (["", "  "], "no name", "no name"),
    ],
)
def test_whole_names_are_replaced_in_any_case(names: list[str], text: str, expected: str) -> None:
    mentions = Mentions(names)
    assert mentions.replaced(text) == expected
    assert mentions.are_in(text) == (text != expected)
    assert not mentions.are_in(expected)


@given(st.lists(st.text(max_size=6), max_size=3), st.text())
def test_nothing_is_left_after_a_replacement(names: list[str], text: str) -> None:
    mentions = Mentions(names)
    replaced = mentions.replaced(text)
    assert mentions.replaced(replaced) == replaced
    assert not mentions.are_in(replaced)


@pytest.mark.slow
@given(st.from_regex(r"[a-zé]{2,6}( [a-z]{2,6})?", fullmatch=True))
def test_each_normal_form_is_found(name: str) -> None:
    mentions = Mentions([name])
    for form in ("NFC", "NFD"):
        assert mentions.replaced(f"({unicodedata.normalize(form, name)})") == "([erased])"
