"""Conversations of a data export of Claude (`conversations.json`, or the zip)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from memservice.services.transfer.histories.fields import Fields
from memservice.services.transfer.histories.items import Item, Utterance
from memservice.services.transfer.histories.json_reader import entries
from memservice.services.transfer.lines import UnreadableExport

ASSISTANT = "claude"
SENDERS = ("human", "assistant")


def read(file: IO[bytes], user: str) -> Iterator[Item]:
    """What human and assistant wrote, without attachments and tools."""
    for entry in entries(file):
        if entry.key != "":
            raise UnreadableExport("the file must be a list of conversations")
        conversation = Fields(entry.value, entry.where)
        session = conversation.text("uuid")
        if "chat_messages" not in conversation:
            raise UnreadableExport(f"{conversation.where} has no `chat_messages`")
        for message in conversation.objects("chat_messages"):
            sender = message.text("sender")
            if sender not in SENDERS:
                raise message.wrong("sender", f"one of {', '.join(SENDERS)}")
            content = _content(message)
            if content:
                yield Utterance(
                    session=session,
                    peer=user if sender == "human" else ASSISTANT,
                    id=message.text("uuid"),
                    content=content,
                    at=message.time("created_at") or conversation.time("created_at"),
                    title=conversation.text_or_none("name"),
                    is_assistant=sender == "assistant",
                )


def _content(message: Fields) -> str:
    """The parts of text; in older exports `text` only."""
    texts = [
        part.text_or_none("text") or ""
        for part in message.objects("content")
        if part.text_or_none("type") == "text"
    ]
    return (
        "\n".join(text for text in texts if text).strip()
        or (message.text_or_none("text") or "").strip()
    )
