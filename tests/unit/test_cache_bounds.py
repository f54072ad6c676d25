"""Caches whose keys are texts of callers keep no long ones."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain import time_zones
from memservice.domain.filters.ast import KeyOneOf
from memservice.domain.text import relatives, stems
from memservice.domain.text.word_caches import LONGEST
from memservice_sqlite.functions import _Leaves, encode_leaf


def size(function: Any) -> int:
    return int(function.cache_info().currsize)


@pytest.mark.parametrize(
    ("function", "context"), [(stems.stem, "de"), (relatives._relatives, ("de",))]
)
def test_long_words_are_not_kept(function: Any, context: object) -> None:
    function.cache_clear()
    word = "katzen" * LONGEST
    assert function(word, context) == function(word, context)
    assert size(function) == 0
    assert function("katzen", context) == function("katzen", context)
    assert size(function) == 1


def test_long_names_of_time_zones_are_not_kept() -> None:
    before = size(time_zones._time_zone)
    assert time_zones.time_zone("A" * 60_000) is None
    assert size(time_zones._time_zone) == before


def test_operands_of_filters_are_kept_up_to_a_number_of_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_Leaves, "MAX_CHARACTERS", 1_000)
    monkeypatch.setattr(_Leaves, "MAX_LEAVES", 5)
    leaves = _Leaves()
    for number in range(20):
        encoded = encode_leaf(KeyOneOf("value", f"k{number}", ("a" * 290,)))
        assert leaves(encoded) == leaves(encoded) == KeyOneOf("value", f"k{number}", ("a" * 290,))
        assert leaves.characters <= 1_000
    for number in range(20):
        leaves(encode_leaf(KeyOneOf("value", f"k{number}", ("a",))))
        assert len(leaves._leaves) <= 5
