"""Conversations as lines of JSON, one message each: the simplest format to write by oneself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from memservice.domain.errors import InvalidInput
from memservice.domain.values import loads
from memservice.services.transfer.histories.fields import Fields
from memservice.services.transfer.histories.items import Item, Utterance
from memservice.services.transfer.lines import MAX_LINE, UnreadableExport

FIELDS = ("session", "peer", "content", "created_at", "id", "metadata", "title", "assistant")


def read(file: IO[bytes], user: str) -> Iterator[Item]:
    """`content` is required. Without `id`, messages are told apart by their position in the
    session."""
    numbers: dict[str, int] = {}
    line_number = 0
    while data := file.readline(MAX_LINE + 1):
        line_number += 1
        where = f"line {line_number}"
        if len(data) > MAX_LINE:
            raise UnreadableExport(f"{where} is longer than {MAX_LINE} bytes")
        if not data.strip():
            continue
        try:
            message = Fields(loads(data.removeprefix(b"\xef\xbb\xbf")), where)
        except InvalidInput as error:
            raise UnreadableExport(f"{where} is not JSON: {error}") from error
        unknown = [name for name in message.names() if name not in FIELDS]
        if unknown:
            raise UnreadableExport(
                f"{where} has the unknown field `{unknown[0]}`; known: {', '.join(FIELDS)}"
            )
        is_assistant = message.raw("assistant") or False
        if not isinstance(is_assistant, bool):
            raise message.wrong("assistant", "true or false")
        session = message.text_or_none("session") or "imported"
        numbers[session] = numbers.get(session, 0) + 1
        yield Utterance(
            session=session,
            peer=message.text_or_none("peer") or user,
            id=message.text_or_none("id") or f"#{numbers[session]}",
            content=message.text("content"),
            at=message.time("created_at"),
            title=message.text_or_none("title"),
            is_assistant=is_assistant,
            metadata=message.metadata("metadata"),
        )
