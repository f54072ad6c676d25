"""Remains of erased rows in the unallocated space of pages.

`secure_delete` overwrites the cell of an erased row. But when SQLite moves cells to another page,
to balance a tree, it leaves their old bytes in the space between the list of cells and the cells.
So a copy of a row can be there when the row is erased. No statement overwrites these bytes.
Therefore this module does it in the file itself, where SQLite never reads: page by page, while a
write transaction keeps other writers away and the log is empty. That transaction ends with a change
of the first page, so that every connection drops its copies of pages, which have the same bytes.

The format is documented at https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from msgspec import Struct

SCANNED_PAGES = 1_000
"""Pages (4 MB) that one step reads, while other writers wait."""
CLEANED_PAGES = 200
"""Pages that one step cleans at most, while other writers wait."""

_HEADER_SIZE = 100
"""Bytes before the tree on the first page."""
_LEAVES, _INTERIORS = (10, 13), (2, 5)
"""First byte of a page of a tree."""
_TREES = (1, 5)
"""Types of page in the pointer map that belong to a tree: a root, another page."""
_ENTRY_SIZE = 5
_LOCK_BYTE = 2**30

Span = tuple[int, int]
"""First byte in a page, and the one after the last."""


class UnknownFormat(Exception):
    """The file has no pointer map (it was created without incremental vacuum), or bytes at the end
    of each page that belong to an extension."""


class Layout(Struct, frozen=True):
    page_size: int
    pages: int

    @classmethod
    def read(cls, file: int) -> Layout:
        """Raises UnknownFormat."""
        header = os.pread(file, _HEADER_SIZE, 0)
        if len(header) < _HEADER_SIZE:
            raise UnknownFormat
        (size,) = struct.unpack_from(">H", header, 16)
        page_size = 65_536 if size == 1 else size
        has_map = any(header[52:56])
        if not has_map or header[20] or page_size < 512:
            raise UnknownFormat
        return cls(page_size, os.fstat(file).st_size // page_size)

    def map_page(self, number: int) -> int:
        """The page of the pointer map that describes a page."""
        per_map = self.page_size // _ENTRY_SIZE + 1
        page = (number - 2) // per_map * per_map + 2
        return page + 1 if page == self.lock_page else page

    @property
    def lock_page(self) -> int:
        """It has no content."""
        return _LOCK_BYTE // self.page_size + 1

    def is_of_tree(self, file: int, number: int) -> bool:
        if number == 1:
            return True
        page = self.map_page(number)
        if number in (page, self.lock_page):
            return False
        offset = (page - 1) * self.page_size + (number - page - 1) * _ENTRY_SIZE
        entry = os.pread(file, 1, offset)
        return bool(entry) and entry[0] in _TREES


def unallocated(page: bytes, start: int = 0) -> list[Span]:
    """The spans of a page of a tree that have no content. `start`: where its header is. Empty for
    other pages."""
    kind = page[start]
    if kind not in _LEAVES and kind not in _INTERIORS:
        return []
    block, cells, content = struct.unpack_from(">HHH", page, start + 1)
    first = start + (8 if kind in _LEAVES else 12) + 2 * cells
    content = content or 65_536
    if not first <= content <= len(page):
        return []
    spans = [(first, content)]
    # Free blocks, in rising order: the next one, and the size, both within the block.
    while block:
        if not content <= block <= len(page) - 4:
            return []
        following, size = struct.unpack_from(">HH", page, block)
        if size < 4 or block + size > len(page) or (following and following < block + size):
            return []
        spans.append((block + 4, block + size))
        block = following
    return spans


def dirty(page: bytes, start: int = 0) -> list[Span]:
    """The unallocated spans that have any bytes."""
    return [
        (first, last)
        for first, last in unallocated(page, start)
        if page.count(0, first, last) < last - first
    ]


class Cleaning:
    """Cleans all pages of a file, step by step. Safe to begin again at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next = 1

    def step(self, connect: Callable[[], sqlite3.Connection]) -> bool:
        """Read some pages, and clean those that need it. True if there are more. `connect` opens a
        connection: call it only while no other process or thread has the turn to write. Without an
        empty log nothing is done, and there is more."""
        file = _file(self._path)
        try:
            layout = Layout.read(file)
        except UnknownFormat:
            return False
        last = min(self._next + SCANNED_PAGES, layout.pages + 1)
        numbers: list[int] = []
        number = self._next
        while number < last and len(numbers) < CLEANED_PAGES:
            if _spans(file, layout, number):
                numbers.append(number)
            number += 1
        if numbers and not self._clean(file, layout, numbers, connect):
            return True
        self._next = number
        return number <= layout.pages

    def _clean(
        self,
        file: int,
        layout: Layout,
        numbers: list[int],
        connect: Callable[[], sqlite3.Connection],
    ) -> bool:
        """False if the log is not empty: pages in it are newer than those in the file."""
        with closing(connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if self._log_size():
                    return False
                for number in numbers:
                    offset = (number - 1) * layout.page_size
                    for first, last in _spans(file, layout, number):
                        os.pwrite(file, bytes(last - first), offset + first)
                os.fsync(file)
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                connection.execute(f"PRAGMA user_version={int(version)}")
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        return True

    def _log_size(self) -> int:
        with suppress(FileNotFoundError):
            return self._path.with_name(f"{self._path.name}-wal").stat().st_size
        return 0


def _spans(file: int, layout: Layout, number: int) -> list[Span]:
    """The dirty spans of a page."""
    page = os.pread(file, layout.page_size, (number - 1) * layout.page_size)
    start = _HEADER_SIZE if number == 1 else 0
    if len(page) < layout.page_size:
        return []
    spans = dirty(page, start)
    return spans if spans and layout.is_of_tree(file, number) else []


_files: dict[tuple[int, int], int] = {}
"""By device and inode, a descriptor of each file."""
_opening = threading.Lock()


def _file(path: Path) -> int:
    """A descriptor of the file. It is never closed: closing any descriptor of a file would release
    the locks that SQLite holds on it in this process."""
    status = path.stat()
    identity = (status.st_dev, status.st_ino)
    with _opening:
        if identity not in _files:
            _files[identity] = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        return _files[identity]


def dirty_pages(path: Path) -> Iterator[int]:
    """The pages with remains, of a file that nobody writes. Without a pointer map there are
    none."""
    file = _file(path)
    with suppress(UnknownFormat):
        layout = Layout.read(file)
        yield from (n for n in range(1, layout.pages + 1) if _spans(file, layout, n))
