"""Metamessages: notes about a user, one of its sessions, or a message in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import InvalidInput, NotFound
from memservice.domain.filters import FALSE, Condition, all_of, equals, parse_containment
from memservice.domain.ids import new_uid
from memservice.domain.records import DELETING, SHORT, Message, Metamessage, Peer, Session, Summary
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import validation
from memservice.services.auth.principal import Principal
from memservice.services.cloning import CopyHook
from memservice.services.paging import Page, Paging, records
from memservice.services.v1 import resolve
from memservice.services.v1.resolve import Path
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

SUMMARY_LABEL = "honcho_chat_summary_"
"""Prefix of the label of notes with a session's summaries; the kind follows."""

REPRESENTATION_LABEL = "honcho_user_representation"
"""Label of notes with the representation of a user at the time of a chat."""


class Note(Struct, frozen=True):
    """A metamessage, and the uids of its session and message."""

    row: Metamessage
    session: str | None
    message: str | None


class NoteDraft(Struct, frozen=True):
    """Fields of a metamessage; None: not set."""

    label: str | None = None
    content: str | None = None
    session: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] | None = None


def create(rt: Runtime, principal: Principal, path: Path, draft: NoteDraft) -> Note:
    """Create a note about the user, a session of it, or a message of that session."""
    new_metadata = validation.metadata(draft.metadata) or {}
    if draft.message and not draft.session:
        raise _session_needed()

    def change(tx: Transaction) -> Note:
        resolve.authorise(tx, principal, path)
        workspace, user = resolve.require_user(tx, path)
        session = _session(rt, tx, principal, user, draft.session) if draft.session else None
        message = (
            _message(tx, session, draft.message, "to")
            if session is not None and draft.message
            else None
        )
        row = Metamessage(
            uid=new_uid(),
            workspace_key=workspace.key,
            owner_key=user.key,
            session_key=None if session is None else session.key,
            message_key=None if message is None else message.key,
            label=strip_nul(draft.label or ""),
            content=strip_nul(draft.content or ""),
            metadata=new_metadata,
            created_at=rt.clock(),
        )
        return _notes_of(tx, tx.rows.put([row]))[0]

    return rt.storage.write(change)


def _session_needed() -> InvalidInput:
    return InvalidInput.at("session_id", message="Cannot specify message_id without session_id")


def _session(rt: Runtime, tx: Transaction, principal: Principal, user: Peer, uid: str) -> Session:
    session = resolve.find_session(rt, tx, principal, user, uid)
    if session is None or session.state == DELETING:
        raise resolve.no_session()
    return session


def _message(tx: Transaction, session: Session, uid: str, words: str) -> Message:
    message = tx.messages.by_uid(session.key, uid)
    if message is None:
        raise NotFound(
            f"Message not found or {'does not' if words == 'to' else words} belong to session"
        )
    return message


def _notes_of(tx: Transaction, rows: Sequence[Metamessage]) -> list[Note]:
    sessions = {
        session.key: session.uid
        for session in tx.sessions.by_keys(
            sorted({row.session_key for row in rows if row.session_key})
        )
    }
    messages = tx.messages.by_keys(sorted({row.message_key for row in rows if row.message_key}))
    uids = {key: message.uid for key, message in messages.items()}
    return [
        Note(row, sessions.get(row.session_key or 0), uids.get(row.message_key or 0))
        for row in rows
    ]


def _owned(
    tx: Transaction, path: Path, uid: str, *, lock: bool = False
) -> tuple[Peer, Metamessage]:
    match = resolve.find_user(tx, path)
    row = (
        None
        if match is None
        else tx.rows.get(Metamessage, equals(uid=uid, owner_key=match[1].key), lock=lock)
    )
    if match is None or row is None:
        raise NotFound(f"Metamessage with ID {uid} not found")
    return match[1], row


def get(rt: Runtime, principal: Principal, path: Path, uid: str) -> Note:
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, path)
        return _notes_of(tx, [_owned(tx, path, uid)[1]])[0]


def page(
    rt: Runtime,
    principal: Principal,
    path: Path,
    note_draft: NoteDraft,
    filter_: object,
    paging: Paging,
) -> Page[Note]:
    """Notes in the order of creation: all of the user, or those with this label, session or
    message."""
    condition = parse_containment(filter_)
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, path)
        match = resolve.find_user(tx, path)
        if match is None:
            return paging.empty()
        matching = all_of(
            condition, equals(owner_key=match[1].key), _condition_of(tx, match[1], note_draft)
        )
        metamessages = records(tx.rows, Metamessage, matching, paging)
        return Page(_notes_of(tx, metamessages.items), metamessages.total, paging.page, paging.size)


def _condition_of(tx: Transaction, user: Peer, note_draft: NoteDraft) -> Condition:
    parts = [equals(label=note_draft.label)] if note_draft.label else []
    if note_draft.session:
        session = tx.rows.get(
            Session, equals(uid=note_draft.session, workspace_key=user.workspace_key)
        )
        parts.append(FALSE if session is None else equals(session_key=session.key))
    if note_draft.message:
        message = tx.rows.get(
            Message, equals(uid=note_draft.message, workspace_key=user.workspace_key)
        )
        parts.append(FALSE if message is None else equals(message_key=message.key))
    return all_of(*parts)


def update(rt: Runtime, principal: Principal, path: Path, uid: str, draft: NoteDraft) -> Note:
    """Replace the fields that are set. The session and the message of a note can be changed, not
    removed."""
    new_metadata = validation.metadata(draft.metadata)

    def change(tx: Transaction) -> Note:
        resolve.authorise(tx, principal, path)
        user, row = _owned(tx, path, uid, lock=True)
        current_session = None if row.session_key is None else tx.sessions.by_key(row.session_key)
        if current_session is not None and current_session.state == DELETING:
            raise resolve.no_session()
        session = _session(rt, tx, principal, user, draft.session) if draft.session else None
        if draft.message and session is None:
            session = current_session
            if session is None:
                raise _session_needed()
        message = (
            _message(tx, session, draft.message, "doesn't")
            if session is not None and draft.message
            else None
        )
        changed = replace(
            row,
            session_key=row.session_key if session is None else session.key,
            message_key=_remaining_message(row, session) if message is None else message.key,
            label=row.label if draft.label is None else strip_nul(draft.label),
            metadata=row.metadata if new_metadata is None else new_metadata,
        )
        return _notes_of(tx, [row] if changed == row else tx.rows.put([changed]))[0]

    return rt.storage.write(change)


def _remaining_message(row: Metamessage, session: Session | None) -> int | None:
    """The key of the note's message after a change of session: None if it belongs to another
    session."""
    return None if session is not None and session.key != row.session_key else row.message_key


def copy_of(original: Session) -> CopyHook:
    """A hook that copies a session's metamessages with it, without those of messages that were not
    copied."""

    def copy_notes(tx: Transaction, session: Session, messages: Mapping[int, int]) -> None:
        copies = [
            replace(
                row,
                key=0,
                uid=new_uid(),
                session_key=session.key,
                message_key=None if row.message_key is None else messages[row.message_key],
                created_at=session.created_at,
            )
            for row in tx.rows.page(Metamessage, equals(session_key=original.key))
            if row.message_key is None or row.message_key in messages
        ]
        if copies:
            tx.rows.put(copies)

    return copy_notes


def note_summary(
    rt: Runtime, tx: Transaction, session: Session, summary: Summary, messages: int
) -> None:
    """Store a summary as generation 1 does: a note of the session's owner about the newest message
    that it covers.

    A session of the later generations belongs to all its members, so each gets the note, but only
    if generation 1 is in use.
    """
    owners = _readers(rt, tx, session)
    kind = "SHORT" if summary.kind == SHORT else "LONG"
    rows = [
        Metamessage(
            uid=new_uid(),
            workspace_key=session.workspace_key,
            owner_key=owner_key,
            session_key=session.key,
            message_key=summary.message_key,
            label=SUMMARY_LABEL + kind.lower(),
            content=summary.content,
            metadata={"message_count": messages, "summary_type": kind},
            created_at=rt.clock(),
        )
        for owner_key in owners
    ]
    if rows:
        tx.rows.put(rows)


def _readers(rt: Runtime, tx: Transaction, session: Session) -> list[int]:
    """The users to whom generation 1 shows the session. Empty if no session of generation 1 exists
    in the workspace (it has no assistant); without the owner after it has left."""
    if session.owner_key is not None:
        member = tx.members.one(session.key, session.owner_key)
        return [session.owner_key] if member is None or member.left_at is None else []
    if not rt.settings.api.v1_shared_sessions or not rt.settings.api.v1_enabled:
        return []
    if (
        tx.rows.get(Peer, equals(workspace_key=session.workspace_key, v1_role=resolve.ASSISTANT))
        is None
    ):
        return []
    members = tuple(member.peer_key for member in tx.members.of_session(session.key))
    return (
        [peer.key for peer in tx.rows.page(Peer, all_of(equals(key=members), resolve.USERS))]
        if members
        else []
    )


def note_representation(
    rt: Runtime, tx: Transaction, user: Peer, session: Session, text: str
) -> bool:
    """Store the representation of a user as a note about its newest message in the session. False
    if the user has no message there, the representation is empty, or the last such note is the
    same."""
    newest = (Order("seq", descending=True),)
    user_messages = tx.rows.page(
        Message, equals(session_key=session.key, author_key=user.key), newest, limit=1
    )
    if not user_messages or not text.strip():
        return False
    of_session = equals(session_key=session.key, label=REPRESENTATION_LABEL)
    last = tx.rows.page(
        Metamessage,
        of_session,
        (Order("created_at", descending=True), Order("key", descending=True)),
        limit=1,
    )
    if last and (last[0].content, last[0].message_key) == (text, user_messages[0].key):
        return False
    row = Metamessage(
        uid=new_uid(),
        workspace_key=session.workspace_key,
        owner_key=user.key,
        session_key=session.key,
        message_key=user_messages[0].key,
        label=REPRESENTATION_LABEL,
        content=text,
        created_at=rt.clock(),
    )
    tx.rows.put([row])
    return True
