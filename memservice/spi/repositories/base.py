"""Common parts of the repositories."""

from __future__ import annotations

from memservice.spi.rows import Order, Rows

CREATED = (Order("created_at"), Order("key"))
"""Oldest first, ties by key: the order of most listings."""

NEWEST = (Order("created_at", descending=True), Order("key", descending=True))


class Repository:
    def __init__(self, rows: Rows) -> None:
        self.rows = rows
