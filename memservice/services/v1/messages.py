"""Messages of a user's session, by the user or by the assistant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from memservice.domain.errors import NotFound
from memservice.domain.filters import parse_containment
from memservice.domain.records import DELETING, Message, Peer, Session, Workspace
from memservice.runtime import Runtime
from memservice.services import idempotency, validation
from memservice.services import messages as shared
from memservice.services import sessions as shared_sessions
from memservice.services.auth.principal import Principal
from memservice.services.events import emit
from memservice.services.messages import Draft
from memservice.services.paging import Page, Paging
from memservice.services.v1 import resolve, users
from memservice.services.v1.resolve import Path
from memservice.spi.storage import Transaction


class UserMessageDraft(Struct, frozen=True):
    """A message that is not stored yet."""

    content: str
    is_user: bool
    metadata: Mapping[str, Any] | None = None


class UserMessage(Struct, frozen=True):
    """A message, and whether the user is its author."""

    message: Message
    is_user: bool


def _user_message(message: Message, user: Peer) -> UserMessage:
    return UserMessage(message, message.author_key == user.key)


def create(
    rt: Runtime,
    principal: Principal,
    path: Path,
    drafts: Sequence[UserMessageDraft],
    idempotency_key: str | None = None,
) -> list[UserMessage]:
    """Store messages in order, all or none, with the same time, and with the tasks that they cause.

    With an idempotency key that was used in this session before, returns the messages stored then
    and stores nothing; InvalidInput if the request differs.
    """
    once = (
        None
        if idempotency_key is None
        else idempotency.request(idempotency_key, [asdict(draft) for draft in drafts])
    )
    now = rt.clock()
    prepared = [
        shared.prepare(
            rt,
            Draft(draft.content, "", draft.metadata, created_at=now),
            ("messages", index),
        )
        for index, draft in enumerate(drafts)
    ]

    def store(tx: Transaction) -> tuple[str, Peer, list[Message], bool]:
        resolve.authorise(tx, principal, path)
        match = resolve.find_user(tx, path)
        if match is None:
            raise resolve.no_session()
        workspace, user = match
        session = resolve.require_session(rt, tx, principal, user, path.session)
        replayed = idempotency.stored_messages(tx, session, once)
        if replayed is not None or not drafts:
            return workspace.slug, user, replayed or [], False
        assistant = None
        if not all(draft.is_user for draft in drafts):
            assistant = _join_assistant(rt, tx, workspace, session)
        message_authors = [
            user if draft.is_user or assistant is None else assistant for draft in drafts
        ]
        authors = {peer.slug: peer for peer in message_authors}
        authored = [
            replace(item, author=peer.slug)
            for item, peer in zip(prepared, message_authors, strict=True)
        ]
        messages = shared.append(rt, tx, workspace, session, authors, authored)
        idempotency.remember(rt, tx, session, once, messages)
        return workspace.slug, user, messages, True

    app, user, messages, is_new = rt.storage.write(store)
    if is_new:
        emit.messages_created(rt, app, messages)
    return [_user_message(message, user) for message in messages]


def _join_assistant(rt: Runtime, tx: Transaction, workspace: Workspace, session: Session) -> Peer:
    """The author of messages that the user did not write, as a member of the session."""
    assistant = users.assistant_of(rt, tx, workspace)
    shared_sessions.join(
        rt,
        tx,
        session,
        {assistant.slug: assistant},
        {assistant.slug: shared_sessions.MemberConfig(observe_me=False)},
    )
    return assistant


def _find_session(
    rt: Runtime, tx: Transaction, principal: Principal, path: Path, *, lock: bool = False
) -> tuple[Peer, Session] | None:
    """The path's user and session, within the caller's rights."""
    resolve.authorise(tx, principal, path)
    match = resolve.find_user(tx, path)
    if match is None:
        return None
    _, user = match
    session = resolve.find_session(rt, tx, principal, user, path.session, lock=lock)
    return None if session is None else (user, session)


def page(
    rt: Runtime, principal: Principal, path: Path, filter_: object, paging: Paging
) -> Page[UserMessage]:
    """Messages in the order of storage."""
    condition = parse_containment(filter_)
    with rt.storage.read() as tx:
        match = _find_session(rt, tx, principal, path)
        if match is None:
            return paging.empty()
        user, session = match
        messages = shared.page_without_erased(rt, tx, session, condition, paging)
        return Page(
            [_user_message(message, user) for message in messages.items],
            messages.total,
            paging.page,
            paging.size,
        )


def get(rt: Runtime, principal: Principal, path: Path, uid: str) -> UserMessage:
    with rt.storage.read() as tx:
        match = _find_session(rt, tx, principal, path)
        message = None if match is None else tx.messages.by_uid(match[1].key, uid)
    if match is None or message is None:
        raise NotFound(f"Message with ID {uid} not found")
    return _user_message(message, match[0])


def update(
    rt: Runtime, principal: Principal, path: Path, uid: str, metadata: Mapping[str, Any]
) -> UserMessage:
    """Replace the metadata. The content never changes."""
    new_metadata = validation.metadata(metadata) or {}

    def change(tx: Transaction) -> UserMessage:
        # The lock keeps a deletion of the session from erasing the message before it is stored.
        match = _find_session(rt, tx, principal, path, lock=True)
        message = None if match is None else tx.messages.by_uid(match[1].key, uid)
        if match is None or message is None or match[1].state == DELETING:
            raise NotFound("Message not found")
        user, session = match
        resolve.require_own(principal, session)
        return _user_message(tx.messages.save(replace(message, metadata=new_metadata)), user)

    return rt.storage.write(change)
