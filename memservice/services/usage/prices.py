"""Costs of model calls in money, by the operator's prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from memservice.spi.repositories import UsageTotal

MILLION = 1_000_000
Prices = Mapping[str, Mapping[str, float]]
"""LLM_PRICES."""


def price_of(prices: Prices, provider: str, model: str) -> Mapping[str, float] | None:
    """The prices of a model: by `transport/model`, by `model`, or by the longest matching
    pattern."""
    names = (f"{provider}/{model}", model)
    for name in names:
        if name in prices:
            return prices[name]
    patterns = [pattern for pattern in prices if any(fnmatchcase(name, pattern) for name in names)]
    return prices[max(patterns, key=len)] if patterns else None


def cost(prices: Prices, total: UsageTotal) -> float | None:
    """The cost in the currency of the prices; None for a model without a price. `total` is for one
    provider and model. Tokens from or into a cache cost the same as input, unless they have their
    own price."""
    price = price_of(prices, total.provider or "", total.model or "")
    if price is None:
        return None
    rate = price.get("input", 0.0)
    plain = max(0, total.input_tokens - total.cache_read_tokens - total.cache_write_tokens)
    amount = (
        plain * rate
        + total.cache_read_tokens * price.get("cache_read", rate)
        + total.cache_write_tokens * price.get("cache_write", rate)
        + total.output_tokens * price.get("output", 0.0)
    )
    return amount / MILLION


def unpriced(prices: Prices, totals: Iterable[UsageTotal]) -> list[str]:
    """Names of the models without a price that used tokens."""
    return sorted(
        {
            f"{total.provider}/{total.model}"
            for total in totals
            if total.input_tokens + total.output_tokens > 0
            and price_of(prices, total.provider or "", total.model or "") is None
        }
    )
