"""What a peer card may hold: how many lines, and of what form those are that the service writes."""

from __future__ import annotations

MAX_LINES = 40

KINDS = ("IDENTITY", "ATTRIBUTE", "RELATIONSHIP", "INSTRUCTION")
"""What a line that the service writes begins with, followed by a colon and a space."""
MAX_LINE_LENGTH = 200


def folded(line: str) -> str:
    """Equal for lines that differ only in case and white space."""
    return " ".join(line.casefold().split())


def is_good(line: str) -> bool:
    """May the service write this line?"""
    kind, mark, rest = line.partition(": ")
    return bool(mark and rest.strip()) and kind in KINDS and len(line) <= MAX_LINE_LENGTH
