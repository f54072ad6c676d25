"""Metamessages: notes about a user, or about one of its sessions, or about a message in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
"""And the kind, of the notes that hold a session's summaries."""

REPRESENTATION_LABEL = "honcho_user_representation"
"""Of the notes that hold what was known of a user when it was asked in a session."""


@dataclass(frozen=True, slots=True)
class Note:
    """A metamessage, and the uids of what it is about."""

    row: Metamessage
    session: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class NoteDraft:
    """What is given of a metamessage; None where nothing is said."""

    label: str | None = None
    content: str | None = None
    session: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] | None = None


def create(rt: Runtime, principal: Principal, path: Path, draft: NoteDraft) -> Note:
    """About the user alone, or a session of it, or a message of that session."""
    stored = validation.metadata(draft.metadata) or {}
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
            metadata=stored,
            created_at=rt.clock(),
        )
        return _noted(tx, tx.rows.put([row]))[0]

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


def _noted(tx: Transaction, rows: Sequence[Metamessage]) -> list[Note]:
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
    found = resolve.find_user(tx, path)
    row = (
        None
        if found is None
        else tx.rows.get(Metamessage, equals(uid=uid, owner_key=found[1].key), lock=lock)
    )
    if found is None or row is None:
        raise NotFound(f"Metamessage with ID {uid} not found")
    return found[1], row


def get(rt: Runtime, principal: Principal, path: Path, uid: str) -> Note:
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, path)
        return _noted(tx, [_owned(tx, path, uid)[1]])[0]


def page(
    rt: Runtime,
    principal: Principal,
    path: Path,
    note_draft: NoteDraft,
    filter_: object,
    paging: Paging,
) -> Page[Note]:
    """In the order in which they were created: all of the user, or those with this label, about
    this session, about this message."""
    condition = parse_containment(filter_)
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, path)
        found = resolve.find_user(tx, path)
        if found is None:
            return paging.empty()
        matching = all_of(
            condition, equals(owner_key=found[1].key), _wanted(tx, found[1], note_draft)
        )
        listed = records(tx.rows, Metamessage, matching, paging)
        return Page(_noted(tx, listed.items), listed.total, paging.page, paging.size)


def _wanted(tx: Transaction, user: Peer, note_draft: NoteDraft) -> Condition:
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
    """Replace what is given; what a note is about can be changed, not taken away."""
    stored = validation.metadata(draft.metadata)

    def change(tx: Transaction) -> Note:
        resolve.authorise(tx, principal, path)
        user, row = _owned(tx, path, uid, lock=True)
        about = None if row.session_key is None else tx.sessions.by_key(row.session_key)
        if about is not None and about.state == DELETING:
            raise resolve.no_session()
        session = _session(rt, tx, principal, user, draft.session) if draft.session else None
        if draft.message and session is None:
            session = about
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
            message_key=_still(row, session) if message is None else message.key,
            label=row.label if draft.label is None else strip_nul(draft.label),
            metadata=row.metadata if stored is None else stored,
        )
        return _noted(tx, [row] if changed == row else tx.rows.put([changed]))[0]

    return rt.storage.write(change)


def _still(row: Metamessage, session: Session | None) -> int | None:
    """The message that a note stays about: none of another session."""
    return None if session is not None and session.key != row.session_key else row.message_key


def copy_of(original: Session) -> CopyHook:
    """What copies a session's metamessages along with it, those of messages that were not copied
    excepted."""

    def copied(tx: Transaction, session: Session, messages: Mapping[int, int]) -> None:
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

    return copied


def note_summary(
    rt: Runtime, tx: Transaction, session: Session, summary: Summary, messages: int
) -> None:
    """Keep a summary as generation 1 does: a note of the session's owner about the newest message
    that it covers.

    A session that the later generations made is every member's, so each has the note; but only
    where generation 1 is in use.
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
    """The users that generation 1 shows the session to; none in a workspace in which it never made
    a session (it has no assistant), and not its owner once that has left it."""
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
    """Note what is known of a user, beside the newest thing that it said in the session. False if
    it said nothing there, if nothing is known, or if that is what the last such note says."""
    newest = (Order("seq", descending=True),)
    said = tx.rows.page(
        Message, equals(session_key=session.key, author_key=user.key), newest, limit=1
    )
    if not said or not text.strip():
        return False
    of_session = equals(session_key=session.key, label=REPRESENTATION_LABEL)
    last = tx.rows.page(
        Metamessage,
        of_session,
        (Order("created_at", descending=True), Order("key", descending=True)),
        limit=1,
    )
    if last and (last[0].content, last[0].message_key) == (text, said[0].key):
        return False
    row = Metamessage(
        uid=new_uid(),
        workspace_key=session.workspace_key,
        owner_key=user.key,
        session_key=session.key,
        message_key=said[0].key,
        label=REPRESENTATION_LABEL,
        content=text,
        created_at=rt.clock(),
    )
    tx.rows.put([row])
    return True
