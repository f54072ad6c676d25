"""Chapter: the cost of model calls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from memservice.domain.records import Usage
from memservice.spi.repositories import UsageTotal
from memservice.spi.storage import Storage
from memservice.testing.storage.base import NOW, Chapter, Dataset

FIRST, SECOND, THIRD = "2024-05-17", "2024-05-18", "2024-05-19"


def _call(dataset: Dataset | None, day: str, tokens: int, **values: Any) -> Usage:
    defaults: dict[str, Any] = {
        "workspace_key": None if dataset is None else dataset.workspace.key,
        "day": day,
        "task": "summary.short",
        "provider": "scripted",
        "model": "small",
        "input_tokens": tokens,
        "output_tokens": tokens * 10,
        "cache_read_tokens": tokens * 100,
        "cache_write_tokens": 1,
        "reasoning_tokens": tokens * 3,
        "duration_ms": 2**31,
        "outcome": "success",
        "created_at": NOW + timedelta(hours=1),
    }
    return Usage(**(defaults | values))


def _fill(storage: Storage, dataset: Dataset) -> None:
    rows = [
        _call(dataset, FIRST, 1),
        _call(dataset, FIRST, 2, model="Large", outcome="error"),
        _call(dataset, SECOND, 4, task="dialectic.answer", model="Large", outcome="cancelled"),
        _call(dataset, THIRD, 8),
        _call(None, SECOND, 16),
    ]
    storage.write(lambda tx: tx.usage.add(rows))


def _sums(totals: list[UsageTotal], *names: str) -> list[tuple[Any, ...]]:
    return [
        (
            *(getattr(usage_total, name) for name in names),
            usage_total.calls,
            usage_total.input_tokens,
        )
        for usage_total in totals
    ]


class UsageChapter(Chapter):
    def test_usage_is_summed_over_everything(self, storage: Storage, dataset: Dataset) -> None:
        with storage.read() as tx:
            assert tx.usage.totals(()) == []
        _fill(storage, dataset)
        with storage.read() as tx:
            (usage_total,) = tx.usage.totals(())
        assert usage_total == UsageTotal(
            calls=5,
            failed=2,
            input_tokens=31,
            output_tokens=310,
            cache_read_tokens=3100,
            cache_write_tokens=5,
            reasoning_tokens=93,
            duration_ms=5 * 2**31,
        )
        assert type(usage_total.input_tokens) is int

    def test_usage_is_summed_by_fields_in_their_order(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        _fill(storage, dataset)
        key = dataset.workspace.key
        with storage.read() as tx:
            assert _sums(tx.usage.totals(("day",)), "day") == [
                (FIRST, 2, 3),
                (SECOND, 2, 20),
                (THIRD, 1, 8),
            ]
            assert _sums(tx.usage.totals(("workspace_key",)), "workspace_key") == [
                (None, 1, 16),
                (key, 4, 15),
            ]
            # Upper case before lower case, by code point.
            assert _sums(tx.usage.totals(("model", "task")), "model", "task") == [
                ("Large", "dialectic.answer", 1, 4),
                ("Large", "summary.short", 1, 2),
                ("small", "summary.short", 3, 25),
            ]
            assert {usage_total.day for usage_total in tx.usage.totals(("model",))} == {None}

    def test_usage_of_some_days_and_of_one_workspace(
        self, storage: Storage, dataset: Dataset
    ) -> None:
        _fill(storage, dataset)
        key = dataset.workspace.key
        with storage.read() as tx:
            assert _sums(tx.usage.totals(("day",), workspace_key=key, since=SECOND), "day") == [
                (SECOND, 1, 4),
                (THIRD, 1, 8),
            ]
            assert _sums(tx.usage.totals(("day",), until=FIRST), "day") == [(FIRST, 2, 3)]
            assert tx.usage.totals((), workspace_key=key + 1) == []
            assert tx.usage.tokens(key, FIRST) == 33
            assert tx.usage.tokens(key, "2024-05-20") == 0
