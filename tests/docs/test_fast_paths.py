"""`docs/decisions/fast-paths.md` and the comments that mark fast paths name each other."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = "docs/decisions/fast-paths.md"
MARK = re.compile(rf"# fast path: see {re.escape(PAGE)}#([a-z-]+)$", re.MULTILINE)
SHELVES = ("memservice", "backends", "plugins")


def marked(root: Path) -> set[str]:
    files = (file for shelf in SHELVES for file in (root / shelf).rglob("*.py"))
    return {name for file in files for name in MARK.findall(file.read_text(encoding="utf-8"))}


def test_each_marked_fast_path_has_a_section_and_a_measurement(root: Path) -> None:
    text = (root / PAGE).read_text(encoding="utf-8")
    sections = set(re.findall(r"^## ([a-z-]+)$", text, re.MULTILINE))
    measured = set(re.findall(r"^\| \[([a-z-]+)\]\(#\1\) \|", text, re.MULTILINE))
    assert sections == measured
    assert marked(root) == sections, "mark the code, or describe and measure it in the page"
