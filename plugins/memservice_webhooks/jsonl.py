"""Delivery as lines of JSON: an endpoint `jsonl:NAME` is the file NAME.jsonl in a directory that
the operator chose."""

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
LOC = ("body", "url")


class JsonLinesTransport:
    """One line an event: its headers and its body. Lines of several processes do not mix: each is
    one write to a file opened for appending."""

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
        began = time.monotonic()
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
                line = _ends_line(file) + line
                if (file.write(line) or 0) < len(line):
                    error = "the disk took only a part of the line"
        except OSError as failure:
            error = f"{type(failure).__name__}: {failure.strerror}"
        return Outcome(None if error else 200, error, int((time.monotonic() - began) * 1000))


def _ends_line(file: FileIO) -> bytes:
    """What has to come before a line that is appended: after one of which a full disk took only a
    part, its end."""
    size = os.fstat(file.fileno()).st_size
    return b"\n" if size and os.pread(file.fileno(), 1, size - 1) != b"\n" else b""


def _append_only(path: str, flags: int) -> int:
    """Opens files only: a link would lead out of the directory, and a pipe that nobody reads would
    never open."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
