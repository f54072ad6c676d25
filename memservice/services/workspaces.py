"""Workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memservice.domain import configuration
from memservice.domain.errors import NotFound
from memservice.domain.filters import all_of, parse_filters, resources
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, Workspace
from memservice.runtime import Runtime
from memservice.services import validation
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, listing
from memservice.spi.rows import UniqueViolation
from memservice.spi.storage import Transaction

ARGUMENT = ("workspace_id",)


def ensure(
    rt: Runtime,
    tx: Transaction,
    slug: str,
    *,
    lock: bool = False,
    **fields: Any,
) -> tuple[Workspace, bool]:
    """The workspace of that name, and whether it was created, then with these `fields`. `lock`: its
    row is locked until commit, to change it."""
    workspace_before = tx.workspaces.by_slug(slug, lock=lock)
    if workspace_before is not None:
        return workspace_before, False
    validation.require_name(slug, ARGUMENT)
    uid = new_uid()
    workspace = Workspace(uid=uid, slug=slug, v1_name=slug, created_at=rt.clock(), **fields)
    try:
        return tx.workspaces.save(workspace), True
    except UniqueViolation as violation:
        if violation.fields != ("v1_name",):
            raise
        # Generation 1 renamed another workspace to this name; the id is free nevertheless.
        return tx.workspaces.save(replace(workspace, v1_name=uid)), True


def not_found(slug: str) -> NotFound:
    return NotFound(f"Workspace {slug} not found")


def require(tx: Transaction, slug: str) -> Workspace:
    workspace = tx.workspaces.by_slug(slug)
    if workspace is None:
        raise not_found(slug)
    return workspace


def require_for_reading(tx: Transaction, slug: str) -> tuple[Workspace, bool]:
    """The active workspace, and whether a peer of it is being erased: one statement. Raises
    `NotFound`."""
    match = tx.workspaces.locate(slug)
    if match.workspace is None:
        raise not_found(slug)
    return match.workspace, match.is_erasing


def lock_active(tx: Transaction, key: int) -> bool:
    """Lock the workspace until commit; False if it is being deleted. Call it before you store a
    session: an active session prevents the deletion of its workspace, so it must not be stored in
    one that is being deleted."""
    workspace = tx.workspaces.by_key(key, lock=True)
    return workspace is not None and workspace.state == ACTIVE


def get_or_create(
    rt: Runtime,
    principal: Principal,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
) -> tuple[Workspace, bool]:
    """The workspace, and whether it was created. An existing one does not change. A key of a peer
    or a session can create one only without metadata and configuration."""
    policy.require_key_of(principal, slug)
    validation.require_name(slug, ARGUMENT)
    new_metadata = validation.metadata(metadata) or {}
    settings = validation.settings_of(rt, config) or {}
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(slug)
    if workspace is not None:
        return workspace, False
    policy.require_bare_workspace(principal, new_metadata, settings)
    return rt.storage.write(
        lambda tx: ensure(rt, tx, slug, metadata=new_metadata, configuration=settings)
    )


def page(rt: Runtime, principal: Principal, filters: object, paging: Paging) -> Page[Workspace]:
    allowed = policy.listable(principal)
    condition = all_of(parse_filters(filters, resources.WORKSPACE), allowed)
    with rt.storage.read() as tx:
        return listing(tx.workspaces, paging, condition, order=paging.order("created_at"))


def update(
    rt: Runtime,
    principal: Principal,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
) -> Workspace:
    """Metadata is replaced, configuration merged by section; None: unchanged. Creates a missing
    workspace."""
    policy.require(principal, slug)
    new_metadata = validation.metadata(metadata)
    settings = validation.settings_of(rt, config)

    def change(tx: Transaction) -> Workspace:
        workspace, created = ensure(
            rt, tx, slug, lock=True, metadata=new_metadata or {}, configuration=settings or {}
        )
        if created or (new_metadata is None and settings is None):
            return workspace
        return tx.workspaces.save(
            replace(
                workspace,
                metadata=workspace.metadata if new_metadata is None else new_metadata,
                configuration=configuration.merge(workspace.configuration, settings or {}),
            )
        )

    return rt.storage.write(change)
