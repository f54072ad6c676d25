"""Visibility of sessions: archived ones are hidden unless a caller includes them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memservice.domain.filters import TRUE, Condition, all_of, equals, matches
from memservice.domain.filters.ast import Compare, Not
from memservice.domain.records import (
    ARCHIVED,
    DELETING,
    ERASED,
    ERASED_PREFIX,
    Member,
    Message,
    Peer,
    Session,
)
from memservice.spi.repositories import Located
from memservice.spi.storage import Transaction


def find(
    tx: Transaction,
    workspace_id: str,
    session_id: str | None = None,
    peer_id: str | None = None,
    message_uid: str | None = None,
) -> Located:
    """Like `tx.workspaces.locate`, without an archived session and its message."""
    located = tx.workspaces.locate(workspace_id, session_id, peer_id, message_uid)
    if located.session is not None and located.session.state == ARCHIVED:
        return replace(located, session=None, message=None)
    return located


def visible(tx: Transaction, workspace_key: int, *, include_archived: bool = False) -> Condition:
    """Condition that excludes the messages of sessions being erased and, unless `include_archived`,
    of archived ones."""
    states = (DELETING,) if include_archived else (ARCHIVED, DELETING)
    hidden = tuple(
        session.key
        for session in tx.rows.page(Session, equals(workspace_key=workspace_key, state=states))
    )
    return Not(equals(session_key=hidden)) if hidden else TRUE


def without_erased(
    tx: Transaction, workspace_key: int, messages: Sequence[Message]
) -> Sequence[Message]:
    """These messages without those of peers being erased."""
    condition = not_erased(tx, workspace_key, "author_key")
    if condition == TRUE:
        return messages
    return [message for message in messages if matches(message, condition)]


def has_erased(tx: Transaction, session: Session) -> bool:
    """Whether a peer that is being erased was a member of a session."""
    return bool(tx.rows.count(Member, equals(session_key=session.key, kind=ERASED), limit=1))


def not_erased(tx: Transaction, workspace_key: int, *fields: str) -> Condition:
    """Condition that excludes the rows of peers being erased, which `fields` name by key. Such rows
    still have the id of the peer, which a new peer may have."""
    keys = erased_peers(tx, workspace_key)
    return not_of(keys, *fields) if keys else TRUE


def not_of(keys: tuple[int, ...], *fields: str) -> Condition:
    """Condition that excludes the rows of these peers, which `fields` name by key."""
    return all_of(*(Not(equals(**{field: keys})) for field in fields))


def erased_peers(tx: Transaction, workspace_key: int) -> tuple[int, ...]:
    """Keys of the peers of a workspace that are being erased."""
    of_workspace = equals(workspace_key=workspace_key, kind=ERASED)
    names = all_of(
        Compare("slug", "gte", ERASED_PREFIX), Compare("slug", "lt", ERASED_PREFIX[:-1] + "/")
    )
    return tuple(peer.key for peer in tx.rows.page(Peer, all_of(of_workspace, names)))
