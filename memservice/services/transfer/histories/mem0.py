"""Memories of mem0: the JSON of `get_all`, of its library (with or without `results`) or of its
platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from memservice.services.transfer.histories.fields import Fields
from memservice.services.transfer.histories.items import Item, Statement
from memservice.services.transfer.histories.json_reader import entries
from memservice.services.transfer.lines import UnreadableExport


def read(file: IO[bytes], user: str) -> Iterator[Item]:
    """`user_id` is the peer; without it `agent_id`, and else `user`. `run_id` is the session."""
    for entry in entries(file, ("results",)):
        if entry.key == "next" and entry.value:
            raise UnreadableExport(
                f"{entry.where}: the file is one page of several (`next` is set): put the results "
                "of all pages into one list"
            )
        if entry.key == "results" and not isinstance(entry.value, dict):
            raise UnreadableExport(f"{entry.where} must be a list of memories")
        if entry.key not in ("", "results"):
            continue
        memory = Fields(entry.value, entry.where)
        yield Statement(
            peer=memory.text_or_none("user_id", "agent_id") or user,
            id=memory.text("id"),
            content=memory.text("memory"),
            at=memory.time("created_at"),
            session=memory.text_or_none("run_id"),
            metadata=memory.metadata("metadata"),
        )
