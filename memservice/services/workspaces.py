"""Workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
    """The workspace of that name, its row held until commit if it is to be changed, and whether it
    was created now. `fields` are its columns if it is."""
    found = tx.workspaces.by_slug(slug, lock=lock)
    if found is not None:
        return found, False
    validation.require_name(slug, ARGUMENT)
    uid = new_uid()
    workspace = Workspace(uid=uid, slug=slug, v1_name=slug, created_at=rt.clock(), **fields)
    try:
        return tx.workspaces.save(workspace), True
    except UniqueViolation as taken:
        if taken.fields != ("v1_name",):
            raise
        # Another workspace was renamed to this by generation 1; the id is free all the same.
        return tx.workspaces.save(replace(workspace, v1_name=uid)), True


def not_found(slug: str) -> NotFound:
    return NotFound(f"Workspace {slug} not found")


def require(tx: Transaction, slug: str) -> Workspace:
    workspace = tx.workspaces.by_slug(slug)
    if workspace is None:
        raise not_found(slug)
    return workspace


def hold(tx: Transaction, key: int) -> bool:
    """Whether the workspace is not being deleted; then nobody begins to before commit. To be asked
    before a session is stored: what its caller is told is stored would go with the workspace,
    though an active session is what keeps one from being deleted."""
    workspace = tx.workspaces.by_key(key, lock=True)
    return workspace is not None and workspace.state == ACTIVE


def get_or_create(
    rt: Runtime,
    principal: Principal,
    slug: str,
    metadata: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
) -> tuple[Workspace, bool]:
    """The workspace and whether it was created now. An existing one is returned as it is: the body
    changes nothing. A key of a peer or a session creates one without metadata and configuration
    only."""
    policy.require_key_of(principal, slug)
    validation.require_name(slug, ARGUMENT)
    stored = validation.metadata(metadata) or {}
    settings = validation.settings_of(rt, config) or {}
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(slug)
    if workspace is not None:
        return workspace, False
    policy.require_bare_workspace(principal, stored, settings)
    return rt.storage.write(
        lambda tx: ensure(rt, tx, slug, metadata=stored, configuration=settings)
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
    """Metadata is replaced, configuration merged by section; None leaves either. Creates a
    workspace that is missing."""
    policy.require(principal, slug)
    stored = validation.metadata(metadata)
    settings = validation.settings_of(rt, config)

    def change(tx: Transaction) -> Workspace:
        workspace, created = ensure(
            rt, tx, slug, lock=True, metadata=stored or {}, configuration=settings or {}
        )
        if created or (stored is None and settings is None):
            return workspace
        return tx.workspaces.save(
            replace(
                workspace,
                metadata=workspace.metadata if stored is None else stored,
                configuration=configuration.merge(workspace.configuration, settings or {}),
            )
        )

    return rt.storage.write(change)
