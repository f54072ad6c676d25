"""Limits of a peer card, and the form of the lines that the service writes."""

from __future__ import annotations

MAX_LINES = 40

KINDS = ("IDENTITY", "ATTRIBUTE", "RELATIONSHIP", "INSTRUCTION")
"""A line written by the service begins with one of these, a colon and a space."""
MAX_LINE_LENGTH = 200


def folded(line: str) -> str:
    """A form that is equal for lines that differ only in case and white space."""
    return " ".join(line.casefold().split())


def is_good(line: str) -> bool:
    """Whether the service may write this line."""
    kind, mark, content = line.partition(": ")
    return bool(mark and content.strip()) and kind in KINDS and len(line) <= MAX_LINE_LENGTH
