"""Apps: workspaces, by their changeable names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import parse_containment, where
from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, Workspace
from memservice.runtime import Runtime
from memservice.services import validation
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, read_page
from memservice.services.v1 import (
    names,
    resolve,
)
from memservice.services.v1.resolve import Path
from memservice.spi.storage import View


def _taken(name: str) -> Conflict:
    return Conflict(f"App with name '{name}' already exists")


def _named(view: View, name: str) -> Workspace | None:
    return view.rows.get(Workspace, where(v1_name=name, state=ACTIVE))


def create(rt: Runtime, who: Principal, name: str, metadata: Mapping[str, Any] | None) -> Workspace:
    """A new app. Conflict if one of that name exists, whichever generation made it."""
    policy.require_admin(who)
    stored_name, stored = names.new_name(name, ("body", "name")), validation.metadata(metadata) or {}

    def change(view: View) -> Workspace:
        if _named(view, stored_name) is not None:
            raise _taken(stored_name)
        return _add(rt, view, stored_name, stored)

    return rt.storage.write(change)


def _add(rt: Runtime, view: View, name: str, metadata: dict[str, Any]) -> Workspace:
    uid = new_uid()
    slug = names.slug_for(name, uid, names.could_be_slug(name) and view.workspaces.by_slug(name) is not None)
    return view.workspaces.save(Workspace(uid=uid, slug=slug, v1_name=name, metadata=metadata, created_at=rt.clock()))


def get_or_create(rt: Runtime, who: Principal, name: str) -> Workspace:
    policy.require_admin(who)
    with rt.storage.read() as view:
        found = _named(view, names.wanted(name))
    if found is not None:
        return found
    new = names.new_name(name, ("path", "name"))
    return rt.storage.write(lambda view: _named(view, new) or _add(rt, view, new, {}))


def by_name(rt: Runtime, who: Principal, name: str) -> Workspace:
    policy.require_admin(who)
    with rt.storage.read() as view:
        found = _named(view, names.wanted(name))
    if found is None:
        raise NotFound(f"App with name '{name}' not found")
    return found


def get(rt: Runtime, who: Principal, uid: str | None) -> Workspace:
    """The app of that uid, or the one that the key is for."""
    with rt.storage.read() as view:
        whole = not (who.admin or who.is_peer or who.is_session or who.collection)
        own = view.workspaces.by_slug(who.workspace) if whole and who.workspace else None
        wanted = resolve.chosen(uid, own.uid if own is not None else None, "App")
        resolve.authorise(view, who, Path(wanted))
        found = resolve.app_of(view, wanted)
    if found is None:
        raise resolve.no_app(wanted)
    return found


def page(rt: Runtime, who: Principal, filter_: object, paging: Paging) -> Page[Workspace]:
    """In the order in which they were created."""
    policy.require_admin(who)
    condition = parse_containment(filter_)
    with rt.storage.read() as view:
        return read_page(
            paging,
            lambda: view.workspaces.page(condition, paging.order(), paging.size, paging.offset),
            lambda: view.workspaces.count(condition),
        )


def update(rt: Runtime, who: Principal, uid: str, name: str | None, metadata: Mapping[str, Any] | None) -> Workspace:
    """Name and metadata are replaced; None leaves either. The id of the other generations stays."""
    wanted, stored = names.changed_name(name), validation.metadata(metadata)

    def change(view: View) -> Workspace:
        resolve.authorise(view, who, Path(uid))
        found = resolve.app_of(view, uid, lock=True)
        if found is None:
            raise resolve.no_app(uid)
        other = None if wanted is None else _named(view, wanted)
        if other is not None and other.key != found.key:
            raise Conflict("App update failed - unique constraint violation")
        changed = replace(
            found,
            v1_name=found.v1_name if wanted is None else wanted,
            metadata=found.metadata if stored is None else stored,
        )
        return found if changed == found else view.workspaces.save(changed)

    return rt.storage.write(change)
