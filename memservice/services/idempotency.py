"""`Idempotency-Key`: a repeated request to create messages returns the messages of the first one.

A key is stored for at least `RETENTION_IDEMPOTENCY_HOURS`, per session.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import equals
from memservice.domain.records import IdempotencyKey, Message, Session
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction


class Request(Struct, frozen=True):
    """The digests of a caller's key and of its request."""

    digest: str
    content_digest: str


def request(key: str, content: Sequence[Mapping[str, Any]]) -> Request:
    return Request(_digest(key), _digest(json.dumps(content, sort_keys=True, default=str)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def stored_messages(
    tx: Transaction, session: Session, request: Request | None
) -> list[Message] | None:
    """The messages stored under this key before, in order; None if it is new. Call it while the
    session's row is locked.

    InvalidInput if the key belongs to another request: with the response of that one, the new
    messages would be lost.
    """
    idempotency_key = (
        None
        if request is None
        else tx.rows.get(IdempotencyKey, equals(session_key=session.key, digest=request.digest))
    )
    if request is None or idempotency_key is None:
        return None
    if idempotency_key.request != request.content_digest:
        raise InvalidInput.at(
            "idempotency_key",
            message="This key was used for other messages; each request needs its own",
        )
    messages_by_key = tx.messages.by_keys(idempotency_key.message_keys)
    return [
        messages_by_key[number]
        for number in idempotency_key.message_keys
        if number in messages_by_key
    ]


def remember(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    request: Request | None,
    messages: Sequence[Message],
) -> None:
    if request is not None:
        row = IdempotencyKey(
            workspace_key=session.workspace_key,
            session_key=session.key,
            digest=request.digest,
            request=request.content_digest,
            message_keys=[message.key for message in messages],
            created_at=rt.clock(),
        )
        tx.rows.put([row])
