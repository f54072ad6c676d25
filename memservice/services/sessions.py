"""Sessions and their members."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memservice.domain import configuration
from memservice.domain.errors import NotFound, Refused
from memservice.domain.filters import all_of, equals, parse_filters, resources
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, PEER, Member, Peer, Session, Summary, Workspace
from memservice.runtime import Runtime
from memservice.services import peers, scopes, validation, visibility, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, listing
from memservice.spi.base import TransientConflict
from memservice.spi.storage import Transaction

ARGUMENT = ("session_id",)


class MemberConfig(Struct, frozen=True):
    """Options of a peer's membership; None: not set."""

    observe_me: bool | None = None
    observe_others: bool | None = None


class SessionFields(Struct, frozen=True):
    """Fields of a session that a caller may set; None or empty: not set."""

    metadata: Mapping[str, Any] | None = None
    """Replaces the metadata."""
    configuration: Mapping[str, Any] | None = None
    """Merged by section."""
    members: Mapping[str, MemberConfig] = field(default_factory=dict)
    """Peers that join, by id."""
    scopes: Sequence[str] = ()
    """Scopes that the session joins."""

    @property
    def only_members(self) -> bool:
        """Whether nothing but members is set."""
        return self.metadata is None and self.configuration is None and not self.scopes


NO_FIELDS = SessionFields()


def not_found(workspace_id: str, session_id: str) -> NotFound:
    return NotFound(f"Session {session_id} not found in workspace {workspace_id}")


def require(
    tx: Transaction, workspace_id: str, slug: str, *, lock: bool = False
) -> tuple[Workspace, Session]:
    """An active session, for writing to it. Raises NotFound."""
    workspace = tx.workspaces.by_slug(workspace_id)
    session = None if workspace is None else tx.sessions.by_slug(workspace.key, slug, lock=lock)
    if workspace is None or session is None or session.state != ACTIVE:
        raise not_found(workspace_id, slug)
    return workspace, session


def ensure(
    rt: Runtime,
    tx: Transaction,
    workspace: Workspace,
    slug: str,
    **fields: Any,
) -> tuple[Session, bool]:
    """The active session of that name, its row locked until commit, and whether it was created.

    The name of a session that is being erased is still in use: NotFound.
    """
    session = tx.sessions.by_slug(workspace.key, slug, lock=True)
    if session is not None:
        if session.state != ACTIVE:
            raise not_found(workspace.slug, slug)
        return session, False
    validation.require_name(slug, ARGUMENT)
    if not workspaces.lock_active(tx, workspace.key):
        # the next try creates another
        raise TransientConflict(f"workspace {workspace.slug} was deleted at the same time")
    session = Session(
        uid=new_uid(), workspace_key=workspace.key, slug=slug, created_at=rt.clock(), **fields
    )
    return tx.sessions.save(session), True


def join(
    rt: Runtime,
    tx: Transaction,
    session: Session,
    joining: Mapping[str, Peer],
    config: Mapping[str, MemberConfig] | None = None,
    *,
    members: Sequence[Member] | None = None,
) -> list[Member]:
    """Add peers to a session whose row is locked. An active member keeps its configuration; a
    returning one gets the new one. Returns the new and the returning members.

    `members`: these peers' memberships, if they were read since the row was locked."""
    config = config or {}
    if members is None:
        peer_keys = [peer.key for peer in joining.values()]
        members = tx.members.of_session(session.key, active=False, peer_keys=peer_keys)
    members_by_peer = {member.peer_key: member for member in members}
    changed: list[Member] = []
    now = rt.clock()
    for slug in sorted(joining):
        peer = joining[slug]
        member_config = config.get(slug, MemberConfig())
        member = members_by_peer.get(peer.key)
        if member is None:
            changed.append(
                Member(
                    workspace_key=session.workspace_key,
                    session_key=session.key,
                    peer_key=peer.key,
                    session=session.slug,
                    peer=peer.slug,
                    kind=peer.kind,
                    observe_me=member_config.observe_me,
                    observe_others=member_config.observe_others,
                    joined_at=now,
                    joined_seq=session.message_count,
                )
            )
        elif member.left_at is not None:
            changed.append(
                replace(
                    member,
                    observe_me=member_config.observe_me,
                    observe_others=member_config.observe_others,
                    left_at=None,
                    left_seq=None,
                )
            )
    stored = tx.members.put(changed)
    _check_observers(rt, tx, session, [member for member in stored if member.observe_others])
    return stored


def _check_observers(
    rt: Runtime, tx: Transaction, session: Session, added: Sequence[Member]
) -> None:
    """Raises Refused if too many members observe the others; scopes do not count."""
    if not any(member.kind == PEER for member in added):
        return
    limit = rt.settings.app.session_observers_limit
    count = sum(1 for member in tx.members.listening(session.key, []) if member.kind == PEER)
    if count > limit:
        raise Refused(
            f"Session {session.slug} would have {count} observers. Maximum allowed is "
            f"{limit} observers per session. "
            "Observers are peers with 'observe_others' set to true."
        )


def get_or_create(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    slug: str,
    fields: SessionFields = NO_FIELDS,
) -> tuple[Session, bool]:
    """The session, and whether it was created.

    For the key of a peer or a session, an existing session does not change, since it belongs to all
    its members, and the request's fields are ignored.
    """
    policy.require_create_session(principal, workspace_id, slug, fields.scopes)
    validation.require_name(slug, ARGUMENT)
    unchanged = not policy.may_update_sessions(principal)
    if unchanged or fields.only_members:
        # Most requests change nothing: they write nothing and lock nothing.
        with rt.storage.read_committed() as tx:
            session = tx.workspaces.locate(workspace_id, session_id=slug).session
            if session is not None and unchanged:
                return _existing(tx, principal, workspace_id, session), False
            if session is not None and _has_members(tx, session, fields.members):
                return session, False
    policy.require_new_session(principal, slug, fields.members)
    return _upsert(rt, workspace_id, slug, fields, principal if unchanged else None)


def _has_members(tx: Transaction, session: Session, names: Collection[str]) -> bool:
    """Whether the session is active, and peers with these names are active members of it."""
    if session.state != ACTIVE or not names:
        return session.state == ACTIVE
    named_peers = tx.peers.by_slugs(session.workspace_key, sorted(names))
    keys = [peer.key for peer in named_peers.values() if peer.kind == PEER]
    return len(keys) == len(names) == len(tx.members.of_session(session.key, peer_keys=keys))


def _existing(
    tx: Transaction, principal: Principal, workspace_id: str, session: Session
) -> Session:
    # Check this first: only members may know that it exists, or is being erased.
    policy.require_memberships(tx, principal, [session.slug])
    if session.state != ACTIVE:
        raise not_found(workspace_id, session.slug)
    return session


def update(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
) -> Session:
    """Metadata is replaced, configuration merged by section. Creates a missing session."""
    policy.require(principal, workspace_id, session_id=slug)
    return _upsert(rt, workspace_id, slug, SessionFields(metadata, config))[0]


def _upsert(
    rt: Runtime,
    workspace_id: str,
    slug: str,
    fields: SessionFields,
    restricted_to: Principal | None = None,
) -> tuple[Session, bool]:
    """`restricted_to`: a caller that may not change an existing session."""
    new_metadata = validation.metadata(fields.metadata)
    settings = validation.settings_of(rt, fields.configuration)
    scopes.require_names(fields.scopes)

    def change(tx: Transaction) -> tuple[Session, bool]:
        workspace, _ = workspaces.ensure(rt, tx, workspace_id)
        # Peers are created before the session's row is locked, so a caller that may not change it
        # gets its answer before both.
        session_before = None if restricted_to is None else tx.sessions.by_slug(workspace.key, slug)
        if restricted_to is not None and session_before is not None:
            return _existing(tx, restricted_to, workspace_id, session_before), False
        joining = _peers_to_join(rt, tx, workspace, fields.members)
        session, created = ensure(
            rt, tx, workspace, slug, metadata=new_metadata or {}, configuration=settings or {}
        )
        if restricted_to is not None and not created:
            # the next try reads it
            raise TransientConflict(f"session {slug} was created at the same time")
        if not created and (new_metadata is not None or settings is not None):
            session = tx.sessions.save(
                replace(
                    session,
                    metadata=session.metadata if new_metadata is None else new_metadata,
                    configuration=configuration.merge(session.configuration, settings or {}),
                )
            )
        if joining:
            join(rt, tx, session, joining, fields.members)
        for name in fields.scopes:
            scopes.add_session(rt, tx, scopes.ensure(rt, tx, workspace, name)[0], session)
        return session, created

    return rt.storage.write(change)


def _peers_to_join(
    rt: Runtime,
    tx: Transaction,
    workspace: Workspace,
    members: Mapping[str, MemberConfig],
) -> dict[str, Peer]:
    if not members:
        return {}
    existing = tx.peers.by_slugs(workspace.key, sorted(members))
    for slug in members:
        validation.refuse_scope(slug, existing.get(slug), ("peers", slug))
    missing = [slug for slug in members if slug not in existing]
    return (
        existing | peers.ensure(rt, tx, workspace.key, missing, ("peers",)) if missing else existing
    )


def page(
    rt: Runtime, principal: Principal, workspace_id: str, filters: object, paging: Paging
) -> Page[Session]:
    """Active sessions."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    condition = all_of(
        parse_filters(filters, resources.SESSION, workspace_id=workspace_id), equals(state=ACTIVE)
    )
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        key = None if workspace is None else workspace.key
        return listing(tx.sessions, paging, key, condition, order=paging.order("created_at"))


def add_peers(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    slug: str,
    members: Mapping[str, MemberConfig],
) -> Session:
    """Add peers; creates the session and the peers if they are missing."""
    policy.require(principal, workspace_id, session_id=slug)

    def change(tx: Transaction) -> Session:
        workspace, _ = workspaces.ensure(rt, tx, workspace_id)
        joining = _peers_to_join(rt, tx, workspace, members)
        session, _ = ensure(rt, tx, workspace, slug)
        join(rt, tx, session, joining, members)
        return session

    return rt.storage.write(change)


def set_peers(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    slug: str,
    members: Mapping[str, MemberConfig],
) -> Session:
    """Replace the members that are not scopes: others leave, scopes remain."""
    policy.require(principal, workspace_id, session_id=slug)

    def change(tx: Transaction) -> Session:
        workspace, session = require(tx, workspace_id, slug)
        joining = _peers_to_join(rt, tx, workspace, members)
        locked = tx.sessions.by_key(session.key, lock=True)
        if locked is None or locked.state != ACTIVE:
            raise not_found(workspace_id, slug)
        session = locked
        new_keys = {peer.key for peer in joining.values()}
        members_before = tx.members.of_session(session.key)
        _leave(
            rt,
            tx,
            session,
            [
                member
                for member in members_before
                if member.kind == PEER and member.peer_key not in new_keys
            ],
        )
        join(rt, tx, session, joining, members)
        return session

    return rt.storage.write(change)


def remove_peers(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str, names: Sequence[str]
) -> Session:
    """Remove members. Unknown names are ignored."""
    policy.require(principal, workspace_id, session_id=slug)

    def change(tx: Transaction) -> Session:
        workspace, session = require(tx, workspace_id, slug, lock=True)
        existing = tx.peers.by_slugs(workspace.key, sorted(set(names)))
        for index, name in enumerate(names):
            validation.refuse_scope(name, existing.get(name), ("peers", index), unknown_too=False)
        _leave(
            rt,
            tx,
            session,
            tx.members.of_session(session.key, peer_keys=[peer.key for peer in existing.values()]),
        )
        return session

    return rt.storage.write(change)


def _leave(rt: Runtime, tx: Transaction, session: Session, members: Sequence[Member]) -> None:
    now = rt.clock()
    tx.members.put(
        [replace(member, left_at=now, left_seq=session.message_count) for member in members]
    )


def members_page(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str, paging: Paging
) -> Page[Peer]:
    """Current members that are not scopes, in the order of joining."""
    policy.require(principal, workspace_id, session_id=slug, member=True, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        session = visibility.find(tx, workspace_id, session_id=slug).session
        if session is None:
            return paging.empty()
        items, total = tx.peers.page_of_session(
            session.key, paging.reverse, paging.size, paging.offset
        )
        return Page(items, total, paging.page, paging.size)


def get_peer_config(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str, peer_id: str
) -> MemberConfig:
    """The options of a membership, even after it ended."""
    policy.require(principal, workspace_id, session_id=slug, member=True, needs=Permission.VIEW)
    policy.require_own_peer(principal, peer_id)
    with rt.storage.read() as tx:
        located = visibility.find(tx, workspace_id, session_id=slug, peer_id=peer_id)
        validation.refuse_scope(peer_id, located.peer, ("peer_id",), unknown_too=False)
        member = None
        if located.session is not None and located.peer is not None:
            member = tx.members.one(located.session.key, located.peer.key)
        if member is None:
            raise NotFound(
                f"Session peer {peer_id} not found in session {slug} in workspace {workspace_id}"
            )
        return MemberConfig(member.observe_me, member.observe_others)


def set_peer_config(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    slug: str,
    peer_id: str,
    config: MemberConfig,
) -> None:
    """Merge these options into a membership. A peer that was never a member joins."""
    policy.require(principal, workspace_id, session_id=slug)

    def change(tx: Transaction) -> None:
        workspace, session = require(tx, workspace_id, slug, lock=True)
        peer = tx.peers.by_slug(workspace.key, peer_id)
        validation.refuse_scope(peer_id, peer, ("peer_id",), unknown_too=False)
        if peer is None:
            raise NotFound(f"Peer {peer_id} not found in workspace {workspace_id}")
        member = tx.members.one(session.key, peer.key, lock=True)
        if member is None:
            join(rt, tx, session, {peer_id: peer}, {peer_id: config})
            return
        observes = member.observe_others if config.observe_others is None else config.observe_others
        changed = replace(
            member,
            observe_me=member.observe_me if config.observe_me is None else config.observe_me,
            observe_others=observes,
        )
        tx.members.put([changed])
        if observes and not member.observe_others and member.left_at is None:
            _check_observers(rt, tx, session, [changed])

    rt.storage.write(change)


def summaries(
    rt: Runtime, principal: Principal, workspace_id: str, slug: str
) -> dict[str, Summary]:
    """The newest summaries by kind (`short`, `long`); empty for an unknown session."""
    policy.require(principal, workspace_id, session_id=slug, member=True, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        session = visibility.find(tx, workspace_id, session_id=slug).session
        return {} if session is None else tx.summaries.of_session(session.key)
