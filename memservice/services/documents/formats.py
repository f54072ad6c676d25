"""The text of PDF and Word files, read in a subprocess (`reader`) with limits on time, memory and
length."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

from memservice.domain.errors import Busy, InvalidInput, TooLarge, UnsupportedMedia
from memservice.services.documents import reader
from memservice.services.documents.plain import FILE

SECONDS = 20
MEMORY = 1 << 30
MAX_PAGES = 2_000
MAX_UNPACKED = 100 << 20
"""Maximum unpacked size of a Word file, which is an archive, in bytes."""

MAX_CONCURRENT = 2
"""Maximum number of files that one server process reads at the same time; others wait."""
WAIT_SECONDS = 5
_slots = threading.BoundedSemaphore(MAX_CONCURRENT)

_ENVIRONMENT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")
"""Environment variables for the reader; none of them is a secret of this process."""


def text_of(kind: str, data: bytes, most_characters: int) -> str:
    """The text of a `pdf` or `docx`.

    Raises InvalidInput if it is unreadable or has no text, TooLarge if it is too long,
    UnsupportedMedia if the library is not installed, and Busy if no slot becomes free in time.
    """
    if not _slots.acquire(timeout=WAIT_SECONDS):
        raise Busy("other files are being read", retry_after=5)
    try:
        answer = _run_reader(kind, data, most_characters)
    finally:
        _slots.release()
    text = answer.get("text")
    if text is not None:
        return text
    message = answer["message"]
    if answer["error"] == reader.TOO_LONG:
        raise TooLarge(message[:1].upper() + message[1:])
    if answer["error"] == reader.NOT_INSTALLED:
        raise UnsupportedMedia(
            "Unsupported file type: Word files need python-docx: pip install 'memservice[uploads]'"
        )
    raise _unreadable(message)


def _run_reader(kind: str, data: bytes, most_characters: int) -> dict[str, str]:
    limits = (SECONDS, MEMORY, MAX_PAGES, MAX_UNPACKED, most_characters)
    command = [sys.executable, "-P", "-m", reader.__name__, kind, *map(str, limits)]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        process = subprocess.run(
            command,
            input=data,
            capture_output=True,
            timeout=SECONDS + 5,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise _unreadable("reading it takes too long") from error
    if process.returncode:
        # The reader was killed for its time, or ran out of memory without an answer.
        raise _unreadable("reading it takes too long, or too much memory")
    answer: dict[str, str] = json.loads(process.stdout)
    return answer


def _unreadable(message: str) -> InvalidInput:
    return InvalidInput.at(*FILE, message=message[:1].upper() + message[1:])
