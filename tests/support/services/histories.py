"""Small files of every format of histories, made by us after the public documentation."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

MEM0 = {
    "results": [
        {
            "id": "m1",
            "memory": "Likes green tea",
            "user_id": "alice",
            "run_id": "run-7",
            "hash": "0af3",
            "metadata": {"category": "food"},
            "created_at": "2024-07-26T10:00:00.000000-07:00",
            "updated_at": None,
        },
        {"id": "m2", "memory": "Plays the cello", "user_id": "bob@example.com", "metadata": None},
        {"id": "m3", "memory": "Answers briefly", "agent_id": "helper"},
    ],
    "relations": [],
}
ZEP = {
    "users": [
        {
            "user_id": "alice",
            "first_name": "Alice",
            "edges": [
                {
                    "uuid": "e1",
                    "fact": "Alice lives in Porto",
                    "name": "LIVES_IN",
                    "valid_at": "2024-05-01T00:00:00Z",
                    "invalid_at": None,
                    "created_at": "2024-05-02T00:00:00Z",
                },
                {
                    "uuid": "e2",
                    "fact": "Alice lives in Lisbon",
                    "invalid_at": "2024-05-01T00:00:00Z",
                },
            ],
            "threads": [
                {
                    "thread_id": "t1",
                    "messages": [
                        {"uuid": "z1", "role": "user", "name": "Alice", "content": "I moved."},
                        {"uuid": "z2", "role": "assistant", "content": "Where to?"},
                        {"uuid": "z3", "role": "system", "content": "internal"},
                    ],
                }
            ],
        }
    ],
    "sessions": [
        {
            "session_id": "s2",
            "user_id": "bob",
            "messages": [
                {"uuid": "z4", "role": "Bob", "role_type": "user", "content": "I have a dog."}
            ],
        }
    ],
}
LETTA = {
    "agents": [
        {
            "id": "agent-0",
            "name": "Sam the helper",
            "block_ids": ["block-0", "block-1"],
            "messages": [
                {"id": "message-0", "role": "system", "content": "You are Sam."},
                {
                    "id": "message-1",
                    "role": "user",
                    "content": [{"type": "text", "text": "I am Chad."}],
                    "created_at": "2025-01-01T10:00:00+00:00",
                },
                {
                    "id": "message-2",
                    "role": "assistant",
                    "content": [{"type": "text", "text": "thinking"}],
                    "tool_calls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {
                                "name": "send_message",
                                "arguments": '{"message": "Hello, Chad!"}',
                            },
                        }
                    ],
                },
                {"id": "message-3", "role": "tool", "content": "ok"},
                {
                    "id": "message-4",
                    "role": "user",
                    "content": '{"type": "heartbeat", "reason": "timer"}',
                },
                {
                    "id": "message-5",
                    "role": "user",
                    "content": '{"type": "user_message", "message": "Bye."}',
                },
            ],
        }
    ],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Name: Chad\n\nLikes boats"},
        {"id": "block-1", "label": "persona", "value": "I am kind."},
    ],
    "groups": [],
    "tools": [],
}
OLDER_LETTA = {
    "agent_type": "memgpt_agent",
    "name": "sam",
    "core_memory": [{"label": "human", "value": "Name: Chad"}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    "version": "0.6.47",
}


def _node(name: str, parent: str | None, role: str, text: str, **message: Any) -> dict[str, Any]:
    return {
        "id": name,
        "parent": parent,
        "children": [],
        "message": {
            "id": f"msg-{name}",
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": 1714557600.5,
            "content": {"content_type": "text", "parts": [text]},
            "metadata": {},
            **message,
        },
    }


CHATGPT = [
    {
        "title": "Allergies",
        "create_time": 1714557600.0,
        "conversation_id": "6631f0a0-1111-4000-8000-000000000001",
        "current_node": "d",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["a"]},
            "a": _node(
                "a",
                "root",
                "system",
                "",
                metadata={"is_visually_hidden_from_conversation": True},
            ),
            "b": _node("b", "a", "user", "I am allergic to nuts."),
            "other": _node("other", "b", "assistant", "An answer that was regenerated."),
            "c": _node("c", "b", "assistant", "Noted."),
            "d": _node(
                "d",
                "c",
                "user",
                "",
                content={
                    "content_type": "multimodal_text",
                    "parts": [{"asset_pointer": "file"}, "And to shellfish."],
                },
            ),
        },
    },
    {
        "title": "Empty",
        "id": "6631f0a0-1111-4000-8000-000000000002",
        "mapping": {"root": {"id": "root", "message": None, "parent": None}},
        "current_node": "root",
    },
]
CLAUDE = [
    {
        "uuid": "c0ffee00-0000-4000-8000-000000000001",
        "name": "Trip",
        "created_at": "2024-06-01T08:00:00.000000Z",
        "account": {"uuid": "x"},
        "chat_messages": [
            {
                "uuid": "q1",
                "text": "older text",
                "content": [{"type": "text", "text": "I fly to Oslo."}],
                "sender": "human",
                "created_at": "2024-06-01T08:00:01.000000Z",
                "attachments": [],
            },
            {
                "uuid": "q2",
                "text": "Have fun.",
                "sender": "assistant",
                "created_at": "2024-06-01T08:00:02.000000Z",
            },
        ],
    }
]
CHAT = (
    {"session": "a", "peer": "maria", "content": "I moved to Porto.", "id": "1"},
    {"session": "b", "peer": "tom", "content": "I have a boat."},
    {"session": "a", "peer": "bot", "content": "Nice.", "assistant": True, "id": "2"},
)


def lines(*items: object) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in items)


TEXTS = {
    "mem0": json.dumps(MEM0, indent=1),
    "zep": json.dumps(ZEP),
    "letta": json.dumps(LETTA),
    "chatgpt": json.dumps(CHATGPT, indent=2),
    "claude": json.dumps(CLAUDE),
    "chat": lines(*CHAT),
}


def zipped(path: Path, **members: str) -> Path:
    """An archive with members; `__` in a name is the dot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)
    return path
