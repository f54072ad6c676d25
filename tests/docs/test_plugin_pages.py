"""Each kind of plugin has a page, whose example is what `memservice plugins new` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memservice.cli.plugins_new import KINDS
from support.docs.blocks import blocks
from support.docs.plugin_pages import PAGES, page


@pytest.mark.parametrize("name", PAGES)
def test_the_example_of_a_page_is_what_the_command_writes(root: Path, name: str) -> None:
    text = (root / "docs" / name).read_text(encoding="utf-8")
    assert text == page(name), "run: PYTHONPATH=tests python -m support.docs.plugin_pages"


def test_every_kind_has_a_page_with_its_module_and_its_test(root: Path) -> None:
    assert sorted(kind for kind, _ in PAGES.values()) == sorted(KINDS)
    for name, (_, plugin) in PAGES.items():
        titles = {block.title for block in blocks(root / "docs" / name)}
        assert {
            f"memservice_{plugin}/__init__.py",
            f"tests/test_memservice_{plugin}.py",
        } <= titles, name
