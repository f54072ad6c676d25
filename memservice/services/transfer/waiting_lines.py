"""Lines of a file that wait for later ones, in a temporary file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice

from memservice.services.private_files import temporary
from memservice.services.transfer.lines import Line, format_line, parse_line

BATCH_SIZE = 500
Batch = tuple[str, list[Line]]
"""Lines of one kind."""


class WaitingLines:
    def __init__(self, files: ExitStack) -> None:
        """The temporary file is removed with `files`."""
        self._file = files.enter_context(temporary())

    def add(self, lines: Iterable[Line]) -> None:
        self._file.writelines(map(format_line, lines))

    def batches(self) -> Iterator[list[Line]]:
        """The lines, in their order. Do not add others meanwhile."""
        self._file.seek(0)
        rows = (parse_line(data, 0) for data in self._file)
        while batch := list(islice(rows, BATCH_SIZE)):
            yield batch

    def taken(self) -> Iterator[list[Line]]:
        """The same; then none are waiting."""
        yield from self.batches()
        self._file.seek(0)
        self._file.truncate()
