"""`Idempotency-Key`: a retried message create answers what the first one stored.

What a key stored is remembered for at least `RETENTION_IDEMPOTENCY_HOURS`, with its session.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import equals
from memservice.domain.records import IdempotencyKey, Message, Session
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, and under which key of the caller's choice; both as digests."""

    digest: str
    asked: str


def request(key: str, asked: Sequence[Mapping[str, Any]]) -> Request:
    return Request(_digest(key), _digest(json.dumps(asked, sort_keys=True, default=str)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def replayed(tx: Transaction, session: Session, request: Request | None) -> list[Message] | None:
    """What was stored under this key before, in order; None if it is new. To be asked while the
    session's row is held.

    InvalidInput if it was another request: to answer as if that had been this one would lose
    messages.
    """
    idempotency_key = (
        None
        if request is None
        else tx.rows.get(IdempotencyKey, equals(session_key=session.key, digest=request.digest))
    )
    if request is None or idempotency_key is None:
        return None
    if idempotency_key.request != request.asked:
        raise InvalidInput.at(
            "idempotency_key",
            message="This key was used for other messages; each request needs its own",
        )
    stored = tx.messages.by_keys(idempotency_key.message_keys)
    return [stored[number] for number in idempotency_key.message_keys if number in stored]


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
            request=request.asked,
            message_keys=[message.key for message in messages],
            created_at=rt.clock(),
        )
        tx.rows.put([row])
