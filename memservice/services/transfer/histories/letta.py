"""Agents of Letta: an agent file (`.af`), of several agents or of one in the older format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from memservice.domain.errors import InvalidInput
from memservice.domain.values import loads
from memservice.services.transfer.histories.fields import Fields, storable
from memservice.services.transfer.histories.items import Item, Statement, Utterance
from memservice.services.transfer.histories.json_reader import entries
from memservice.services.transfer.lines import UnreadableExport

ABOUT_USER = "human"
"""The label of the memory block about the user. The other blocks are about the agent."""
SEND = "send_message"
"""The tool by which older agents answer."""


def read(file: IO[bytes], user: str) -> Iterator[Item]:
    """The lines of memory blocks, and what user and agent wrote."""
    document = {entry.key: entry.value for entry in entries(file)}
    whole = Fields(document, "the file")
    if "agents" in whole:
        blocks = {block.text("id"): block for block in whole.objects("blocks")}
        for number, agent in enumerate(whole.objects("agents")):
            own = _block_ids(agent)
            yield from _agent(agent, [blocks[name] for name in own if name in blocks], number, user)
    elif "messages" in whole and "agent_type" in whole:
        yield from _agent(whole, whole.objects("core_memory"), 0, user)
    else:
        raise UnreadableExport("the file has neither `agents` nor the fields of one agent")


def _block_ids(agent: Fields) -> list[str]:
    ids = agent.raw("block_ids") or []
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise agent.wrong("block_ids", "a list of ids")
    return ids


def _agent(agent: Fields, blocks: list[Fields], number: int, user: str) -> Iterator[Item]:
    name = agent.text("name")
    session = agent.text_or_none("id") or f"agent-{number}"
    for block in blocks:
        label = block.text("label")
        for line in (block.text_or_none("value") or "").splitlines():
            if line.strip():
                yield Statement(
                    peer=user if label == ABOUT_USER else name,
                    id=f"{session} {label} {line.strip()}",
                    content=line.strip(),
                    at=block.time("created_at"),
                )
    for position, message in enumerate(agent.objects("messages"), 1):
        role = message.text("role")
        content = _answer(message) if role == "assistant" else _question(message)
        if role in ("user", "assistant") and content:
            yield Utterance(
                session=session,
                peer=user if role == "user" else name,
                id=message.text_or_none("id") or f"#{position}",
                content=content,
                at=message.time("created_at"),
                title=name,
                is_assistant=role == "assistant",
            )


def _text(message: Fields) -> str:
    """The text of a message, which is a text or a list of parts."""
    content = message.raw("content")
    if content is None:
        content = message.raw("text")
    if isinstance(content, str):
        return storable(content).strip()
    if content is None:
        return ""
    if not isinstance(content, list):
        raise message.wrong("content", "a text or a list")
    texts = [
        part.get("text")
        for part in content
        if isinstance(part, dict) and part.get("type", "text") == "text"
    ]
    return storable("\n".join(text for text in texts if isinstance(text, str))).strip()


def _question(message: Fields) -> str:
    """What the user wrote. Older agents store it as JSON, as they do their own events."""
    text = _text(message)
    if not text.startswith("{"):
        return text
    event = _json(text)
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return text
    inner = event.get("message")
    is_question = event["type"] == "user_message" and isinstance(inner, str)
    return storable(str(inner)).strip() if is_question else ""


def _answer(message: Fields) -> str:
    """What the agent wrote to the user: for older agents, the argument of a tool."""
    for call in message.objects("tool_calls"):
        function = call.inner("function")
        if function is not None and function.text_or_none("name") == SEND:
            arguments = _json(function.text_or_none("arguments") or "")
            sent = arguments.get("message") if isinstance(arguments, dict) else None
            if not isinstance(sent, str):
                raise function.wrong("arguments", "JSON with a `message`")
            return storable(sent).strip()
    return "" if message.objects("tool_calls") else _text(message)


def _json(text: str) -> Any:
    try:
        return loads(text.encode())
    except InvalidInput:
        return None
