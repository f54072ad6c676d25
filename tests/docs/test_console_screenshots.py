"""The screenshots of the console: linked, in both themes, and small."""

from __future__ import annotations

import re
from pathlib import Path

MAX_BYTES = 60_000
MAX_TOTAL_BYTES = 2_000_000
LINK = re.compile(r"images/console/([\w-]+\.webp)")


def test_each_screenshot_is_linked_and_each_link_has_its_file(root: Path) -> None:
    files = {path.name for path in (root / "docs" / "images" / "console").iterdir()}
    pages = {name.removesuffix("-light.webp") for name in files if name.endswith("-light.webp")}
    assert pages
    assert files == {f"{page}-{theme}.webp" for page in pages for theme in ("light", "dark")}
    assert set(LINK.findall((root / "docs" / "console.md").read_text("utf-8"))) == files
    in_readme = set(LINK.findall((root / "README.md").read_text("utf-8")))
    assert in_readme
    assert in_readme <= files


def test_screenshots_are_small_and_not_in_a_release(root: Path) -> None:
    sizes = [path.stat().st_size for path in (root / "docs" / "images").rglob("*.webp")]
    assert max(sizes) <= MAX_BYTES
    assert sum(sizes) <= MAX_TOTAL_BYTES
    assert "prune docs/images/console" in (root / "MANIFEST.in").read_text("utf-8").splitlines()
