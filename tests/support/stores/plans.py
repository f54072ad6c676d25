"""Which statements a store runs, and what their plans read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg

from memservice_postgres.connections import Driver


def trace(driver: Any, statements: list[str]) -> None:
    """Note every statement that the connection runs."""
    if not isinstance(driver, psycopg.Connection):
        driver.set_trace_callback(statements.append)
        return

    class Noting(psycopg.Cursor[Any]):
        def execute(self, query: Any, *values: Any, **options: Any) -> Any:
            statements.append(query.decode() if isinstance(query, bytes) else query)
            return super().execute(query, *values, **options)

    driver.cursor_factory = Noting
    if isinstance(driver, Driver):
        driver.reader.clear()


LARGE = ("messages", "conclusions", "tasks", "peers", "sessions", "members")


def scans(step: str) -> bool:
    """Does a step of a plan read a large table, or a whole index of one? An index of few rows says
    so in its name."""
    whole = re.match(rf"(SCAN|Seq Scan on) ({'|'.join(LARGE)})\b", step)
    few = ("_pending_", "_failed_", "_deleted_")
    return whole is not None and not any(name in step for name in few)


def plan_of_sqlite(driver: Any, sql: str) -> Iterator[str]:
    for *_, step in driver.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?")):
        yield step


def plan_of_postgres(driver: Any, sql: str) -> Iterator[str]:
    """Of the plan that is kept with the statement, for whatever values."""
    numbers = count(1)
    by_name: defaultdict[str, int] = defaultdict(lambda: next(numbers))

    def number(placeholder: re.Match[str]) -> str:
        name = placeholder[1]
        return f"${by_name[name] if name else next(numbers)}"

    numbered = re.sub(r"%(?:\((\w+)\))?s", number, sql).replace("%%", "%")
    lines = [
        line
        for (line,) in driver.execute(
            f"EXPLAIN (GENERIC_PLAN) {numbered}", prepare=False
        ).fetchall()
    ]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        step = line.strip().removeprefix("->  ")
        # An index that is read from end to end has no condition.
        whole = re.match(r"Index (?:Only )?Scan.* using (\w+) on (\w+)", step)
        yield (
            f"Seq Scan on {whole[2]} by {whole[1]}"
            if whole and "Index Cond" not in below and "LIMIT" not in sql
            else step
        )
