"""Users, threads and facts of Zep: a document of the answers of its API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from memservice.services.transfer.histories.fields import Fields
from memservice.services.transfer.histories.items import Item, Outdated, Statement, Utterance
from memservice.services.transfer.histories.json_reader import entries
from memservice.services.transfer.lines import UnreadableExport

THREADS = ("threads", "sessions")
FACTS = ("facts", "edges")
ROLES = ("user", "assistant", "system", "tool", "function", "norole")


def read(file: IO[bytes], user: str) -> Iterator[Item]:
    """Threads (`sessions` of version 2) with their messages, and facts (`edges` of a user's
    graph). Both can also be inside of `users`."""
    is_empty = True
    for entry in entries(file, ("users", *THREADS, *FACTS)):
        if entry.key == "users":
            owner = Fields(entry.value, entry.where)
            name = owner.text("user_id")
            for kind in THREADS:
                for thread in owner.objects(kind):
                    yield from _thread(thread, name)
            for kind in FACTS:
                for fact in owner.objects(kind):
                    yield _fact(fact, name)
        elif entry.key in THREADS:
            yield from _thread(Fields(entry.value, entry.where), user)
        elif entry.key in FACTS:
            yield _fact(Fields(entry.value, entry.where), user)
        else:
            continue
        is_empty = False
    if is_empty:
        raise UnreadableExport(
            f"the file has none of `users`, {', '.join(f'`{name}`' for name in (*THREADS, *FACTS))}"
        )


def _thread(thread: Fields, owner: str) -> Iterator[Item]:
    session = thread.text("thread_id", "session_id")
    user = thread.text_or_none("user_id") or owner
    for number, message in enumerate(thread.objects("messages"), 1):
        role = message.text("role_type", "role")
        if role not in ROLES:
            raise message.wrong("role", f"one of {', '.join(ROLES)}")
        content = message.text_or_none("content")
        if role not in ("user", "assistant") or content is None:
            continue
        yield Utterance(
            session=session,
            peer=user if role == "user" else message.text_or_none("name") or "assistant",
            id=message.text_or_none("uuid") or f"#{number}",
            content=content,
            at=message.time("created_at") or thread.time("created_at"),
            is_assistant=role == "assistant",
            metadata=message.metadata("metadata"),
        )


def _fact(fact: Fields, owner: str) -> Item:
    content = fact.text("fact")
    uuid = fact.text("uuid", "uuid_")
    peer = fact.text_or_none("user_id") or owner
    if fact.time("invalid_at") or fact.time("expired_at"):
        return Outdated()
    return Statement(
        peer=peer, id=uuid, content=content, at=fact.time("valid_at") or fact.time("created_at")
    )
