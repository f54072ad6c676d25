"""docs/integrations.md names the versions that the tests install."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.clients.fixtures import CLIENT
from support.clients.other_clients import COMMANDS, NODE_CLIENT
from support.docs.blocks import table

EXAMPLES = {
    "support_bot",
    "langgraph",
    "openai_agents",
    "crewai",
    "vercel_ai_sdk",
    "claude",
}


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "integrations.md").read_text(encoding="utf-8")


def pinned(root: Path, example: str) -> dict[str, str]:
    """The version of each requirement of an example."""
    folder = root / "examples" / example
    if (folder / "package.json").exists():
        dependencies: dict[str, str] = json.loads(
            (folder / "package.json").read_text(encoding="utf-8")
        )["dependencies"]
        return dependencies
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").split()
    return dict(line.split("==") for line in lines)


@pytest.mark.parametrize("example", sorted(EXAMPLES - {"claude"}))
def test_the_versions_of_an_example_are_those_that_are_installed(
    root: Path, page: str, example: str
) -> None:
    (row,) = [line for line in page.splitlines() if f"`examples/{example}`" in line]
    for name, version in pinned(root, example).items():
        assert re.search(rf"(?<![\w/-]){re.escape(f'{name} {version}')}(?![\w.])", row), (
            f"{name} {version} is not in the row of {example}"
        )


def test_every_example_is_listed(root: Path, page: str) -> None:
    folders = {path.name for path in (root / "examples").iterdir() if path.is_dir()}
    assert folders == EXAMPLES
    overview = (root / "examples" / "README.md").read_text(encoding="utf-8")
    for name in EXAMPLES:
        assert f"examples/{name}" in page
        assert f"[{name}]({name})" in overview


def test_the_listed_versions_are_those_of_the_tests(root: Path) -> None:
    listed = set()
    for name, version, *_ in table(root / "docs" / "integrations.md", "integrations"):
        package = re.search(r"honcho-\w+|@honcho-ai/sdk", name)
        if package:
            listed.add(f"{package[0]}{'@' if '/' in package[0] else '=='}{version}")
    assert listed == {*CLIENT, *COMMANDS, *NODE_CLIENT}
