"""Conversations of a data export of ChatGPT (`conversations.json`, or the zip)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from memservice.services.transfer.histories.fields import Fields, storable
from memservice.services.transfer.histories.items import Item, Utterance
from memservice.services.transfer.histories.json_reader import entries
from memservice.services.transfer.lines import UnreadableExport

ASSISTANT = "chatgpt"
TEXTS = ("text", "multimodal_text")


def read(file: IO[bytes], user: str) -> Iterator[Item]:
    """Of each conversation the branch that was shown last: what user and assistant wrote."""
    for entry in entries(file):
        if entry.key != "":
            raise UnreadableExport("the file must be a list of conversations")
        conversation = Fields(entry.value, entry.where)
        session = conversation.text("conversation_id", "id")
        title = conversation.text_or_none("title")
        for node_id, message in _branch(conversation):
            author = message.inner("author")
            role = None if author is None else author.text_or_none("role")
            content = _content(message)
            if role in ("user", "assistant") and content and not _is_hidden(message):
                yield Utterance(
                    session=session,
                    peer=user if role == "user" else ASSISTANT,
                    id=message.text_or_none("id") or node_id,
                    content=content,
                    at=message.time("create_time") or conversation.time("create_time"),
                    title=title,
                    is_assistant=role == "assistant",
                )


def _branch(conversation: Fields) -> list[tuple[str, Fields]]:
    """The messages from the root to the current node."""
    mapping = conversation.inner("mapping")
    if mapping is None:
        raise UnreadableExport(f"{conversation.where} has no `mapping`")
    node_id = conversation.text_or_none("current_node") or _last(mapping)
    branch: list[tuple[str, Fields]] = []
    visited: set[str] = set()
    while node_id is not None:
        if node_id in visited:
            raise UnreadableExport(f"{mapping.where}: `{node_id}` is its own ancestor")
        visited.add(node_id)
        node = mapping.inner(node_id)
        if node is None:
            raise UnreadableExport(f"{mapping.where} has no node `{node_id}`")
        message = node.inner("message")
        if message is not None:
            branch.append((node_id, message))
        node_id = node.text_or_none("parent")
    branch.reverse()
    return branch


def _last(mapping: Fields) -> str | None:
    """The last node, where the file does not name the current one."""
    names = mapping.names()
    return names[-1] if names else None


def _content(message: Fields) -> str:
    content = message.inner("content")
    if content is None or content.text_or_none("content_type") not in TEXTS:
        return ""
    parts = content.raw("parts")
    if not isinstance(parts, list):
        raise content.wrong("parts", "a list")
    return storable("\n".join(part for part in parts if isinstance(part, str)).strip())


def _is_hidden(message: Fields) -> bool:
    metadata = message.inner("metadata")
    return metadata is not None and bool(metadata.raw("is_visually_hidden_from_conversation"))
