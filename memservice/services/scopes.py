"""Scopes: named sets of sessions with their own conclusions. A scope is a hidden peer that observes
its sessions and has no messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memservice.domain.errors import Conflict, InvalidInput, NotFound, Problem
from memservice.domain.filters import TRUE, Condition, equals
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
from memservice.services import validation, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, listing
from memservice.services.tasks import outbox
from memservice.spi.storage import Transaction


def require_name(name: str, argument: validation.Argument) -> None:
    """Validate the name of a new scope, without the prefix."""
    problem = name_problem(name, SCOPE_NAME_MAX)
    if problem is not None:
        raise InvalidInput(Problem(argument, problem, "string_pattern_mismatch"))


def require_names(names: Sequence[str]) -> None:
    """Validate the names of scopes in the creation of a session; reports all invalid ones."""
    problems = []
    for index, name in enumerate(names):
        problem = name_problem(name, SCOPE_NAME_MAX)
        if problem is not None:
            problems.append(Problem(("scopes", index), problem, "string_pattern_mismatch"))
    if problems:
        raise InvalidInput(*problems)


def missing(name: str, workspace_id: str) -> NotFound:
    return NotFound(f"Scope {name} not found in workspace {workspace_id}")


def not_of_scopes(tx: Transaction, workspace: Workspace) -> Condition:
    """Condition for the conclusions of other observers than scopes: a scope has copies of them."""
    keys = tuple(
        peer.key for peer in tx.rows.page(Peer, equals(workspace_key=workspace.key, kind=SCOPE))
    )
    return Not(equals(observer_key=keys)) if keys else TRUE


def find(tx: Transaction, workspace: Workspace, name: str, *, lock: bool = False) -> Peer:
    peer = tx.peers.by_slug(workspace.key, SCOPE_PREFIX + name, lock=lock)
    if peer is None or peer.kind != SCOPE:
        raise missing(name, workspace.slug)
    return peer


def _locate(tx: Transaction, workspace_id: str, name: str) -> Peer:
    """Like `find`, by the workspace's name. One statement."""
    peer = tx.workspaces.locate(workspace_id, peer_id=SCOPE_PREFIX + name).peer
    if peer is None or peer.kind != SCOPE:
        raise missing(name, workspace_id)
    return peer


def ensure(
    rt: Runtime,
    tx: Transaction,
    workspace: Workspace,
    name: str,
    metadata: Mapping[str, Any] | None = None,
) -> tuple[Peer, bool]:
    """The scope of that name, and whether it was created, then with this metadata."""
    slug = SCOPE_PREFIX + name
    scope = tx.peers.by_slug(workspace.key, slug)
    if scope is not None:
        if scope.kind != SCOPE:
            raise Conflict(f"The name {slug} is taken by a peer that is not a scope")
        return scope, False
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
    return tx.peers.put([peer])[0], True


def get_or_create(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    name: str,
    metadata: Mapping[str, Any] | None,
) -> tuple[Peer, bool]:
    """The scope, and whether it was created. Metadata, if set, replaces that of an existing scope.
    Creates a missing workspace."""
    policy.require(principal, workspace_id)
    require_name(name, ("scope_id",))
    new_metadata = validation.metadata(metadata)

    def change(tx: Transaction) -> tuple[Peer, bool]:
        workspace, _ = workspaces.ensure(rt, tx, workspace_id)
        scope, created = ensure(rt, tx, workspace, name, new_metadata)
        if created or new_metadata is None:
            return scope, created
        return tx.peers.put([replace(find(tx, workspace, name, lock=True), metadata=new_metadata)])[
            0
        ], False

    return rt.storage.write(change)


def get(rt: Runtime, principal: Principal, workspace_id: str, name: str) -> Peer:
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        return _locate(tx, workspace_id, name)


def page(rt: Runtime, principal: Principal, workspace_id: str, paging: Paging) -> Page[Peer]:
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    condition = equals(kind=SCOPE)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        key = None if workspace is None else workspace.key
        return listing(tx.peers, paging, key, condition, order=paging.order("created_at"))


def sessions_page(
    rt: Runtime, principal: Principal, workspace_id: str, name: str, paging: Paging
) -> Page[Session]:
    """Active sessions that are in the scope now, in the order of joining."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        scope = _locate(tx, workspace_id, name)
        items, total = tx.sessions.page_of_scope(
            scope.key, equals(state=ACTIVE), paging.reverse, paging.size, paging.offset
        )
        return Page(items, total, paging.page, paging.size)


def status(
    rt: Runtime, principal: Principal, workspace_id: str, name: str
) -> dict[str, ScopeSession]:
    """Session → progress of copying its conclusions. A session without messages when it joined has
    no entry."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        scope = _locate(tx, workspace_id, name)
        return {
            entry.session: entry
            for entry in tx.rows.page(ScopeSession, equals(scope_key=scope.key))
        }


def add_sessions(
    rt: Runtime, principal: Principal, workspace_id: str, name: str, session_ids: Sequence[str]
) -> None:
    """Add sessions to the scope, all or none: each must exist and be active. Existing members do
    not change."""
    policy.require(principal, workspace_id)

    def change(tx: Transaction) -> None:
        workspace, scope = _require(tx, workspace_id, name)
        # In sorted order, so that two callers never deadlock.
        for slug in sorted(set(session_ids)):
            add_session(rt, tx, scope, _active(tx, workspace, slug))

    rt.storage.write(change)


def remove_session(
    rt: Runtime, principal: Principal, workspace_id: str, name: str, session_id: str
) -> None:
    """Remove a session from the scope. A task removes the scope's conclusions from it. No effect
    for a session that is not in the scope."""
    policy.require(principal, workspace_id)

    def change(tx: Transaction) -> None:
        workspace, scope = _require(tx, workspace_id, name)
        session = _active(tx, workspace, session_id)
        member = tx.members.one(session.key, scope.key, lock=True)
        is_member = member is not None and member.left_at is None
        if member is not None and is_member:
            tx.members.put([replace(member, left_at=rt.clock(), left_seq=session.message_count)])
        # Repeat a failed removal.
        if is_member or _has_data_of(tx, scope, session):
            tx.tasks.add([outbox.scope_removal(rt, scope, session)])

    rt.storage.write(change)


def _has_data_of(tx: Transaction, scope: Peer, session: Session) -> bool:
    """Whether the scope has conclusions from that session, or waits for them."""
    entry = tx.rows.get(ScopeSession, equals(scope_key=scope.key, session_key=session.key))
    of_session = equals(observer_key=scope.key, session_key=session.key, level=EXPLICIT)
    return entry is not None or bool(
        tx.conclusions.page(session.workspace_key, of_session, limit=1)
    )


def _require(tx: Transaction, workspace_id: str, name: str) -> tuple[Workspace, Peer]:
    workspace = tx.workspaces.by_slug(workspace_id)
    if workspace is None:
        raise missing(name, workspace_id)
    return workspace, find(tx, workspace, name)


def _active(tx: Transaction, workspace: Workspace, slug: str) -> Session:
    """The active session of that name, locked until commit."""
    session = tx.sessions.by_slug(workspace.key, slug, lock=True)
    if session is None or session.state != ACTIVE:
        raise NotFound(f"Session {slug} not found in workspace {workspace.slug}")
    return session


def add_session(rt: Runtime, tx: Transaction, scope: Peer, session: Session) -> bool:
    """Make the scope an observing member; False if it is one already. Adds a backfill task for a
    session with messages, and repeats a failed backfill. The caller has locked the session's
    row."""
    member = tx.members.one(session.key, scope.key, lock=True)
    if member is not None and member.left_at is None:
        if (
            tx.rows.get(
                ScopeSession, equals(scope_key=scope.key, session_key=session.key, state=FAILED)
            )
            is not None
        ):
            _start_backfill(rt, tx, scope, session)
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
    tx.members.put([replace(member, joined_at=now, left_at=None, left_seq=None)])
    if session.message_count:
        _start_backfill(rt, tx, scope, session)
    return True


def _start_backfill(rt: Runtime, tx: Transaction, scope: Peer, session: Session) -> None:
    tx.rows.delete(ScopeSession, equals(scope_key=scope.key, session_key=session.key))
    entry = ScopeSession(
        workspace_key=session.workspace_key,
        scope_key=scope.key,
        session_key=session.key,
        session=session.slug,
        state=PENDING,
        updated_at=rt.clock(),
    )
    tx.rows.put([entry])
    tx.tasks.add([outbox.scope_backfill(rt, scope, session)])


def member_sessions(tx: Transaction, scope: Peer) -> list[Member]:
    """The scope's current memberships."""
    return tx.members.of_peer(scope.key, active=True)
