"""Writes log lines to a stream. Lines of requests are written several at a time."""

from __future__ import annotations

import logging
import threading
import time
from typing import TextIO

WRITE_SECONDS = 0.2
"""How long the line of a request waits for others. A system call for each line, before which all
threads of the process compete for Python's lock, would be 5 to 10 % of a cheap request."""
MAX_WAITING = 256
"""Lines that may wait."""


class LogWriter(logging.StreamHandler[TextIO]):
    """Writes the access line of a request within `WRITE_SECONDS`, and any other line at once, after
    those that wait. A process that is killed may lose the access lines of that time."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._last: logging.LogRecord | None = None
        """The record of the last line."""
        self._has_lines = threading.Event()
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(self.format(record) + self.terminator)
            self._last = record
            if not hasattr(record, "request") or len(self._lines) >= MAX_WAITING:
                self.flush()
            elif len(self._lines) == 1:
                self._write_later()
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write the lines that wait."""
        self.acquire()
        try:
            lines, self._lines = self._lines, []
            if lines:  # else the stream may be closed
                self.stream.write("".join(lines))
                super().flush()
        finally:
            self.release()

    def close(self) -> None:
        """Write the lines that wait: the stream may be closed after this."""
        self.flush()
        super().close()

    def _write_later(self) -> None:
        if self._thread is None or not self._thread.is_alive():  # a fork has no threads
            self._thread = threading.Thread(target=self._write, name="log_writer", daemon=True)
            self._thread.start()
        self._has_lines.set()

    def _write(self) -> None:
        while True:
            self._has_lines.wait()
            time.sleep(WRITE_SECONDS)
            self._has_lines.clear()
            try:
                self.flush()
            except Exception:  # as in `emit`
                if self._last is not None:
                    self.handleError(self._last)
