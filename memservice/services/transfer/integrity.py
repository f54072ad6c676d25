"""Checks that a file is a complete export: by its header, its last line, and the checksum of the
lines between them."""

from __future__ import annotations

from collections.abc import Iterator

from memservice.domain import tokens
from memservice.domain.values import shown
from memservice.services.transfer import checks
from memservice.services.transfer.lines import (
    END,
    FORMAT,
    HEADER,
    VERSION,
    Line,
    Sum,
    UnreadableExport,
    parse_line,
)


def check(data: Iterator[bytes]) -> int:
    """Read an export to its end without storing it; returns its number of lines, including the
    header and the end.

    Raises UnreadableExport for a file that is not an export, has a newer version, or was cut off,
    changed or extended.
    """
    total = Sum()
    header(data)
    for _ in rows(data, total):
        pass
    return total.lines + 2


def header(data: Iterator[bytes]) -> Line:
    """The first line. Raises UnreadableExport for a header that this release cannot read."""
    first = next(data, None)
    if first is None:
        raise UnreadableExport("the file is empty")
    line = parse_line(first, 1)
    if line["type"] != HEADER or line.get("format") != FORMAT:
        raise UnreadableExport(
            "this is not an export of memservice: its first line is not a header"
        )
    if not isinstance(line.get("version"), int) or line["version"] > VERSION:
        raise UnreadableExport(
            f"the export has version {shown(line.get('version'))}, but this release reads "
            f"versions up to {VERSION}: use a newer release"
        )
    checks.require_name(line.get("workspace"))
    if not isinstance(line.get("vectors"), bool):
        raise UnreadableExport("the header does not say whether the file has vectors")
    if line.get("token_counter") != tokens.counter_id():
        raise UnreadableExport(
            f"its tokens were counted by {shown(line.get('token_counter'))!r}, but this "
            f"release counts with {tokens.counter_id()!r}: "
            "export it with a release that uses the same counter"
        )
    return line


def rows(data: Iterator[bytes], total: Sum) -> Iterator[Line]:
    """The lines between the header and the end, added to `total`.

    Raises UnreadableExport for a line that is not JSON, for a missing end, an end that does not
    match `total`, and lines after it.
    """
    for number, data_line in enumerate(data, 2):
        line = parse_line(data_line, number)
        if line["type"] == END:
            if (line.get("lines"), line.get("sha256")) != (total.lines, total.sha256):
                raise UnreadableExport(
                    "the file was changed or damaged: its lines do not match the "
                    "checksum at its end"
                )
            if next(data, None) is not None:
                raise UnreadableExport(
                    f"the file continues after its end in line {number}: it may contain only "
                    "one workspace"
                )
            return
        total.add(data_line)
        yield line
    raise UnreadableExport("the file is cut off: its last line is missing")
