"""Files, packages and Python names that the documentation mentions exist."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = ("backends", "benchmarks", "config", "docs", "examples", "memservice", "plugins", "scripts")
FILES = {
    "memservice.db": "a store",
    "memservice.env": "settings of a service",
    "memservice.toml": "settings",
    "docs/generated/": "made when the site is built",
}
"""What looks like a name of the tree, and what it is."""


def pages(root: Path) -> list[Path]:
    folders = ("docs", "examples", "benchmarks", "changes", "config")
    return [
        page
        for page in (
            *root.glob("*.md"),
            *(p for name in folders for p in root.glob(f"{name}/**/*.md")),
        )
        if "generated" not in page.parts
    ]


def mentions(text: str) -> Iterator[str]:
    """What stands in back quotes on one line, without a function behind a colon."""
    for quoted in re.findall(r"`([^`\n]+)`", text):
        yield quoted.split("::")[0].split(": ")[0].strip()


def is_there(root: Path, path: str) -> bool:
    """Relative to the root, or to the package that the page is about."""
    return any(
        (root / folder / path).exists() for folder in ("", "memservice", "memservice/services")
    )


def is_importable(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ImportError:
        if "." in module or module.startswith("memservice"):
            try:
                return hasattr(importlib.import_module(module), attribute)
            except ImportError:
                outer, _, name_of_class = module.rpartition(".")
                container = getattr(importlib.import_module(outer), name_of_class, None)
                return hasattr(container, attribute)
        return False
    return True


@pytest.fixture(scope="module")
def named(root: Path) -> set[tuple[str, str]]:
    """(page, mention)."""
    return {
        (page.relative_to(root).as_posix(), mention)
        for page in pages(root)
        for mention in mentions(page.read_text(encoding="utf-8"))
        if mention not in FILES
    }


def test_every_path_in_the_documentation_exists(root: Path, named: set[tuple[str, str]]) -> None:
    packages = {folder.name for folder in (root / "memservice").iterdir() if folder.is_dir()}
    paths = {
        (page, mention)
        for page, mention in named
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", mention)
        and mention.split("/")[0] in {*TOP, "tests", *packages}
    }
    assert len(paths) > 80
    assert {(page, path) for page, path in paths if not is_there(root, path)} == set()


def test_every_python_name_in_the_documentation_exists(named: set[tuple[str, str]]) -> None:
    names = {
        (page, mention)
        for page, mention in named
        if re.fullmatch(r"memservice(_\w+)?(\.\w+)+", mention)
    }
    assert len(names) > 40
    assert {(page, name) for page, name in names if not is_importable(name)} == set()
