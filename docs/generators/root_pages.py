"""Pages of the site that the repository has outside docs/: changelog and security policy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TARGETS = {
    "README": "index",
    "SECURITY": "generated/security",
    "CHANGELOG": "generated/changelog",
    "CONTRIBUTING": "generated/contributing",
}
"""Files of the root, and the pages of the site that links to them lead to."""
_LINK = re.compile(rf"\]\((?:\.\./)+({'|'.join(TARGETS)})\.md(#[\w-]+)?\)")
_TOCTREE = re.compile(r"^```{toctree}\n(.*?)^```$", re.M | re.S)


def pages() -> Iterator[tuple[str, str]]:
    yield "changelog", _changelog()
    for name in ("SECURITY", "CONTRIBUTING"):
        yield name.lower(), _moved((ROOT / f"{name}.md").read_text(encoding="utf-8"))


def redirect_links(app: Any, page: str, text: list[str]) -> None:
    """Links to files of the root lead to pages of the site (the event `source-read`)."""
    text[0] = _LINK.sub(lambda link: f"](/{TARGETS[link[1]]}.md{link[2] or ''})", text[0])


def list_other_pages(app: Any, page: str, text: list[str]) -> None:
    """The index ends with the pages that it does not list itself (the event `source-read`)."""
    if page == "index":
        docs = Path(app.srcdir)
        names = (file.relative_to(docs).with_suffix("").as_posix() for file in docs.rglob("*.md"))
        others = unlisted(text[0], names)
        if others:
            entries = "\n".join(others)
            text[0] += f"\n```{{toctree}}\n:hidden:\n:caption: More\n\n{entries}\n```\n"


def unlisted(index: str, names: Iterable[str]) -> list[str]:
    """The pages that no toctree of the index lists. Those in `generated/` list each other."""
    listed = [line for tree in _TOCTREE.findall(index) for line in tree.splitlines() if line]
    return sorted(
        name
        for name in names
        if name != "index"
        and not name.startswith("generated/")
        and not any(fnmatchcase(name, entry) for entry in listed)
    )


def _moved(text: str) -> str:
    """The text of a page of the root, with links as from docs/generated/. Links to what is not on
    the site become text."""
    text = re.sub(r"\]\(docs/", "](../", text)
    return re.sub(r"\[([^\]]+)\]\((?!\.\./|https?:)[^)]*\)", r"\1", text)


def _changelog() -> str:
    released = _moved((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    head, mark, rest = released.partition("<!-- towncrier: releases begin below -->\n")
    return f"{head}{_unreleased()}\n{rest}" if mark else released


def _unreleased() -> str:
    """What `changes/` has for the next release."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = []
    for kind in config["tool"]["towncrier"]["type"]:
        files = sorted((ROOT / "changes").glob(f"*.{kind['directory']}.md"))
        entries = [file.read_text(encoding="utf-8").strip() for file in files]
        if entries:
            items = "\n".join(f"- {entry}".replace("\n", "\n  ") for entry in entries)
            parts.append(f"### {kind['name']}\n\n{items}\n")
    return "\n".join(["## Not released yet\n", *parts]) if parts else ""
