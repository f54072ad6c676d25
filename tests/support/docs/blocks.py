"""Code blocks of Markdown files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)(?: title=(\S+))?\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    title: str | None
    """Name of the file that it is."""
    text: str


def blocks(page: Path, language: str | None = None) -> list[Block]:
    every = [Block(*match.groups()) for match in _FENCE.finditer(page.read_text(encoding="utf-8"))]
    return [block for block in every if language in (None, block.language)]


def table(page: Path, marker: str) -> list[list[str]]:
    """Rows of the first table after `<!-- marker -->`, without its head; cells without
    backticks."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f"<!-- {marker} -->")
    lines = [line for line in rest.split("\n\n")[1].splitlines() if line.startswith("|")]
    assert lines, f"no table after {marker} in {page.name}"
    return [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines[2:]
    ]
