"""Sessions of a user: owned, known by uid, archived instead of deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memservice.domain.errors import NotFound
from memservice.domain.filters import all_of, parse_containment, where
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, ARCHIVED, DELETING, Session
from memservice.runtime import Runtime
from memservice.services import (
    cloning,
    validation,
    workspaces,
)
from memservice.services import sessions as shared
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, read_page
from memservice.services.v1 import (
    metamessages,
    resolve,
    users,
)
from memservice.services.v1.resolve import Path
from memservice.spi.storage import View


def create(rt: Runtime, who: Principal, path: Path, metadata: Mapping[str, Any] | None) -> Session:
    """A new session of the user, with the user and the app's assistant as members."""
    stored = validation.metadata(metadata) or {}

    def change(view: View) -> Session:
        resolve.authorise(view, who, path)
        app, user = resolve.require_user(view, path)
        if not workspaces.hold(view, app.key):
            raise resolve.no_user(path.user or "")
        uid = new_uid()
        session = view.sessions.save(
            Session(uid=uid, workspace_key=app.key, slug=uid, owner_key=user.key, metadata=stored, created_at=rt.clock())
        )
        assistant = users.assistant_of(rt, view, app)
        config = {user.slug: shared.MemberConfig(observe_me=True), assistant.slug: shared.MemberConfig(observe_me=False)}
        shared.join(rt, view, session, {user.slug: user, assistant.slug: assistant}, config)
        return session

    return rt.storage.write(change)


def get(rt: Runtime, who: Principal, path: Path, uid: str | None) -> Session:
    """The user's session of that uid, or the one that the key is for."""
    with rt.storage.read() as view:
        app = resolve.app_of(view, path.app)
        own = view.sessions.by_slug(app.key, who.session) if app is not None and who.is_session and who.session is not None else None
        wanted = resolve.chosen(uid, own.uid if own is not None else None, "Session")
        resolve.authorise(view, who, replace(path, session=wanted))
        found = resolve.find_user(view, path)
        session = None if found is None else resolve.find_session(rt, view, who, found[1], wanted)
    if session is None:
        raise resolve.no_session()
    return session


def page(rt: Runtime, who: Principal, path: Path, filter_: object, only_active: bool, paging: Paging) -> Page[Session]:
    """In the order in which they were created; archived ones too unless `only_active`."""
    condition = parse_containment(filter_)
    if only_active:
        condition = all_of(condition, where(state=ACTIVE))
    with rt.storage.read() as view:
        resolve.authorise(view, who, path)
        found = resolve.find_user(view, path)
        if found is None:
            return Page([], 0, paging.page, paging.size)
        app, user = found
        condition = all_of(condition, resolve.sessions_of(rt, view, user))
        return read_page(
            paging,
            lambda: view.sessions.page(app.key, condition, paging.order(), paging.size, paging.offset),
            lambda: view.sessions.count(app.key, condition),
        )


def update(rt: Runtime, who: Principal, path: Path, metadata: Mapping[str, Any]) -> Session:
    """Metadata is replaced."""
    stored = validation.metadata(metadata) or {}

    def change(view: View) -> Session:
        resolve.authorise(view, who, path)
        _, user = resolve.require_user(view, path)
        session = resolve.require_session(rt, view, who, user, path.session)
        return view.sessions.save(replace(session, metadata=stored))

    return rt.storage.write(change)


def archive(rt: Runtime, who: Principal, path: Path) -> None:
    """For good: the session goes on in this generation and is gone in the others. Archiving it again changes nothing."""

    def change(view: View) -> None:
        resolve.authorise(view, who, path)
        found = resolve.find_user(view, path)
        if found is None:
            raise resolve.no_session()
        session = resolve.require_session(rt, view, who, found[1], path.session)
        if session.state == ACTIVE:
            view.sessions.save(replace(session, state=ARCHIVED))

    rt.storage.write(change)


def clone(rt: Runtime, who: Principal, path: Path, upto: str | None, deep: bool) -> Session:
    """An active copy with the messages up to and including `upto` (a message's uid); with `deep` also the session's metamessages,
    without those of messages that were not copied."""
    with rt.storage.read() as view:
        resolve.authorise(view, who, path)
        found = resolve.find_user(view, path)
        session = None if found is None else resolve.find_session(rt, view, who, found[1], path.session)
        if session is None or session.state == DELETING:
            raise NotFound("Session not found")
        resolve.require_own(who, session)
        original = cloning.original_of(view, session, upto)
    return cloning.copy(rt, original, metamessages.copy_of(session) if deep else None)
