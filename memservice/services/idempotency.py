"""`Idempotency-Key`: a retried message create answers what the first one stored.

The keys of the messages are remembered as a fact of the store, by session and digest of the idempotency key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memservice.domain.filters.ast import All, Compare, Node
from memservice.domain.records import Message, Session
from memservice.runtime import Runtime
from memservice.spi.storage import View


def remembered(session: int) -> Node:
    """The condition on facts that are remembered of a session (its key): a range of names."""
    return All((Compare("name", "gte", f"idempotency:{session}:"), Compare("name", "lt", f"idempotency:{session};")))


def _name(session: Session, key: str) -> str:
    return f"idempotency:{session.key}:{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def replayed(view: View, session: Session, key: str | None) -> list[Message] | None:
    """What was stored under this key before, in order; None if it is new. To be asked while the session's row is held."""
    if key is None:
        return None
    value = view.facts.get(_name(session, key))
    if value is None:
        return None
    keys = [int(part) for part in value.split(",") if part]
    found = view.messages.by_keys(keys)
    return [found[number] for number in keys if number in found]


def remember(rt: Runtime, view: View, session: Session, key: str | None, messages: Sequence[Message]) -> None:
    if key is not None:
        view.facts.set(_name(session, key), ",".join(str(message.key) for message in messages))
