"""Relative links of the documentation lead to files and headings that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if "generated" not in page.parts  # by a build of the site, in docs/generated
)
_CODE = re.compile(r"^```.*?^```$", re.M | re.S)


def anchor(heading: str) -> str:
    """As GitHub makes one: lower case, hyphens for spaces, no punctuation."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    return {
        anchor(heading)
        for heading in re.findall(
            r"^#+ (.+)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.M
        )
    }


def broken(page: Path) -> list[str]:
    """Links of a page to files or headings that do not exist."""
    links = []
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", text):
        name, _, fragment = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (fragment and fragment not in anchors(target)):
            links.append(link)
    return links


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_relative_links_resolve(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        (
            "# One `two`, three?\n[a](#one-two-three) [b](#four) [c](other.md) "
            "[d](https://example.com/x#y)\n"
        ),
        encoding="utf-8",
    )
    assert broken(page) == ["#four", "other.md"]
