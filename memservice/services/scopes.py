"""Scopes: named sets of sessions with a memory of their own. A scope is a hidden peer that observes its sessions and never speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memservice.domain.errors import Conflict, InvalidInput, NotFound, Problem
from memservice.domain.filters import TRUE, Node, where
from memservice.domain.filters.ast import Not
from memservice.domain.ids import new_uid
from memservice.domain.records import (
    ACTIVE,
    EXPLICIT,
    FAILED,
    PENDING,
    SCOPE,
    SCOPE_PREFIX,
    Member,
    Peer,
    ScopeSession,
    Session,
    Workspace,
)
from memservice.domain.values import SCOPE_NAME_MAX, name_problem
from memservice.runtime import Runtime
from memservice.services import (
    validation,
    workspaces,
)
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, read_page
from memservice.services.tasks import outbox
from memservice.spi.storage import View


def require_name(name: str, loc: validation.Loc) -> None:
    """The name of a scope that is about to be created, without the prefix."""
    problem = name_problem(name, SCOPE_NAME_MAX)
    if problem is not None:
        raise InvalidInput(Problem(loc, problem, "string_pattern_mismatch"))


def require_names(names: Sequence[str]) -> None:
    """The names of scopes as a session's creation lists them; all bad ones are reported."""
    problems = []
    for index, name in enumerate(names):
        problem = name_problem(name, SCOPE_NAME_MAX)
        if problem is not None:
            problems.append(Problem(("body", "scopes", index), problem, "string_pattern_mismatch"))
    if problems:
        raise InvalidInput(*problems)


def missing(name: str, workspace: str) -> NotFound:
    return NotFound(f"Scope {name} not found in workspace {workspace}")


def held_by_others(view: View, workspace: Workspace) -> Node:
    """The condition of conclusions that no scope holds: a scope has copies of what others hold."""
    keys = tuple(peer.key for peer in view.rows.page(Peer, where(workspace_key=workspace.key, kind=SCOPE)))
    return Not(where(observer_key=keys)) if keys else TRUE


def find(view: View, workspace: Workspace, name: str, *, lock: bool = False) -> Peer:
    peer = view.peers.by_slug(workspace.key, SCOPE_PREFIX + name, lock=lock)
    if peer is None or peer.kind != SCOPE:
        raise missing(name, workspace.slug)
    return peer


def _locate(view: View, workspace: str, name: str) -> Peer:
    """As `find`, from the workspace's name. One statement."""
    peer = view.workspaces.locate(workspace, peer=SCOPE_PREFIX + name).peer
    if peer is None or peer.kind != SCOPE:
        raise missing(name, workspace)
    return peer


def ensure(rt: Runtime, view: View, workspace: Workspace, name: str, metadata: Mapping[str, Any] | None = None) -> tuple[Peer, bool]:
    """The scope of that name and whether it was created now, with this metadata if it was."""
    slug = SCOPE_PREFIX + name
    found = view.peers.by_slug(workspace.key, slug)
    if found is not None:
        if found.kind != SCOPE:
            raise Conflict(f"The name {slug} is taken by a peer that is not a scope")
        return found, False
    uid = new_uid()
    peer = Peer(
        uid=uid,
        workspace_key=workspace.key,
        slug=slug,
        v1_name=uid,
        kind=SCOPE,
        metadata=dict(metadata or {}),
        configuration={"observe_me": False},
        created_at=rt.clock(),
    )
    return view.peers.put([peer])[0], True


def get_or_create(rt: Runtime, who: Principal, workspace: str, name: str, metadata: Mapping[str, Any] | None) -> tuple[Peer, bool]:
    """The scope and whether it was created now. Given metadata replaces that of an existing one. Creates a workspace that is missing."""
    policy.require(who, workspace)
    require_name(name, ("body", "id"))
    stored = validation.metadata(metadata)

    def change(view: View) -> tuple[Peer, bool]:
        place, _ = workspaces.ensure(rt, view, workspace)
        scope, created = ensure(rt, view, place, name, stored)
        if created or stored is None:
            return scope, created
        return view.peers.put([replace(find(view, place, name, lock=True), metadata=stored)])[0], False

    return rt.storage.write(change)


def get(rt: Runtime, who: Principal, workspace: str, name: str) -> Peer:
    policy.require(who, workspace)
    with rt.storage.read() as view:
        return _locate(view, workspace, name)


def page(rt: Runtime, who: Principal, workspace: str, paging: Paging) -> Page[Peer]:
    policy.require(who, workspace)
    condition = where(kind=SCOPE)
    with rt.storage.read() as view:
        place = view.workspaces.by_slug(workspace)
        if place is None:
            return Page([], 0, paging.page, paging.size)
        key = place.key
        return read_page(
            paging,
            lambda: view.peers.page(key, condition, paging.order("created_at"), paging.size, paging.offset),
            lambda: view.peers.count(key, condition),
        )


def sessions_page(rt: Runtime, who: Principal, workspace: str, name: str, paging: Paging) -> Page[Session]:
    """Active sessions that are in the scope now, in the order in which they joined it."""
    policy.require(who, workspace)
    with rt.storage.read() as view:
        scope = _locate(view, workspace, name)
        items, total = view.sessions.page_of_scope(scope.key, where(state=ACTIVE), paging.reverse, paging.size, paging.offset)
        return Page(items, total, paging.page, paging.size)


def status(rt: Runtime, who: Principal, workspace: str, name: str) -> dict[str, ScopeSession]:
    """How far the copying of what is known from each session is, by session. A session that had no messages when it joined has no entry."""
    policy.require(who, workspace)
    with rt.storage.read() as view:
        scope = _locate(view, workspace, name)
        return {entry.session: entry for entry in view.rows.page(ScopeSession, where(scope_key=scope.key))}


def add_sessions(rt: Runtime, who: Principal, workspace: str, name: str, sessions: Sequence[str]) -> None:
    """Put sessions into the scope, all or none: each must exist and be active. Those that are in it already stay as they are."""
    policy.require(who, workspace)

    def change(view: View) -> None:
        place, scope = _require(view, workspace, name)
        # In sorted order, so that two callers never wait on each other in a ring.
        for slug in sorted(set(sessions)):
            add_session(rt, view, scope, _active(view, place, slug))

    rt.storage.write(change)


def remove_session(rt: Runtime, who: Principal, workspace: str, name: str, session: str) -> None:
    """Take a session out of the scope. What the scope knows from it is taken away by a task. A session that is not in it stays out."""
    policy.require(who, workspace)

    def change(view: View) -> None:
        place, scope = _require(view, workspace, name)
        found = _active(view, place, session)
        member = view.members.one(found.key, scope.key, lock=True)
        inside = member is not None and member.left_at is None
        if member is not None and inside:
            view.members.put([replace(member, left_at=rt.clock(), left_seq=found.message_count)])
        # What a removal that failed has left behind is tried again.
        if inside or _knows(view, scope, found):
            view.tasks.add([outbox.scope_removal(rt, scope, found)])

    rt.storage.write(change)


def _knows(view: View, scope: Peer, session: Session) -> bool:
    """Does the scope hold anything from that session, or wait for it?"""
    entry = view.rows.get(ScopeSession, where(scope_key=scope.key, session_key=session.key))
    held = where(observer_key=scope.key, session_key=session.key, level=EXPLICIT)
    return entry is not None or bool(view.conclusions.page(session.workspace_key, held, limit=1))


def _require(view: View, workspace: str, name: str) -> tuple[Workspace, Peer]:
    place = view.workspaces.by_slug(workspace)
    if place is None:
        raise missing(name, workspace)
    return place, find(view, place, name)


def _active(view: View, place: Workspace, slug: str) -> Session:
    """The active session of that name, held until commit."""
    found = view.sessions.by_slug(place.key, slug, lock=True)
    if found is None or found.state != ACTIVE:
        raise NotFound(f"Session {slug} not found in workspace {place.slug}")
    return found


def add_session(rt: Runtime, view: View, scope: Peer, session: Session) -> bool:
    """Make the scope a member that observes; False if it was one. A session that has messages waits for its backfill, and one whose
    backfill failed waits for another. The session's row is held by the caller."""
    member = view.members.one(session.key, scope.key, lock=True)
    if member is not None and member.left_at is None:
        if view.rows.get(ScopeSession, where(scope_key=scope.key, session_key=session.key, state=FAILED)) is not None:
            _await_backfill(rt, view, scope, session)
        return False
    now = rt.clock()
    if member is None:
        member = Member(
            workspace_key=session.workspace_key,
            session_key=session.key,
            peer_key=scope.key,
            session=session.slug,
            peer=scope.slug,
            kind=SCOPE,
            observe_me=False,
            observe_others=True,
            joined_at=now,
        )
    view.members.put([replace(member, joined_at=now, left_at=None, left_seq=None)])
    if session.message_count:
        _await_backfill(rt, view, scope, session)
    return True


def _await_backfill(rt: Runtime, view: View, scope: Peer, session: Session) -> None:
    view.rows.delete(ScopeSession, where(scope_key=scope.key, session_key=session.key))
    entry = ScopeSession(
        workspace_key=session.workspace_key,
        scope_key=scope.key,
        session_key=session.key,
        session=session.slug,
        state=PENDING,
        updated_at=rt.clock(),
    )
    view.rows.put([entry])
    view.tasks.add([outbox.scope_backfill(rt, scope, session)])


def member_sessions(view: View, scope: Peer) -> list[Member]:
    """The scope's present memberships."""
    return view.members.of_peer(scope.key, active=True)
