"""Users: the peers of an app, by their changeable names, without scopes and the assistant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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


def _is_taken(tx: Transaction, workspace: Workspace, name: str) -> bool:
    """Also by a peer that generation 1 does not show."""
    return tx.rows.get(Peer, equals(workspace_key=workspace.key, v1_name=name)) is not None


def _app(tx: Transaction, uid: str) -> Workspace:
    workspace = resolve.app_of(tx, uid)
    if workspace is None:
        raise resolve.no_app(uid)
    return workspace


def create(
    rt: Runtime, principal: Principal, app_uid: str, name: str, metadata: Mapping[str, Any] | None
) -> Peer:
    """A new user. Conflict if one of that name exists, whichever generation made it."""
    stored_name, stored = (
        names.new_name(name, ("name",)),
        validation.metadata(metadata) or {},
    )

    def change(tx: Transaction) -> Peer:
        resolve.authorise(tx, principal, Path(app_uid))
        return _add(rt, tx, _app(tx, app_uid), stored_name, stored)

    return rt.storage.write(change)


def _add(
    rt: Runtime, tx: Transaction, workspace: Workspace, name: str, metadata: dict[str, Any]
) -> Peer:
    if _is_taken(tx, workspace, name):
        raise Conflict("User with this name already exists")
    uid = new_uid()
    slug = names.slug_for(
        name, uid, names.could_be_slug(name) and tx.peers.by_slug(workspace.key, name) is not None
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
        peer = _named(tx, _app(tx, app_uid), names.wanted(name))
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
        peer = None if workspace is None else _named(tx, workspace, names.wanted(name))
    if peer is None:
        raise NotFound(f"User with name '{name}' not found")
    return peer


def get(rt: Runtime, principal: Principal, app_uid: str, uid: str | None) -> Peer:
    """The user of that uid, or the one that the key is for."""
    with rt.storage.read() as tx:
        workspace = resolve.app_of(tx, app_uid)
        own = (
            tx.peers.by_slug(workspace.key, principal.peer_id)
            if workspace is not None and principal.is_peer and principal.peer_id is not None
            else None
        )
        wanted = resolve.requested_id(uid, own.uid if own is not None else None, "User")
        resolve.authorise(tx, principal, Path(app_uid, wanted))
        return resolve.require_user(tx, Path(app_uid, wanted))[1]


def page(
    rt: Runtime, principal: Principal, app_uid: str, filter_: object, paging: Paging
) -> Page[Peer]:
    """In the order in which they were created."""
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
    """Name and metadata are replaced; None leaves either. The id of the other generations stays."""
    if name is not None and principal.is_peer and not principal.has_user_claim:
        # Names are looked up by everyone, and a key of the later generations gives its peer no
        # other name there either.
        raise Unauthorised(policy.NOT_PERMISSIONED)
    wanted, stored = names.changed_name(name), validation.metadata(metadata)

    def change(tx: Transaction) -> Peer:
        resolve.authorise(tx, principal, path)
        workspace, found = resolve.require_user(tx, path)
        peer = tx.peers.by_slug(workspace.key, found.slug, lock=True) or found
        if wanted is not None and wanted != peer.v1_name and _is_taken(tx, workspace, wanted):
            raise Conflict("User update failed - unique constraint violation")
        changed = replace(
            peer,
            v1_name=peer.v1_name if wanted is None else wanted,
            metadata=peer.metadata if stored is None else stored,
        )
        return peer if changed == peer else peers.change(tx, peer, changed)

    return rt.storage.write(change)


def assistant_of(rt: Runtime, tx: Transaction, workspace: Workspace) -> Peer:
    """The app's assistant, which is made when it is first needed: whoever says what no user says.
    An ordinary peer elsewhere."""
    peer = tx.rows.get(Peer, equals(workspace_key=workspace.key, v1_role=ASSISTANT))
    if peer is None:
        # Held, so that it is made once; looked for again, since somebody else may have made it
        # meanwhile.
        tx.rows.get(Workspace, equals(key=workspace.key), lock=True)
        peer = tx.rows.get(Peer, equals(workspace_key=workspace.key, v1_role=ASSISTANT))
    if peer is None:
        slug = new_uid()
        peer = peers.ensure(rt, tx, workspace.key, [slug], ("app_id",), v1_role=ASSISTANT)[slug]
    return peer
