"""Which lists contain which items: short lists of texts and integers are looked for in SQL, all
others by the reference evaluator. Add a list or an item for a value that SQLite may compare
differently."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

from memservice.domain.filters.ast import Contains, Not
from memservice.domain.filters.evaluate import matches
from memservice.domain.records import Conclusion
from memservice.testing.storage.base import populate
from memservice_sqlite import json_conditions
from support.stores.stores import migrated_on

STORED: tuple[Any, ...] = (
    *(None, 1, "1", "a", True, {"a": 1}, [], {}),
    *([1], [1.0], [True], ["1"], ["true"], ["a"], ["A"], [None], ["null"], [""]),
    *(["[1]"], [[1]], ["{}"], [{}], [2**53], [0.5], [-1, "é"]),
    *([1, "a"], [True, "a"], ["1", "a", 2], ["a", 2, 1, None], ["1", 2.0, "a", "b"]),
)
ITEMS = (1, 2, -1, "1", "a", "true", "null", "", "[1]", "{}", "é", True, None, 0.5, 2**53)


def test_a_list_contains_the_same_items_as_the_reference_evaluator_says(tmp_path: Path) -> None:
    longest = json_conditions._FEW + 1
    operands = [
        list(items) for length in range(longest + 1) for items in combinations(ITEMS[:6], length)
    ] + [[item] for item in ITEMS]
    with migrated_on("sqlite", tmp_path) as storage:
        dataset = storage.write(lambda tx: populate(tx, "w"))
        rows = storage.write(
            lambda tx: tx.conclusions.put(
                [
                    dataset.conclusion(number, internal={"key": value})
                    for number, value in enumerate(STORED)
                ]
            )
        )
        for items in operands:
            leaf = Contains("internal", {"key": items})
            for condition in (leaf, Not(leaf)):
                with storage.read() as tx:
                    got = [row.internal for row in tx.rows.page(Conclusion, condition)]
                assert got == [row.internal for row in rows if matches(row, condition)], condition
