"""Sessions, and the peers in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memservice.domain import configuration
from memservice.domain.errors import NotFound, Refused
from memservice.domain.filters import all_of, parse_filters, resources, where
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, PEER, Member, Peer, Session, Summary, Workspace
from memservice.runtime import Runtime
from memservice.services import (
    peers,
    scopes,
    validation,
    visibility,
    workspaces,
)
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, read_page
from memservice.spi.base import TransientConflict
from memservice.spi.storage import View

PATH = ("path", "session_id")


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """How a peer takes part in a session; None where nothing is said."""

    observe_me: bool | None = None
    observe_others: bool | None = None


def not_found(workspace: str, session: str) -> NotFound:
    return NotFound(f"Session {session} not found in workspace {workspace}")


def require(view: View, workspace: str, slug: str, *, lock: bool = False) -> tuple[Workspace, Session]:
    """An active session, for writing to it."""
    place = view.workspaces.by_slug(workspace)
    session = None if place is None else view.sessions.by_slug(place.key, slug, lock=lock)
    if place is None or session is None or session.state != ACTIVE:
        raise not_found(workspace, slug)
    return place, session


def ensure(rt: Runtime, view: View, workspace: Workspace, slug: str, loc: validation.Loc = PATH, **fields: Any) -> tuple[Session, bool]:
    """The active session of that name, its row held until commit, and whether it was created now.

    A session that awaits erasure keeps its name: NotFound.
    """
    found = view.sessions.by_slug(workspace.key, slug, lock=True)
    if found is not None:
        if found.state != ACTIVE:
            raise not_found(workspace.slug, slug)
        return found, False
    validation.require_name(slug, loc)
    if not workspaces.hold(view, workspace.key):
        raise TransientConflict(f"workspace {workspace.slug} was deleted meanwhile")  # the next try makes another
    session = Session(uid=new_uid(), workspace_key=workspace.key, slug=slug, created_at=rt.clock(), **fields)
    return view.sessions.save(session), True


def join(
    rt: Runtime,
    view: View,
    session: Session,
    joining: Mapping[str, Peer],
    config: Mapping[str, MemberConfig] | None = None,
) -> None:
    """Make peers members of a session whose row is held. An active member keeps its configuration; one that returns takes the new one."""
    config = config or {}
    members = view.members.of_session(session.key, active=False, peers=[peer.key for peer in joining.values()])
    known = {member.peer_key: member for member in members}
    changed: list[Member] = []
    now = rt.clock()
    for slug in sorted(joining):
        peer = joining[slug]
        wanted = config.get(slug, MemberConfig())
        member = known.get(peer.key)
        if member is None:
            changed.append(
                Member(
                    workspace_key=session.workspace_key,
                    session_key=session.key,
                    peer_key=peer.key,
                    session=session.slug,
                    peer=peer.slug,
                    kind=peer.kind,
                    observe_me=wanted.observe_me,
                    observe_others=wanted.observe_others,
                    joined_at=now,
                    joined_seq=session.message_count,
                )
            )
        elif member.left_at is not None:
            changed.append(replace(member, observe_me=wanted.observe_me, observe_others=wanted.observe_others, left_at=None, left_seq=None))
    if changed:
        view.members.put(changed)
        _check_observers(rt, view, session, [member for member in changed if member.observe_others])


def _check_observers(rt: Runtime, view: View, session: Session, added: Sequence[Member]) -> None:
    """At most so many members of a session observe the others; scopes do not count."""
    if not any(member.kind == PEER for member in added):
        return
    limit = rt.settings.app.session_observers_limit
    count = sum(1 for member in view.members.listening(session.key, []) if member.kind == PEER)
    if count > limit:
        raise Refused(
            f"Session {session.slug} would have {count} observers. Maximum allowed is {limit} observers per session. "
            "Observers are peers with 'observe_others' set to true."
        )


def get_or_create(
    rt: Runtime,
    who: Principal,
    workspace: str,
    slug: str,
    metadata: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    members: Mapping[str, MemberConfig] | None = None,
    scope_names: Sequence[str] | None = None,
) -> tuple[Session, bool]:
    """The session and whether it was created now. Metadata replaces, configuration merges by section, peers are added.

    A key of a peer or a session gets one that exists as it is: it is all its members', and nothing of the request is applied.
    """
    policy.require_create_session(who, workspace, slug, scope_names or ())
    validation.require_name(slug, ("body", "id"))
    as_it_is = not policy.may_update_sessions(who)
    if as_it_is or (metadata is None and config is None and not members and not scope_names):
        with rt.storage.read() as view:
            found = view.workspaces.locate(workspace, session=slug).session
            if found is not None and as_it_is:
                return _as_it_is(view, who, workspace, found), False
        if found is not None and found.state == ACTIVE:
            return found, False
    unless = who if as_it_is else None
    return _upsert(rt, workspace, slug, metadata, config, members or {}, scope_names or (), ("body", "id"), as_it_is_for=unless)


def _as_it_is(view: View, who: Principal, workspace: str, found: Session) -> Session:
    # First: that it is there, or about to be erased, is for its members alone.
    policy.require_memberships(view, who, [found.slug])
    if found.state != ACTIVE:
        raise not_found(workspace, found.slug)
    return found


def update(
    rt: Runtime, who: Principal, workspace: str, slug: str, metadata: Mapping[str, Any] | None, config: Mapping[str, Any] | None
) -> Session:
    """Metadata is replaced, configuration merged by section. Creates a session that is missing."""
    policy.require(who, workspace, session=slug)
    return _upsert(rt, workspace, slug, metadata, config, {}, (), PATH)[0]


def _upsert(
    rt: Runtime,
    workspace: str,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
    members: Mapping[str, MemberConfig],
    scope_names: Sequence[str],
    loc: validation.Loc,
    as_it_is_for: Principal | None = None,
) -> tuple[Session, bool]:
    """`as_it_is_for`: a caller who gets an existing session as it is."""
    stored = validation.metadata(metadata)
    settings = validation.settings_of(rt, config)
    scopes.require_names(scope_names)

    def change(view: View) -> tuple[Session, bool]:
        place, _ = workspaces.ensure(rt, view, workspace)
        # Peers are made before the session's row is held, so a caller who may not change it is answered before either.
        found = None if as_it_is_for is None else view.sessions.by_slug(place.key, slug)
        if as_it_is_for is not None and found is not None:
            return _as_it_is(view, as_it_is_for, workspace, found), False
        joining = _peers_to_join(rt, view, place, members, ("body", "peers"))
        session, created = ensure(rt, view, place, slug, loc, metadata=stored or {}, configuration=settings or {})
        if as_it_is_for is not None and not created:
            raise TransientConflict(f"session {slug} was made meanwhile")  # the next try finds it
        if not created and (stored is not None or settings is not None):
            session = view.sessions.save(
                replace(
                    session,
                    metadata=session.metadata if stored is None else stored,
                    configuration=configuration.merge(session.configuration, settings or {}),
                )
            )
        if joining:
            join(rt, view, session, joining, members)
        for name in scope_names:
            scopes.add_session(rt, view, scopes.ensure(rt, view, place, name)[0], session)
        return session, created

    return rt.storage.write(change)


def _peers_to_join(
    rt: Runtime, view: View, workspace: Workspace, members: Mapping[str, MemberConfig], loc: validation.Loc
) -> dict[str, Peer]:
    if not members:
        return {}
    known = view.peers.by_slugs(workspace.key, sorted(members))
    for slug in members:
        validation.refuse_scope(slug, known.get(slug), (*loc, slug))
    missing = [slug for slug in members if slug not in known]
    return known | peers.ensure(rt, view, workspace.key, missing, loc) if missing else known


def page(rt: Runtime, who: Principal, workspace: str, filters: object, paging: Paging) -> Page[Session]:
    """Active sessions."""
    policy.require(who, workspace)
    condition = all_of(parse_filters(filters, resources.SESSION, workspace=workspace), where(state=ACTIVE))
    with rt.storage.read() as view:
        place = view.workspaces.by_slug(workspace)
        if place is None:
            return Page([], 0, paging.page, paging.size)
        key = place.key
        return read_page(
            paging,
            lambda: view.sessions.page(key, condition, paging.order("created_at"), paging.size, paging.offset),
            lambda: view.sessions.count(key, condition),
        )


def add_peers(rt: Runtime, who: Principal, workspace: str, slug: str, members: Mapping[str, MemberConfig]) -> Session:
    """Add peers; creates the session and the peers that are missing."""
    policy.require(who, workspace, session=slug)

    def change(view: View) -> Session:
        place, _ = workspaces.ensure(rt, view, workspace)
        joining = _peers_to_join(rt, view, place, members, ("body",))
        session, _ = ensure(rt, view, place, slug)
        join(rt, view, session, joining, members)
        return session

    return rt.storage.write(change)


def set_peers(rt: Runtime, who: Principal, workspace: str, slug: str, members: Mapping[str, MemberConfig]) -> Session:
    """Replace the ordinary members: others leave, scopes stay."""
    policy.require(who, workspace, session=slug)

    def change(view: View) -> Session:
        place, session = require(view, workspace, slug)
        joining = _peers_to_join(rt, view, place, members, ("body",))
        held = view.sessions.by_key(session.key, lock=True)
        if held is None or held.state != ACTIVE:
            raise not_found(workspace, slug)
        session = held
        keep = {peer.key for peer in joining.values()}
        present = view.members.of_session(session.key)
        _leave(rt, view, session, [member for member in present if member.kind == PEER and member.peer_key not in keep])
        join(rt, view, session, joining, members)
        return session

    return rt.storage.write(change)


def remove_peers(rt: Runtime, who: Principal, workspace: str, slug: str, names: Sequence[str]) -> Session:
    """Let members leave. Unknown names are ignored."""
    policy.require(who, workspace, session=slug)

    def change(view: View) -> Session:
        place, session = require(view, workspace, slug, lock=True)
        known = view.peers.by_slugs(place.key, sorted(set(names)))
        for index, name in enumerate(names):
            validation.refuse_scope(name, known.get(name), ("body", index), unknown_too=False)
        _leave(rt, view, session, view.members.of_session(session.key, peers=[peer.key for peer in known.values()]))
        return session

    return rt.storage.write(change)


def _leave(rt: Runtime, view: View, session: Session, members: Sequence[Member]) -> None:
    now = rt.clock()
    view.members.put([replace(member, left_at=now, left_seq=session.message_count) for member in members])


def members_page(rt: Runtime, who: Principal, workspace: str, slug: str, paging: Paging) -> Page[Peer]:
    """Ordinary peers that are members now, in the order they joined."""
    policy.require(who, workspace, session=slug, member=True)
    with rt.storage.read() as view:
        session = visibility.locate(view, workspace, session=slug).session
        if session is None:
            return Page([], 0, paging.page, paging.size)
        items, total = view.peers.page_of_session(session.key, paging.reverse, paging.size, paging.offset)
        return Page(items, total, paging.page, paging.size)


def get_peer_config(rt: Runtime, who: Principal, workspace: str, slug: str, peer: str) -> MemberConfig:
    """Also of a member that left."""
    policy.require(who, workspace, session=slug, member=True)
    policy.require_own_peer(who, peer)
    with rt.storage.read() as view:
        located = visibility.locate(view, workspace, session=slug, peer=peer)
        validation.refuse_scope(peer, located.peer, ("path", "peer_id"), unknown_too=False)
        member = None
        if located.session is not None and located.peer is not None:
            member = view.members.one(located.session.key, located.peer.key)
        if member is None:
            raise NotFound(f"Session peer {peer} not found in session {slug} in workspace {workspace}")
        return MemberConfig(member.observe_me, member.observe_others)


def set_peer_config(rt: Runtime, who: Principal, workspace: str, slug: str, peer: str, config: MemberConfig) -> None:
    """Merge the given switches into a membership. A peer that never was a member joins."""
    policy.require(who, workspace, session=slug)

    def change(view: View) -> None:
        place, session = require(view, workspace, slug, lock=True)
        found = view.peers.by_slug(place.key, peer)
        validation.refuse_scope(peer, found, ("path", "peer_id"), unknown_too=False)
        if found is None:
            raise NotFound(f"Peer {peer} not found in workspace {workspace}")
        member = view.members.one(session.key, found.key, lock=True)
        if member is None:
            join(rt, view, session, {peer: found}, {peer: config})
            return
        observes = member.observe_others if config.observe_others is None else config.observe_others
        changed = replace(
            member,
            observe_me=member.observe_me if config.observe_me is None else config.observe_me,
            observe_others=observes,
        )
        view.members.put([changed])
        if observes and not member.observe_others and member.left_at is None:
            _check_observers(rt, view, session, [changed])

    rt.storage.write(change)


def summaries(rt: Runtime, who: Principal, workspace: str, slug: str) -> dict[str, Summary]:
    """The newest summaries by kind (`short`, `long`); none of an unknown session."""
    policy.require(who, workspace, session=slug, member=True)
    with rt.storage.read() as view:
        session = visibility.locate(view, workspace, session=slug).session
        return {} if session is None else view.summaries.of_session(session.key)
