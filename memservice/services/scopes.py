"""Scopes: named sets of sessions with a memory of their own. A scope is a hidden peer that observes its sessions and never speaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memservice.domain.errors import Conflict, InvalidInput, NotFound, Problem
from memservice.domain.filters import where
from memservice.domain.ids import new_uid
from memservice.domain.records import PENDING, SCOPE, SCOPE_PREFIX, Member, Peer, ScopeSession, Session, Workspace
from memservice.domain.values import name_problem
from memservice.runtime import Runtime
from memservice.services import outbox
from memservice.spi.storage import View

MAX_NAME = 512 - len(SCOPE_PREFIX)


def require_names(names: Sequence[str]) -> None:
    """The names of scopes, without the prefix, as a session's creation lists them."""
    problems = []
    for index, name in enumerate(names):
        problem = name_problem(name, MAX_NAME)
        if problem is not None:
            problems.append(Problem(("body", "scopes", index), problem, "string_pattern_mismatch"))
    if problems:
        raise InvalidInput(*problems)


def find(view: View, workspace: Workspace, name: str) -> Peer:
    peer = view.peers.by_slug(workspace.key, SCOPE_PREFIX + name)
    if peer is None or peer.kind != SCOPE:
        raise missing(name, workspace.slug)
    return peer


def missing(name: str, workspace: str) -> NotFound:
    return NotFound(f"Scope {name} not found in workspace {workspace}")


def ensure(rt: Runtime, view: View, workspace: Workspace, name: str) -> tuple[Peer, bool]:
    """The scope of that name and whether it was created now."""
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
        configuration={"observe_me": False},
        created_at=rt.clock(),
    )
    return view.peers.put([peer])[0], True


def add_session(rt: Runtime, view: View, scope: Peer, session: Session) -> bool:
    """Make the scope a member that observes; False if it was one. A session that has messages waits for its backfill."""
    member = view.members.one(session.key, scope.key, lock=True)
    if member is not None and member.left_at is None:
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
    view.members.put([replace(member, joined_at=now, left_at=None)])
    if session.message_count:
        _await_backfill(view, scope, session, rt)
    return True


def _await_backfill(view: View, scope: Peer, session: Session, rt: Runtime) -> None:
    view.rows.delete(ScopeSession, where(scope_key=scope.key, session_key=session.key))
    view.rows.put(
        [
            ScopeSession(
                workspace_key=session.workspace_key,
                scope_key=scope.key,
                session_key=session.key,
                session=session.slug,
                state=PENDING,
                updated_at=rt.clock(),
            )
        ]
    )
    view.tasks.add([outbox.scope_backfill(rt, scope, session)])


def member_sessions(view: View, scope: Peer) -> list[Member]:
    """The scope's present memberships."""
    return view.members.of_peer(scope.key, active=True)
