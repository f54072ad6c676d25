"""The page on troubleshooting quotes messages that the code contains."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

HEADING = re.compile(r"^### (.*`.*)$", re.M)


def quoted(page: str) -> list[str]:
    """The fixed parts of the messages in the headings, without names of headers."""
    texts = [text for heading in HEADING.findall(page) for text in re.findall("`([^`]+)`", heading)]
    parts = (part.strip(" .:") for text in texts for part in text.split("…"))
    return [part for part in parts if part and part != "Retry-After"]


@cache
def code(root: Path) -> str:
    """The texts of the code, those over several lines joined."""
    files = (file for name in ("memservice", "backends") for file in (root / name).rglob("*.py"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


def test_the_messages_exist(root: Path) -> None:
    page = (root / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = quoted(page)
    assert len(messages) >= 10
    assert [part for part in messages if part not in code(root)] == []


@pytest.mark.parametrize(
    ("heading", "parts"),
    [
        ("### `… is gone`, `lost`", ["is gone", "lost"]),
        ("### 503 with `Retry-After`", []),
        ("### Words", []),
    ],
)
def test_the_parts_of_a_message_are_found(heading: str, parts: list[str]) -> None:
    assert quoted(heading) == parts
