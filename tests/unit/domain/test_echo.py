"""How much of one text is found again in another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.text.shingles import shingles_overlap


@pytest.mark.parametrize(
    ("a", "b", "overlap"),
    [
        ("Alice lives in Rome", "alice lives  in ROME!", 1.0),
        ("Alice lives in Rome", "As we know, Alice lives in Rome since May.", 1.0),
        ("As we know, Alice lives in Rome.", "Alice lives in Rome", 2 / 5),
        ("Alice lives in Paris", "Alice lives in Rome", 1 / 2),
        ("Rome in lives Alice", "Alice lives in Rome", 0.0),
        ("Alice lives", "Bob says Alice lives in Rome", 1.0),
        ("Alice", "Alice lives in Rome", 1.0),
        ("Alice", "Alicent lives in Rome", 0.0),
        ("", "Alice lives in Rome", 0.0),
        ("!?…", "Alice lives in Rome", 0.0),
        ("Alice lives in Rome", "", 0.0),
        ("我住在北京", "我住在北京。", 1.0),
        ("我住在北京", "我住在上海", 2 / 4),
        ("京", "我住在北京", 1.0),
        ("私は東京に住んでいます", "昨日:私は東京に住んでいます。", 1.0),
        ("ﾎﾟﾁ", "名前はポチです", 1.0),
        ("ฉันอยู่กรุงเทพ", "ฉันอยู่กรุงเทพ", 1.0),
        ("I use iPhone 在北京", "在北京 I use iPhone", 1.0),
        ("I use iPhone 在北京", "在上海 I use iPhone", 1 / 3),
        ("STRASSE am See dort", "straße am see dort", 1.0),
    ],
)
def test_the_overlap_of_examples(a: str, b: str, overlap: float) -> None:
    assert shingles_overlap(a, b) == pytest.approx(overlap)


@given(st.text(max_size=60), st.text(max_size=60))
def test_overlap_is_a_share_and_1_within_a_longer_text(a: str, b: str) -> None:
    assert 0.0 <= shingles_overlap(a, b) <= 1.0
    assert shingles_overlap(a, f"{b}\n{a}\n{b}") == shingles_overlap(a, a)
    assert shingles_overlap(a, a) in (0.0, 1.0)
