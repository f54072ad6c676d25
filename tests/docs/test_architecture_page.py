"""The architecture page names every package of the core, and every file it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_package_is_in_the_table(root: Path, page: str) -> None:
    packages = {path.parent.name for path in (root / "memservice").glob("*/__init__.py")}
    described = set(re.findall(r"^\| `memservice/(\w+)`", page, re.M))
    assert described == packages, "add a row to the table of packages in docs/architecture.md"


def test_every_named_file_exists(root: Path, page: str) -> None:
    named = re.findall(r"`([\w/]+\.py)", page)
    assert len(named) >= 12
    missing = [
        name
        for name in named
        if not (root / "memservice" / name).exists() and not (root / name).exists()
    ]
    assert missing == []


def test_every_package_of_services_is_described(root: Path, page: str) -> None:
    row = next(line for line in page.splitlines() if line.startswith("| `memservice/services`"))
    wings = {path.parent.name for path in (root / "memservice" / "services").glob("*/__init__.py")}
    assert wings <= set(re.findall(r"`(\w+)`", row))


def test_every_package_of_the_shelves_is_described(root: Path, page: str) -> None:
    for shelf in ("backends", "plugins"):
        row = next(line for line in page.splitlines() if line.startswith(f"| `{shelf}/`"))
        packages = {path.parent.name for path in (root / shelf).glob("*/__init__.py")}
        assert packages == set(re.findall(r"`(memservice_\w+)`", row)), shelf
