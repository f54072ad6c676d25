"""Pages of a listing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from memservice.spi.rows import Order

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page is wanted. `page` counts from 1; `reverse` turns the listing's own order round,
    ties included."""

    page: int = 1
    size: int = 50
    reverse: bool = False

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size

    def order(self, *fields: str, newest_first: bool = False) -> tuple[Order, ...]:
        """The listing's order by these fields and then by key, turned round if `reverse`."""
        descending = newest_first != self.reverse
        return tuple(Order(name, descending) for name in (*fields, "key"))


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: Sequence[T]
    total: int
    page: int
    size: int

    @property
    def pages(self) -> int:
        """0 when there is nothing."""
        return -(-self.total // self.size)


def read_page(paging: Paging, rows: Callable[[], list[T]], count: Callable[[], int]) -> Page[T]:
    """A page of `rows()`; `count()` is asked only where the rows alone do not tell the total."""
    items = rows()
    partial = len(items) < paging.size and (bool(items) or paging.page == 1)
    total = paging.offset + len(items) if partial else count()
    return Page(items, total, paging.page, paging.size)
