"""Delivery as lines of JSON: the endpoint `jsonl:NAME` is the file NAME.jsonl in the operator's
directory."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Mapping
from io import FileIO
from pathlib import Path

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import Outcome

_NAME = re.compile(r"jsonl:([A-Za-z0-9_-]{1,100})")
LOC = ("url",)


class JsonLinesTransport:
    """Writes one line per event, with its headers and body. Lines of several processes do not mix:
    each is one write to a file opened for appending."""

    def __init__(self, directory: str | None) -> None:
        self._directory = None if directory is None else Path(directory)
        self._lock = threading.Lock()

    def check(self, url: str) -> None:
        if self._directory is None:
            raise InvalidInput.at(
                *LOC,
                message=(
                    "Only HTTP and HTTPS URLs are allowed (jsonl: needs PLUGIN_JSONL__DIRECTORY)"
                ),
            )
        if _NAME.fullmatch(url) is None:
            raise InvalidInput.at(
                *LOC, message="Invalid URL format: jsonl: takes a name of letters, digits, _ and -"
            )

    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        started_at = time.monotonic()
        match = _NAME.fullmatch(url)
        if self._directory is None or match is None:
            return Outcome(error="PLUGIN_JSONL__DIRECTORY is not set, or the name is not valid")
        line = (
            json.dumps({"headers": dict(headers), "body": body.decode()}, sort_keys=True) + "\n"
        ).encode()
        error: str | None = None
        try:
            with (
                self._lock,
                open(
                    self._directory / f"{match[1]}.jsonl", "a+b", buffering=0, opener=_append_only
                ) as file,
            ):
                line = _missing_newline(file) + line
                if (file.write(line) or 0) < len(line):
                    error = "the line was written only in part: the disk may be full"
        except OSError as failure:
            error = f"{type(failure).__name__}: {failure.strerror}"
        return Outcome(None if error else 200, error, int((time.monotonic() - started_at) * 1000))


def _missing_newline(file: FileIO) -> bytes:
    """A newline if the file ends within a line, which a full disk can cause; else nothing."""
    size = os.fstat(file.fileno()).st_size
    return b"\n" if size and os.pread(file.fileno(), 1, size - 1) != b"\n" else b""


def _append_only(path: str, flags: int) -> int:
    """Open a regular file only: a link could lead out of the directory, and a pipe without a reader
    would block."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
