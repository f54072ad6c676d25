"""The files in `changes/` become the changelog of the next release."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path


def test_every_entry_is_in_the_next_changelog(root: Path) -> None:
    with (root / "pyproject.toml").open("rb") as file:
        kinds = [kind["directory"] for kind in tomllib.load(file)["tool"]["towncrier"]["type"]]
    entries = sorted(set((root / "changes").glob("*")) - {root / "changes" / "README.md"})
    for entry in entries:
        assert re.fullmatch(rf"\+[a-z0-9-]+\.({'|'.join(kinds)})\.md", entry.name), (
            f"changes/{entry.name}: name it +words-that-name-it.KIND.md, see changes/README.md"
        )
    draft = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "## [9.9.9]" in draft
    folded = " ".join(draft.split())
    for entry in entries:
        text = entry.read_text(encoding="utf-8")
        assert " ".join(text.split()) in folded, entry.name
    sections = re.findall(r"^### (\w+)$", draft, re.MULTILINE)
    assert sections == sorted(sections, key=lambda name: kinds.index(name.lower()))


def test_releases_begin_below_the_marker(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    _, marker, releases = text.partition("<!-- towncrier: releases begin below -->\n")
    assert marker
    headings = re.findall(r"^#+ .*", releases, re.MULTILINE)
    assert headings[0].startswith("## ["), "entries of the next release are files in changes/"
