"""JSON documents larger than memory: the entries of a list, one after the other."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator
from typing import IO, Any, NoReturn

from msgspec import Struct

from memservice.services.transfer.lines import UnreadableExport

CHUNK = 2**20
"""Characters that are read at once."""
MAX_ENTRY = 128 * 2**20
"""Maximum characters of one entry."""
NEAR_END = 16
"""An error so near to the end of what was read may only mean that more has to be read."""
_SPACE = " \t\r\n"


class Entry(Struct, frozen=True):
    """A value of the document."""

    key: str
    """The member of the document whose value, or part of a list, it is; empty for the list that is
    the document."""
    value: Any
    where: str
    """For messages: `entry 3 (line 40)`."""


def entries(file: IO[bytes], lists: Collection[str] = ()) -> Iterator[Entry]:
    """The entries of the document: if it is a list, its parts; if it is an object, the parts of the
    members `lists`, and the other members as a whole. Raises `UnreadableExport`, which names the
    line."""
    reader = _Reader(file)
    start = reader.peek()
    if start == "[":
        yield from _parts(reader, "")
    elif start == "{":
        yield from _members(reader, lists)
    else:
        reader.fail("the file is empty" if start == "" else "expected a list or an object")
    if reader.peek() != "":
        reader.fail("the file continues after its end")


def _parts(reader: _Reader, key: str) -> Iterator[Entry]:
    reader.take("[")
    number = 0
    if reader.peek() == "]":
        reader.take("]")
        return
    while True:
        number += 1
        name = f"{key}[{number - 1}]" if key else f"entry {number}"
        where = f"{name} (line {reader.line})"
        yield Entry(key, reader.value(), where)
        if reader.take(",", "]") == "]":
            return


def _members(reader: _Reader, lists: Collection[str]) -> Iterator[Entry]:
    reader.take("{")
    if reader.peek() == "}":
        reader.take("}")
        return
    while True:
        if reader.peek() != '"':
            reader.fail("expected the name of a member")
        key = str(reader.value())
        reader.take(":")
        if key in lists and reader.peek() == "[":
            yield from _parts(reader, key)
        else:
            where = f"`{key}` (line {reader.line})"
            yield Entry(key, reader.value(), where)
        if reader.take(",", "}") == "}":
            return


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not a number of JSON")


class _Reader:
    def __init__(self, file: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        self._decoder = json.JSONDecoder(parse_constant=_refuse)
        self._buffer = ""
        self._position = 0
        self._line = 1
        self._counted = 0
        """Position up to which lines are counted."""

    @property
    def line(self) -> int:
        """The line of the next character that is no space."""
        self.peek()
        self._line += self._buffer.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def fail(self, problem: str) -> NoReturn:
        raise UnreadableExport(f"line {self.line}: {problem}")

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            while self._position < len(self._buffer):
                if self._buffer[self._position] not in _SPACE:
                    return self._buffer[self._position]
                self._position += 1
            if not self._fill(CHUNK):
                return ""

    def take(self, *characters: str) -> str:
        """The next character, which must be one of these."""
        character = self.peek()
        if character not in characters:
            if character == "":
                self.fail("the file is cut off")
            self.fail(f"expected {' or '.join(characters)} instead of {character!r}")
        self._position += 1
        return character

    def value(self) -> Any:
        """The next value."""
        if self.peek() == "":
            self.fail("the file is cut off")
        size = CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._position)
                if not self._may_be_longer(value, end) or not self._fill(size):
                    break
                size *= 2
            except json.JSONDecodeError as error:
                if not self._may_continue(error):
                    self._fail_at(error)
                if len(self._buffer) - self._position > MAX_ENTRY:
                    self.fail(f"an entry is longer than {MAX_ENTRY} characters")
                if not self._fill(size):
                    if error.pos < len(self._buffer) and not error.msg.startswith("Unterminated"):
                        self._fail_at(error)
                    self.fail("the file is cut off")
                size *= 2
            except ValueError as error:
                self.fail(str(error))
            except RecursionError:
                self.fail("an entry is nested too deeply")
        self._position = end
        return value

    def _may_be_longer(self, value: object, end: int) -> bool:
        """Whether a number may continue in what is not read yet."""
        return isinstance(value, int | float) and end > len(self._buffer) - NEAR_END

    def _may_continue(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos >= len(self._buffer) - NEAR_END

    def _fail_at(self, error: json.JSONDecodeError) -> NoReturn:
        line = self.line + self._buffer.count("\n", self._position, error.pos)
        raise UnreadableExport(f"line {line}: the file is not JSON: {error.msg}") from error

    def _fill(self, size: int) -> bool:
        """Read more, and forget what was read before `_position`. False at the end."""
        try:
            more = self._text.read(size)
        except UnicodeDecodeError as error:
            raise UnreadableExport(f"line {self._line} or later: the file is not UTF-8") from error
        if not more:
            return False
        self._line += self._buffer.count("\n", self._counted, self._position)
        self._counted = 0
        self._buffer = self._buffer[self._position :] + more
        self._position = 0
        return True
