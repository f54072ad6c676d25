"""The threat model names tests that there are, and is found from where a reader begins."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_defence_names_existing_tests(root: Path) -> None:
    text = (root / "docs" / "threat-model.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("## What is defended")
    rows = [
        line
        for line in rest.split("\n## ")[0].splitlines()
        if line.startswith("| ") and not line.startswith(("| Attack |", "| --- |"))
    ]
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)`", row)
        assert named, row
        assert [
            name for name in named if "def test_" not in (root / name).read_text(encoding="utf-8")
        ] == []


def test_the_page_is_linked_from_the_first_pages(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert "(SECURITY.md)" in readme
    assert "(docs/threat-model.md)" in readme
    assert "(docs/threat-model.md)" in (root / "SECURITY.md").read_text(encoding="utf-8")
