"""Sessions of a user: with an owner, named by uid, and archived instead of deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memservice.domain.errors import NotFound
from memservice.domain.filters import all_of, equals, parse_containment
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, ARCHIVED, DELETING, Session
from memservice.runtime import Runtime
from memservice.services import cloning, validation, workspaces
from memservice.services import sessions as shared
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, listing
from memservice.services.v1 import metamessages, resolve, users
from memservice.services.v1.resolve import Path
from memservice.spi.storage import Transaction


def create(
    rt: Runtime, principal: Principal, path: Path, metadata: Mapping[str, Any] | None
) -> Session:
    """Create a session of the user, with the user and the app's assistant as members."""
    new_metadata = validation.metadata(metadata) or {}

    def change(tx: Transaction) -> Session:
        resolve.authorise(tx, principal, path)
        workspace, user = resolve.require_user(tx, path)
        if not workspaces.lock_active(tx, workspace.key):
            raise resolve.no_user(path.user or "")
        uid = new_uid()
        session = tx.sessions.save(
            Session(
                uid=uid,
                workspace_key=workspace.key,
                slug=uid,
                owner_key=user.key,
                metadata=new_metadata,
                created_at=rt.clock(),
            )
        )
        assistant = users.assistant_of(rt, tx, workspace)
        config = {
            user.slug: shared.MemberConfig(observe_me=True),
            assistant.slug: shared.MemberConfig(observe_me=False),
        }
        shared.join(rt, tx, session, {user.slug: user, assistant.slug: assistant}, config)
        return session

    return rt.storage.write(change)


def get(rt: Runtime, principal: Principal, path: Path, uid: str | None) -> Session:
    """The user's session with that uid, or the session of the key."""
    with rt.storage.read() as tx:
        workspace = resolve.app_of(tx, path.app)
        own_session = (
            tx.sessions.by_slug(workspace.key, principal.session_id)
            if workspace is not None and principal.is_session and principal.session_id is not None
            else None
        )
        session_uid = resolve.requested_id(
            uid, own_session.uid if own_session is not None else None, "Session"
        )
        resolve.authorise(tx, principal, replace(path, session=session_uid))
        match = resolve.find_user(tx, path)
        session = (
            None
            if match is None
            else resolve.find_session(rt, tx, principal, match[1], session_uid)
        )
    if session is None:
        raise resolve.no_session()
    return session


def page(
    rt: Runtime,
    principal: Principal,
    path: Path,
    filter_: object,
    only_active: bool,
    paging: Paging,
) -> Page[Session]:
    """Sessions in the order of creation; with archived ones unless `only_active`."""
    condition = parse_containment(filter_)
    if only_active:
        condition = all_of(condition, equals(state=ACTIVE))
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, path)
        match = resolve.find_user(tx, path)
        if match is None:
            return paging.empty()
        workspace, user = match
        condition = all_of(condition, resolve.sessions_of(rt, tx, user))
        return listing(tx.sessions, paging, workspace.key, condition)


def update(rt: Runtime, principal: Principal, path: Path, metadata: Mapping[str, Any]) -> Session:
    """Replace the metadata."""
    new_metadata = validation.metadata(metadata) or {}

    def change(tx: Transaction) -> Session:
        resolve.authorise(tx, principal, path)
        _, user = resolve.require_user(tx, path)
        session = resolve.require_session(rt, tx, principal, user, path.session)
        return tx.sessions.save(replace(session, metadata=new_metadata))

    return rt.storage.write(change)


def archive(rt: Runtime, principal: Principal, path: Path) -> None:
    """Archive a session permanently: it remains in this generation and is hidden in the others.
    Archiving it again changes nothing."""

    def change(tx: Transaction) -> None:
        resolve.authorise(tx, principal, path)
        match = resolve.find_user(tx, path)
        if match is None:
            raise resolve.no_session()
        session = resolve.require_session(rt, tx, principal, match[1], path.session)
        if session.state == ACTIVE:
            tx.sessions.save(replace(session, state=ARCHIVED))

    rt.storage.write(change)


def clone(rt: Runtime, principal: Principal, path: Path, upto: str | None, deep: bool) -> Session:
    """An active copy with the messages up to and including `upto` (a message's uid); with `deep`
    also the session's metamessages, without those of messages that were not copied."""
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, path)
        match = resolve.find_user(tx, path)
        session = (
            None
            if match is None
            else resolve.find_session(rt, tx, principal, match[1], path.session)
        )
        if session is None or session.state == DELETING:
            raise NotFound("Session not found")
        resolve.require_own(principal, session)
        original = cloning.original_of(tx, session, upto)
    return cloning.copy(rt, original, metamessages.copy_of(session) if deep else None)
