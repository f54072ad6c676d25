"""Apps: workspaces with changeable names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import equals, parse_containment
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, Workspace
from memservice.runtime import Runtime
from memservice.services import validation
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, listing
from memservice.services.v1 import names, resolve
from memservice.services.v1.resolve import Path
from memservice.spi.storage import Transaction


def _name_conflict(name: str) -> Conflict:
    return Conflict(f"App with name '{name}' already exists")


def _named(tx: Transaction, name: str) -> Workspace | None:
    return tx.rows.get(Workspace, equals(v1_name=name, state=ACTIVE))


def create(
    rt: Runtime, principal: Principal, name: str, metadata: Mapping[str, Any] | None
) -> Workspace:
    """Create an app. Conflict if one of that name exists, from any generation."""
    policy.require_admin(principal)
    stored_name, new_metadata = (
        names.new_name(name, ("name",)),
        validation.metadata(metadata) or {},
    )

    def change(tx: Transaction) -> Workspace:
        if _named(tx, stored_name) is not None:
            raise _name_conflict(stored_name)
        return _add(rt, tx, stored_name, new_metadata)

    return rt.storage.write(change)


def _add(rt: Runtime, tx: Transaction, name: str, metadata: dict[str, Any]) -> Workspace:
    uid = new_uid()
    slug = names.slug_for(
        name, uid, names.is_valid_slug(name) and tx.workspaces.by_slug(name) is not None
    )
    return tx.workspaces.save(
        Workspace(uid=uid, slug=slug, v1_name=name, metadata=metadata, created_at=rt.clock())
    )


def get_or_create(rt: Runtime, principal: Principal, name: str) -> Workspace:
    policy.require_admin(principal)
    with rt.storage.read() as tx:
        workspace = _named(tx, names.lookup_name(name))
    if workspace is not None:
        return workspace
    new = names.new_name(name, ("name",))
    return rt.storage.write(lambda tx: _named(tx, new) or _add(rt, tx, new, {}))


def by_name(rt: Runtime, principal: Principal, name: str) -> Workspace:
    policy.require_admin(principal)
    with rt.storage.read() as tx:
        workspace = _named(tx, names.lookup_name(name))
    if workspace is None:
        raise NotFound(f"App with name '{name}' not found")
    return workspace


def get(rt: Runtime, principal: Principal, uid: str | None) -> Workspace:
    """The app with that uid, or the app of the key."""
    with rt.storage.read() as tx:
        has_whole_app = not (
            principal.admin or principal.is_peer or principal.is_session or principal.collection
        )
        own_app = (
            tx.workspaces.by_slug(principal.workspace_id)
            if has_whole_app and principal.workspace_id
            else None
        )
        app_id = resolve.requested_id(uid, own_app.uid if own_app is not None else None, "App")
        resolve.authorise(tx, principal, Path(app_id))
        workspace = resolve.app_of(tx, app_id)
    if workspace is None:
        raise resolve.no_app(app_id)
    return workspace


def page(rt: Runtime, principal: Principal, filter_: object, paging: Paging) -> Page[Workspace]:
    """Apps in the order of creation."""
    policy.require_admin(principal)
    condition = parse_containment(filter_)
    with rt.storage.read() as tx:
        return listing(tx.workspaces, paging, condition)


def update(
    rt: Runtime,
    principal: Principal,
    uid: str,
    name: str | None,
    metadata: Mapping[str, Any] | None,
) -> Workspace:
    """Replace name and metadata; None: unchanged. The id of the other generations never changes."""
    new_name, new_metadata = names.changed_name(name), validation.metadata(metadata)

    def change(tx: Transaction) -> Workspace:
        resolve.authorise(tx, principal, Path(uid))
        workspace = resolve.app_of(tx, uid, lock=True)
        if workspace is None:
            raise resolve.no_app(uid)
        other = None if new_name is None else _named(tx, new_name)
        if other is not None and other.key != workspace.key:
            raise Conflict("App update failed - unique constraint violation")
        changed = replace(
            workspace,
            v1_name=workspace.v1_name if new_name is None else new_name,
            metadata=workspace.metadata if new_metadata is None else new_metadata,
        )
        return workspace if changed == workspace else tx.workspaces.save(changed)

    return rt.storage.write(change)
