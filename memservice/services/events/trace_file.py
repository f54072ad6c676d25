"""The file of traces, if the operator enables it: prompts and answers of language models, one JSON
object a line. They contain users' texts, and an erasure removes them."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from memservice.services import private_files
from memservice.services.events.traces import as_text, calls_as_json
from memservice.spi.llm import ModelCall


class TraceFile:
    """A listener of calls that appends each exchange with a language model to a private file, one
    JSON object a line."""

    def __init__(self, clock: Callable[[], datetime], path: Path) -> None:
        self._clock = clock
        self._path = path
        self._lock = threading.Lock()

    def __call__(self, call: ModelCall) -> None:
        if call.request is None:
            return
        line = {
            "time": self._clock().isoformat(),
            "purpose": call.purpose,
            "workspace": call.workspace,
            "run_id": call.run_id,
            "iteration": call.iteration,
            "attempt": call.attempt,
            "transport": call.transport,
            "model": call.model,
            "outcome": call.outcome,
            "error_class": call.error_class,
            "duration_ms": call.duration_ms,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "input": [
                {
                    "role": turn.role,
                    "content": turn.content,
                    "tool_calls": calls_as_json(turn.tool_calls),
                }
                for turn in call.request.turns
            ],
            "output": None if call.answer is None else call.answer.content,
            "output_tool_calls": calls_as_json(call.answer.tool_calls if call.answer else ()),
        }
        with self._lock, _locked(self._path) as file:
            file.write(as_text(line) + "\n")


def remove(path: Path, workspace: str, asked_at: datetime) -> int:
    """Remove the traces of a workspace, given by its slug, whose calls began at or before a time,
    and lines that do not name a workspace: a trace does not name the messages that it contains.
    Returns the number of removed lines.

    The file is replaced as a whole, with its permissions, and only if there are such lines.
    Processes of this machine that append to it wait meanwhile. Raises `private_files.Unwritable`.
    """
    if not has_any(path, workspace, asked_at):
        return 0
    removed, path = 0, path.resolve()
    with (
        _locked(path),
        path.open("rb") as lines,
        private_files.replacing(path) as remaining,
    ):
        os.fchmod(remaining.fileno(), stat.S_IMODE(os.fstat(lines.fileno()).st_mode))
        for line in lines:
            if _is_of(line, workspace, asked_at):
                removed += 1
            else:
                remaining.write(line)
    return removed


def has_any(path: Path, workspace: str, asked_at: datetime) -> bool:
    """Whether the file has lines that `remove` removes."""
    if not path.is_file():  # a pipe, for example, cannot be read again
        return False
    with _locked(path), path.open("rb") as lines:
        return any(_is_of(line, workspace, asked_at) for line in lines)


def _is_of(line: bytes, workspace: str, asked_at: datetime) -> bool:
    try:
        trace = json.loads(line)
        ended = datetime.fromisoformat(trace["time"])
        began = ended - timedelta(milliseconds=trace["duration_ms"])
        return trace["workspace"] in (workspace, None) and began <= asked_at
    except (ValueError, KeyError, TypeError):  # the rest of an interrupted write
        return True


@contextmanager
def _locked(path: Path) -> Iterator[IO[str]]:
    """The file for appending, while no other process of this machine appends or replaces it."""
    while True:
        with private_files.append(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_current(file, path):
                yield file
                return


def _is_current(file: IO[str], path: Path) -> bool:
    """Whether an open file was not replaced since it was opened."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
