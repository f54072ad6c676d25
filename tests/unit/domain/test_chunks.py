"""Long texts are cut where they read best, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.text.chunks import chunks


def texts(text: str, size: int) -> list[str]:
    return [chunk.text for chunk in chunks(text, size)]


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("", 5, [""]),
        ("12345", 5, ["12345"]),
        ("123456", 5, ["12345", "6"]),
        ("12345678901", 5, ["12345", "67890", "1"]),
        ("ab cd ef", 6, ["ab cd ", "ef"]),
        ("ab cd. ef gh", 10, ["ab cd. ", "ef gh"]),
        ("a. b\nc. d e", 9, ["a. b\n", "c. d e"]),
        ("a\n\nb\nc. d e f", 12, ["a\n\n", "b\nc. d e f"]),
        ("a\r\n\r\nb\r\nc d e f g", 14, ["a\r\n\r\n", "b\r\nc d e f g"]),
        ("one.two three", 8, ["one.two ", "three"]),
        ("12345 ", 5, ["12345", " "]),
        ("你好。世界真大", 5, ["你好。", "世界真大"]),
        ("word\n", 4, ["word", "\n"]),
    ],
)
def test_a_text_is_cut_at_the_best_break(text: str, size: int, expected: list[str]) -> None:
    assert texts(text, size) == expected


def test_a_letter_keeps_its_marks() -> None:
    text = "ae\u0301" * 10
    assert all(not piece.startswith("\u0301") for piece in texts(text, 5))
    family = "👩\u200d👩\u200d👧" * 4
    assert texts(family, 7)[0] == "👩\u200d👩\u200d👧"


def test_endless_marks_do_not_stop_cutting() -> None:
    text = "a" + "\u0301" * 500
    assert "".join(texts(text, 100)) == text
    assert all(piece for piece in texts(text, 100))


@given(st.text(st.sampled_from("ab \n\r.。\u0301\u200d👩"), max_size=200), st.integers(1, 40))
def test_pieces_join_to_the_text_and_are_short_enough(text: str, size: int) -> None:
    pieces = list(chunks(text, size))
    assert "".join(chunk.text for chunk in pieces) == text
    assert all(len(chunk.text) <= size for chunk in pieces)
    assert all(chunk.text for chunk in pieces) or pieces[0].text == text == ""
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in pieces)
    assert [chunk.start for chunk in pieces[1:]] == [chunk.end for chunk in pieces[:-1]]
