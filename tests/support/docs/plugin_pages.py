"""The examples of the pages on plugins are what `memservice plugins new` writes. To write them:
`PYTHONPATH=tests python -m support.docs.plugin_pages`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from memservice.cli.plugins_new import rendered

ROOT = Path(__file__).resolve().parents[3]
_FENCE = re.compile(r"^(```\w+ title=(\S+)\n)(.*?)^(```)$", re.M | re.S)

PAGES: Mapping[str, tuple[str, str]] = {
    "storage.md": ("storage", "shelf"),
    "plugins/vector-index.md": ("vector-index", "pile"),
    "plugins/language-model.md": ("language-model", "tiny"),
    "plugins/embedder.md": ("embedder", "grams"),
    "plugins/reasoner.md": ("reasoner", "verbatim"),
    "plugins/webhook-transport.md": ("webhook-transport", "spool"),
    "plugins/hooks.md": ("hooks", "redact"),
    "plugins/routes.md": ("routes", "members"),
    "plugins/console-page.md": ("console-page", "where"),
    "plugins/command.md": ("command", "count"),
}
"""Page below `docs` → the kind and the name of its example."""


def page(name: str) -> str:
    """The page, with the examples that the templates make now."""
    files = rendered(*PAGES[name])

    def example(match: re.Match[str]) -> str:
        title = match[2]
        (text,) = [text for path, text in files.items() if path == title]
        return f"{match[1]}{text}{match[4]}"

    return _FENCE.sub(example, (ROOT / "docs" / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / "docs" / name).write_text(page(name), encoding="utf-8")
