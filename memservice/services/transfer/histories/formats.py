"""The formats of histories by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO

from memservice.services.transfer.histories import chat_lines, chatgpt, claude, letta, mem0, zep
from memservice.services.transfer.histories.items import Item

Read = Callable[[IO[bytes], str], Iterator[Item]]
"""Reads a file; the second argument names the user where the file does not."""

FORMATS: Mapping[str, Read] = {
    "mem0": mem0.read,
    "zep": zep.read,
    "letta": letta.read,
    "chatgpt": chatgpt.read,
    "claude": claude.read,
    "chat": chat_lines.read,
}
