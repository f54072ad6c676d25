"""Pages of a listing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.spi.rows import Order, R, Rows
from memservice.spi.storage import Transaction

T = TypeVar("T")

LISTING_SIZE = 50
NEWEST_FIRST = (Order("key", descending=True),)


class Paging(Struct, frozen=True):
    """The requested page of a listing. `page` counts from 1; `reverse` reverses its order, ties
    included."""

    page: int = 1
    size: int = 50
    reverse: bool = False

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size

    def order(self, *fields: str, newest_first: bool = False) -> tuple[Order, ...]:
        """The listing's order by these fields and then by key, reversed if `reverse`."""
        descending = newest_first != self.reverse
        return tuple(Order(name, descending) for name in (*fields, "key"))

    def empty(self) -> Page[Any]:
        """The page of a listing without items."""
        return Page([], 0, self.page, self.size)


class Page(Struct, Generic[T], frozen=True):
    items: Sequence[T]
    total: int
    page: int
    size: int

    @property
    def pages(self) -> int:
        """Number of pages; 0 if there are no items."""
        return -(-self.total // self.size)


class Listable(Protocol[T]):
    """A repository: both methods begin with the same arguments, `page` also takes order, limit and
    offset."""

    def page(self, *args: Any, **kwargs: Any) -> list[T]: ...

    def count(self, *args: Any, **kwargs: Any) -> int: ...


def listing(
    repository: Listable[T], paging: Paging, *narrowing: Any, order: Sequence[Order] | None = None
) -> Page[T]:
    """A page of the rows of a repository that match `narrowing`: the key of a workspace, a
    condition, or both. Empty if one of them is None: the workspace does not exist."""
    if any(part is None for part in narrowing):
        return paging.empty()
    order = paging.order() if order is None else order
    return read_page(
        paging,
        lambda: repository.page(*narrowing, order, paging.size, paging.offset),
        lambda: repository.count(*narrowing),
    )


def records(rows: Rows, kind: type[R], condition: Condition, paging: Paging) -> Page[R]:
    """A page of the records of a kind that match, by key."""
    return read_page(
        paging,
        lambda: rows.page(kind, condition, paging.order(), paging.size, paging.offset),
        lambda: rows.count(kind, condition),
    )


def read_page(paging: Paging, rows: Callable[[], list[T]], count: Callable[[], int]) -> Page[T]:
    """A page of `rows()`. `count()` is called only if the rows are not enough to know the total."""
    items = rows()
    partial = len(items) < paging.size and (bool(items) or paging.page == 1)
    total = paging.offset + len(items) if partial else count()
    return Page(items, total, paging.page, paging.size)


class Listing(Struct, Generic[T], frozen=True):
    """A page that continues after a row, so its cost does not depend on the number of rows. It has
    no total."""

    items: Sequence[T]
    after: str | None = None
    """The uid of the last row, to request the next page. None: this is the last page."""


def page_after(
    tx: Transaction,
    record: type[Any],
    condition: Condition,
    after: str | None,
    limit: int = LISTING_SIZE,
) -> Listing[Any]:
    """Rows of a record type with uids, newest first. An `after` that does not exist, or no longer,
    starts from the beginning."""
    # No uid contains NUL, and some stores cannot search for it.
    named = None if after is None or "\0" in after else all_of(condition, equals(uid=after))
    start = None if named is None else tx.rows.get(record, named)
    if start is not None:
        condition = all_of(condition, Compare("key", "lt", start.key))
    rows = tx.rows.page(record, condition, NEWEST_FIRST, limit + 1)
    more = len(rows) > limit
    return Listing(rows[:limit], rows[limit - 1].uid if more else None)
