"""Peers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from memservice.domain.filters import all_of, equals, parse_filters, resources
from memservice.domain.filters.ast import Not
from memservice.domain.ids import new_uid
from memservice.domain.records import ARCHIVED, PEER, SCOPE, Peer, PeerName, Session
from memservice.domain.text.analysis import name_tokens
from memservice.domain.text.folding import fold
from memservice.domain.text.names import CAPITALISED
from memservice.domain.values import check_size, strip_nul
from memservice.runtime import Runtime
from memservice.services import validation, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, listing
from memservice.spi.rows import UniqueViolation
from memservice.spi.storage import Transaction

MAX_NAMESAKES = 200
"""Maximum number of name words that are compared to detect whether two peers have the same name."""


def display_name(peer: Peer) -> str | None:
    """The name in the peer's metadata, else the one from generation 1, if any."""
    name = peer.metadata.get("name")
    if isinstance(name, str) and name.strip():
        return name.strip()
    return (peer.v1_name.strip() or None) if peer.v1_name not in (peer.slug, peer.uid) else None


def spoken_name(peer: Peer) -> str:
    """The peer's name in texts: its metadata's `name`, else its id."""
    return display_name(peer) or peer.slug


def names_of(peer: Peer) -> list[str]:
    """The names by which texts mention a peer, sorted: its id and its display names."""
    first = peer.slug if peer.v1_name == peer.uid else peer.v1_name
    return sorted({peer.slug, first, spoken_name(peer)})


def shown_names(tx: Transaction, workspace_key: int, peers: Iterable[Peer]) -> dict[str, str]:
    """Slug → display name, for the peers that have one. A name that is also the display name or the
    id of another peer of the workspace is followed by the peer's id, `Bob (eve)`, since a peer can
    choose any name.

    One query of at most `MAX_NAMESAKES` names; if there are more, every name is followed by the id.
    """
    names = {peer.slug: name for peer in peers if (name := display_name(peer)) is not None}
    tokens = {slug: name_tokens("", name) for slug, name in names.items()}
    forms = sorted(
        {
            form
            for name_words in tokens.values()
            for token in name_words
            for form in (token, CAPITALISED + token)
        }
    )
    if not names:
        return {}
    rows = (
        tx.rows.page(
            PeerName,
            equals(workspace_key=workspace_key, token=tuple(forms)),
            limit=MAX_NAMESAKES,
        )
        if forms
        else []
    )
    others = tx.peers.by_keys(sorted({row.peer_key for row in rows}))
    slugs_by_name: dict[str, set[str]] = {}
    for other in others.values():
        for name in (display_name(other), other.slug):
            if name is not None:
                slugs_by_name.setdefault(fold(name), set()).add(other.slug)
    is_complete = len(rows) < MAX_NAMESAKES

    def is_unique(slug: str, name: str) -> bool:
        return is_complete and bool(tokens[slug]) and slugs_by_name.get(fold(name), set()) <= {slug}

    return {
        slug: name if is_unique(slug, name) or name == slug else f"{name} ({slug})"
        for slug, name in names.items()
    }


def ensure(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    slugs: Sequence[str],
    argument: validation.Argument,
    **fields: Any,
) -> dict[str, Peer]:
    """The peers of these names, by name. Missing ones are created in sorted order, so that writers
    never deadlock."""
    peers_by_name = tx.peers.by_slugs(workspace_key, sorted(set(slugs)))
    missing = sorted(set(slugs) - peers_by_name.keys())
    if not missing:
        return peers_by_name
    validation.require_names(missing, argument, by_index=False)
    new = [
        Peer(
            uid=new_uid(),
            workspace_key=workspace_key,
            slug=slug,
            v1_name=slug,
            created_at=rt.clock(),
            **fields,
        )
        for slug in missing
    ]
    try:
        peers = tx.peers.put(new)
    except UniqueViolation as violation:
        if "v1_name" not in violation.fields:
            raise
        # Users of generation 1 were renamed to some of these ids; the ids are free nevertheless.
        renamed = tx.rows.page(Peer, equals(workspace_key=workspace_key, v1_name=tuple(missing)))
        names = {peer.v1_name for peer in renamed}
        peers = tx.peers.put(
            [replace(peer, v1_name=peer.uid) if peer.slug in names else peer for peer in new]
        )
    for peer in peers:
        _index_names(tx, peer)
        peers_by_name[peer.slug] = peer
    return peers_by_name


def add(tx: Transaction, peer: Peer) -> Peer:
    """Store a new peer. The caller has checked its names."""
    row = tx.peers.put([peer])[0]
    _index_names(tx, row)
    return row


def change(tx: Transaction, peer: Peer, changed: Peer) -> Peer:
    """Replace a stored peer."""
    tx.peers.put([changed])
    if display_name(changed) != display_name(peer):
        _index_names(tx, changed)
    return changed


def _index_names(tx: Transaction, peer: Peer) -> None:
    if peer.kind == PEER:
        tx.peers.set_names(peer, name_tokens(peer.slug, display_name(peer)))


def get_or_create(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
) -> tuple[Peer, bool]:
    """The peer, and whether it was created. Metadata and configuration, if set, replace those of an
    existing peer."""
    policy.require_create_peer(principal, workspace_id, slug)
    validation.require_name(slug, ("peer_id",))
    if (metadata is None and config is None) or not policy.may_update_peers(principal):
        with rt.storage.read_committed() as tx:
            peer = tx.workspaces.locate(workspace_id, peer_id=slug).peer
        if peer is not None:
            return peer, False
    return _upsert(
        rt,
        workspace_id,
        slug,
        metadata,
        config,
        updating=policy.may_update_peers(principal),
    )


def update(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
) -> Peer:
    """Metadata and configuration, if set, each replace the stored one. Creates a missing peer."""
    policy.require(principal, workspace_id, peer_id=slug)
    return _upsert(rt, workspace_id, slug, metadata, config)[0]


def _upsert(
    rt: Runtime,
    workspace_id: str,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
    updating: bool = True,
) -> tuple[Peer, bool]:
    new_metadata = validation.metadata(metadata)
    settings = None if config is None else strip_nul(dict(config))
    if settings is not None:
        check_size(settings, ("configuration",), "Configuration")

    def store(tx: Transaction) -> tuple[Peer, bool]:
        workspace, _ = workspaces.ensure(rt, tx, workspace_id)
        peer = tx.peers.by_slug(workspace.key, slug, lock=True)
        validation.refuse_scope(slug, peer, ("peer_id",))
        if peer is None:
            validation.require_name(slug, ("peer_id",))
            created = ensure(
                rt,
                tx,
                workspace.key,
                [slug],
                ("peer_id",),
                metadata=new_metadata or {},
                configuration=settings or {},
            )
            return created[slug], True
        if not updating or (new_metadata is None and settings is None):
            return peer, False
        changed = replace(
            peer,
            metadata=peer.metadata if new_metadata is None else new_metadata,
            configuration=peer.configuration if settings is None else settings,
        )
        return change(tx, peer, changed), False

    return rt.storage.write(store)


def page(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    filters: object,
    paging: Paging,
    kind: Literal["scope", "all"] | None = None,
) -> Page[Peer]:
    """Peers that are not scopes; with `kind`, scopes or both."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    condition = parse_filters(filters, resources.PEER, workspace_id=workspace_id)
    kinds = {None: (PEER,), "scope": (SCOPE,), "all": (PEER, SCOPE)}
    condition = all_of(condition, equals(kind=kinds[kind]))
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        key = None if workspace is None else workspace.key
        return listing(tx.peers, paging, key, condition, order=paging.order("created_at"))


def sessions(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    filters: object,
    paging: Paging,
) -> Page[Session]:
    """All sessions that the peer is or was a member of, including those being erased, without
    archived ones."""
    policy.require(principal, workspace_id, peer_id=peer_id, needs=Permission.VIEW)
    condition = all_of(
        parse_filters(filters, resources.SESSION, workspace_id=workspace_id),
        Not(equals(state=ARCHIVED)),
    )
    with rt.storage.read() as tx:
        peer = tx.workspaces.locate(workspace_id, peer_id=peer_id).peer
        if peer is None:
            return paging.empty()
        items, total = tx.sessions.page_of_peer(
            peer.key, condition, paging.order("created_at"), paging.size, paging.offset
        )
        return Page(items, total, paging.page, paging.size)
