"""Token counts: exact, quick on any input, the same from several threads, and a clear sentence when
nothing can count."""

from __future__ import annotations

import builtins
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain import tokens
from memservice.domain.errors import ConfigurationError

REFERENCE = [
    ("", 0),
    ("hello world", 2),
    ("<|endoftext|>", 7),
    ("こんにちは世界", 2),
    ("café 🎉🎉", 6),
    ("a" * 1000, 125),
]
"""Counts of the vocabulary's own reference implementation."""


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_loaded", None)


@pytest.mark.parametrize(("text", "expected"), REFERENCE)
def test_counts_are_those_of_the_reference(text: str, expected: int) -> None:
    assert tokens.count(text) == expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_a_text_has_no_more_tokens_than_bytes(text: str) -> None:
    assert (1 if text else 0) <= tokens.count(text) <= len(text.encode())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=5))
def test_pieces_join_to_the_text_and_their_counts_add_up(parts: list[str]) -> None:
    text = " word, ".join(parts)
    original, tokens._PIECE = tokens._PIECE, 20  # pyrefly: ignore[bad-assignment]
    try:
        pieces = list(tokens._pieces(text))
    finally:
        tokens._PIECE = original
    assert "".join(pieces) == text
    if all(tokens._SAFE_CUT.match(before[-1] + after[0]) for before, after in pairwise(pieces)):
        assert sum(map(tokens.count, pieces)) == tokens.count(text)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "ab", " ", "\n", "!", "1", "世", "🎉", "word ", " a\n"])
def test_long_repetitions_are_counted_in_linear_time(unit: str) -> None:
    short, long = unit * (50_000 // len(unit)), unit * (1_000_000 // len(unit))
    tokens.count(short)
    began = time.process_time()
    counted = tokens.count(long)
    assert time.process_time() - began < 2.0
    assert counted == pytest.approx(20 * tokens.count(short), rel=0.01)


@pytest.mark.slow
def test_concurrent_threads_load_once_and_agree(
    unloaded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []

    def slow() -> Any:
        loads.append("x")
        time.sleep(0.05)
        return tokens._rs_bpe()

    monkeypatch.setattr(tokens, "_IMPLEMENTATIONS", (("slow", slow),))
    shuffled = random.Random(7)
    texts = ["".join(shuffled.choices("abc é世🎉 \n'", k=400)) for _ in range(200)]
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(tokens.count, texts))
    assert loads == ["x"]
    assert parallel == [tokens.count(text) for text in texts]


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        tokens.count("a\ud800b")


@pytest.mark.slow
def test_the_second_implementation_is_used_if_the_first_is_missing(
    unloaded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Encoding:
        def encode_ordinary(self, text: str) -> list[str]:
            assert len(text) <= tokens._PIECE
            return text.split()

    module = ModuleType("bpe_openai")
    module.__dict__["get_encoding"] = lambda name: Encoding()
    monkeypatch.setitem(sys.modules, "bpe_openai", module)
    monkeypatch.setitem(sys.modules, "rs_bpe", None)
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)
    assert tokens.count("word " * 100_000) == 100_000
    assert tokens.implementation() == "bpe-openai"
    assert tokens.counter_id() == tokens.COUNTER == "o200k_base"


def test_the_error_without_an_implementation_says_what_to_install(
    unloaded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] in ("rs_bpe", "bpe_openai"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigurationError, match="pip install rs-bpe"):
        tokens.count("x")
