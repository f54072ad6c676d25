"""What calls cost in money."""

from __future__ import annotations

import pytest

from memservice.services.usage.prices import cost, price_of
from memservice.spi.repositories import UsageTotal

PRICES = {
    "m": {"input": 1.0, "output": 2.0},
    "other/m": {"input": 3.0},
    "m-*": {"input": 4.0},
    "m-large-*": {"input": 5.0},
}


@pytest.mark.parametrize(
    ("provider", "model", "rate"),
    [
        ("openai", "m", 1.0),
        ("other", "m", 3.0),
        ("openai", "m-2026", 4.0),
        ("openai", "m-large-2026", 5.0),
        ("openai", "x", None),
    ],
)
def test_the_closest_price_applies(provider: str, model: str, rate: float | None) -> None:
    price = price_of(PRICES, provider, model)
    assert (None if price is None else price["input"]) == rate


def test_tokens_of_a_cache_have_their_own_price() -> None:
    total = UsageTotal(
        provider="p",
        model="m",
        input_tokens=1_000_000,
        output_tokens=500_000,
        cache_read_tokens=600_000,
        cache_write_tokens=100_000,
    )
    assert cost(PRICES, total) == pytest.approx(2.0)
    prices = {"m": {"input": 1.0, "output": 2.0, "cache_read": 0.1, "cache_write": 2.0}}
    assert cost(prices, total) == pytest.approx(0.3 + 0.06 + 0.2 + 1.0)
    assert cost({}, total) is None
