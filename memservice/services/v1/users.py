"""Users: the peers of an app with changeable names, without scopes and the assistant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memservice.domain.errors import Conflict, NotFound, Unauthorised
from memservice.domain.filters import all_of, equals, parse_containment
from memservice.domain.ids import new_uid
from memservice.domain.records import Peer, Workspace
from memservice.runtime import Runtime
from memservice.services import peers, validation
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, listing
from memservice.services.v1 import names, resolve
from memservice.services.v1.resolve import ASSISTANT, USERS, Path
from memservice.spi.storage import Transaction


def _named(tx: Transaction, workspace: Workspace, name: str) -> Peer | None:
    return tx.rows.get(Peer, all_of(equals(workspace_key=workspace.key, v1_name=name), USERS))


def _name_exists(tx: Transaction, workspace: Workspace, name: str) -> bool:
    """Whether a peer has this name, including peers that generation 1 does not show."""
    return tx.rows.get(Peer, equals(workspace_key=workspace.key, v1_name=name)) is not None


def _app(tx: Transaction, uid: str) -> Workspace:
    workspace = resolve.app_of(tx, uid)
    if workspace is None:
        raise resolve.no_app(uid)
    return workspace


def create(
    rt: Runtime, principal: Principal, app_uid: str, name: str, metadata: Mapping[str, Any] | None
) -> Peer:
    """Create a user. Conflict if one of that name exists, from any generation."""
    stored_name, new_metadata = (
        names.new_name(name, ("name",)),
        validation.metadata(metadata) or {},
    )

    def change(tx: Transaction) -> Peer:
        resolve.authorise(tx, principal, Path(app_uid))
        return _add(rt, tx, _app(tx, app_uid), stored_name, new_metadata)

    return rt.storage.write(change)


def _add(
    rt: Runtime, tx: Transaction, workspace: Workspace, name: str, metadata: dict[str, Any]
) -> Peer:
    if _name_exists(tx, workspace, name):
        raise Conflict("User with this name already exists")
    uid = new_uid()
    slug = names.slug_for(
        name, uid, names.is_valid_slug(name) and tx.peers.by_slug(workspace.key, name) is not None
    )
    return peers.add(
        tx,
        Peer(
            uid=uid,
            workspace_key=workspace.key,
            slug=slug,
            v1_name=name,
            metadata=metadata,
            created_at=rt.clock(),
        ),
    )


def get_or_create(rt: Runtime, principal: Principal, app_uid: str, name: str) -> Peer:
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, Path(app_uid))
        peer = _named(tx, _app(tx, app_uid), names.lookup_name(name))
    if peer is not None:
        return peer
    new = names.new_name(name, ("name",))

    def change(tx: Transaction) -> Peer:
        workspace = _app(tx, app_uid)
        return _named(tx, workspace, new) or _add(rt, tx, workspace, new, {})

    return rt.storage.write(change)


def by_name(rt: Runtime, principal: Principal, app_uid: str, name: str) -> Peer:
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, Path(app_uid))
        workspace = resolve.app_of(tx, app_uid)
        peer = None if workspace is None else _named(tx, workspace, names.lookup_name(name))
    if peer is None:
        raise NotFound(f"User with name '{name}' not found")
    return peer


def get(rt: Runtime, principal: Principal, app_uid: str, uid: str | None) -> Peer:
    """The user with that uid, or the user of the key."""
    with rt.storage.read() as tx:
        workspace = resolve.app_of(tx, app_uid)
        own_user = (
            tx.peers.by_slug(workspace.key, principal.peer_id)
            if workspace is not None and principal.is_peer and principal.peer_id is not None
            else None
        )
        user_id = resolve.requested_id(uid, own_user.uid if own_user is not None else None, "User")
        resolve.authorise(tx, principal, Path(app_uid, user_id))
        return resolve.require_user(tx, Path(app_uid, user_id))[1]


def page(
    rt: Runtime, principal: Principal, app_uid: str, filter_: object, paging: Paging
) -> Page[Peer]:
    """Users in the order of creation."""
    condition = all_of(parse_containment(filter_), USERS)
    with rt.storage.read() as tx:
        resolve.authorise(tx, principal, Path(app_uid))
        workspace = resolve.app_of(tx, app_uid)
        key = None if workspace is None else workspace.key
        return listing(tx.peers, paging, key, condition)


def update(
    rt: Runtime,
    principal: Principal,
    path: Path,
    name: str | None,
    metadata: Mapping[str, Any] | None,
) -> Peer:
    """Replace name and metadata; None: unchanged. The id of the other generations never changes."""
    if name is not None and principal.is_peer and not principal.has_user_claim:
        # Names are visible to all, and a key of the later generations cannot rename its peer there
        # either.
        raise Unauthorised(policy.NOT_PERMISSIONED)
    new_name, new_metadata = names.changed_name(name), validation.metadata(metadata)

    def change(tx: Transaction) -> Peer:
        resolve.authorise(tx, principal, path)
        workspace, user = resolve.require_user(tx, path)
        peer = tx.peers.by_slug(workspace.key, user.slug, lock=True) or user
        if (
            new_name is not None
            and new_name != peer.v1_name
            and _name_exists(tx, workspace, new_name)
        ):
            raise Conflict("User update failed - unique constraint violation")
        changed = replace(
            peer,
            v1_name=peer.v1_name if new_name is None else new_name,
            metadata=peer.metadata if new_metadata is None else new_metadata,
        )
        return peer if changed == peer else peers.change(tx, peer, changed)

    return rt.storage.write(change)


def assistant_of(rt: Runtime, tx: Transaction, workspace: Workspace) -> Peer:
    """The app's assistant, the author of messages that are not by the user; created on first use.
    In other generations it is an ordinary peer."""
    peer = tx.rows.get(Peer, equals(workspace_key=workspace.key, v1_role=ASSISTANT))
    if peer is None:
        # Lock the workspace, so that it is created once, and look again, since another request may
        # have created it.
        tx.rows.get(Workspace, equals(key=workspace.key), lock=True)
        peer = tx.rows.get(Peer, equals(workspace_key=workspace.key, v1_role=ASSISTANT))
    if peer is None:
        slug = new_uid()
        peer = peers.ensure(rt, tx, workspace.key, [slug], ("app_id",), v1_role=ASSISTANT)[slug]
    return peer
