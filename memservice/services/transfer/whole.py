"""Whether a file is an export, and a whole one: told by its header, by its last line, and by the
sum of what stands between them."""

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
    parsed,
)


def check(data: Iterator[bytes]) -> int:
    """Read an export to its end, storing nothing; how many lines it has, the header and the end
    included.

    Raises UnreadableExport for a file that is none, is of a newer version, was cut off, changed or
    added to.
    """
    total = Sum()
    header(data)
    for _ in rows(data, total):
        pass
    return total.lines + 2


def header(data: Iterator[bytes]) -> Line:
    """The first line. Raises UnreadableExport for one that this release cannot go by."""
    first = next(data, None)
    if first is None:
        raise UnreadableExport("the file is empty")
    line = parsed(first, 1)
    if line["type"] != HEADER or line.get("format") != FORMAT:
        raise UnreadableExport(
            "this is no export of memservice: its first line is not the header of one"
        )
    if not isinstance(line.get("version"), int) or line["version"] > VERSION:
        raise UnreadableExport(
            f"the export is of version {shown(line.get('version'))}, this release reads up "
            f"to {VERSION}: use a newer one"
        )
    checks.require_name(line.get("workspace"))
    if not isinstance(line.get("vectors"), bool):
        raise UnreadableExport("the header does not say whether the file has vectors")
    if line.get("token_counter") != tokens.counter_id():
        raise UnreadableExport(
            f"its tokens were counted by {shown(line.get('token_counter'))!r}, here they "
            f"are by {tokens.counter_id()!r}: "
            "export it with a release that counts like this one"
        )
    return line


def rows(data: Iterator[bytes], total: Sum) -> Iterator[Line]:
    """The lines between the header and the end, added to `total`.

    Raises UnreadableExport at a line that is no JSON, and at the end if there is none, it does not
    agree with `total`, or is not the end.
    """
    for number, found in enumerate(data, 2):
        line = parsed(found, number)
        if line["type"] == END:
            if (line.get("lines"), line.get("sha256")) != (total.lines, total.sha256):
                raise UnreadableExport(
                    "the file was changed or damaged: its lines do not agree with the "
                    "checksum at its end"
                )
            if next(data, None) is not None:
                raise UnreadableExport(
                    f"the file goes on after its end in line {number}: a file holds one workspace"
                )
            return
        total.add(found)
        yield line
    raise UnreadableExport("the file is cut off: its last line is missing")
