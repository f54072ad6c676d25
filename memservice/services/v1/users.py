"""Users: the peers of an app, by their changeable names, without scopes and the assistant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import all_of, parse_containment, where
from memservice.domain.ids import new_uid
from memservice.domain.records import Peer, Workspace
from memservice.runtime import Runtime
from memservice.services import (
    peers,
    validation,
)
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, read_page
from memservice.services.v1 import (
    names,
    resolve,
)
from memservice.services.v1.resolve import (
    ASSISTANT,
    USERS,
    Path,
)
from memservice.spi.storage import View


def _named(view: View, app: Workspace, name: str) -> Peer | None:
    return view.rows.get(Peer, all_of(where(workspace_key=app.key, v1_name=name), USERS))


def _is_taken(view: View, app: Workspace, name: str) -> bool:
    """Also by a peer that generation 1 does not show."""
    return view.rows.get(Peer, where(workspace_key=app.key, v1_name=name)) is not None


def _app(view: View, uid: str) -> Workspace:
    found = resolve.app_of(view, uid)
    if found is None:
        raise resolve.no_app(uid)
    return found


def create(rt: Runtime, who: Principal, app_uid: str, name: str, metadata: Mapping[str, Any] | None) -> Peer:
    """A new user. Conflict if one of that name exists, whichever generation made it."""
    stored_name, stored = names.new_name(name, ("body", "name")), validation.metadata(metadata) or {}

    def change(view: View) -> Peer:
        resolve.authorise(view, who, Path(app_uid))
        return _add(rt, view, _app(view, app_uid), stored_name, stored)

    return rt.storage.write(change)


def _add(rt: Runtime, view: View, app: Workspace, name: str, metadata: dict[str, Any]) -> Peer:
    if _is_taken(view, app, name):
        raise Conflict("User with this name already exists")
    uid = new_uid()
    slug = names.slug_for(name, uid, names.could_be_slug(name) and view.peers.by_slug(app.key, name) is not None)
    return peers.add(view, Peer(uid=uid, workspace_key=app.key, slug=slug, v1_name=name, metadata=metadata, created_at=rt.clock()))


def get_or_create(rt: Runtime, who: Principal, app_uid: str, name: str) -> Peer:
    with rt.storage.read() as view:
        resolve.authorise(view, who, Path(app_uid))
        found = _named(view, _app(view, app_uid), names.wanted(name))
    if found is not None:
        return found
    new = names.new_name(name, ("path", "name"))

    def change(view: View) -> Peer:
        app = _app(view, app_uid)
        return _named(view, app, new) or _add(rt, view, app, new, {})

    return rt.storage.write(change)


def by_name(rt: Runtime, who: Principal, app_uid: str, name: str) -> Peer:
    with rt.storage.read() as view:
        resolve.authorise(view, who, Path(app_uid))
        app = resolve.app_of(view, app_uid)
        found = None if app is None else _named(view, app, names.wanted(name))
    if found is None:
        raise NotFound(f"User with name '{name}' not found")
    return found


def get(rt: Runtime, who: Principal, app_uid: str, uid: str | None) -> Peer:
    """The user of that uid, or the one that the key is for."""
    with rt.storage.read() as view:
        app = resolve.app_of(view, app_uid)
        own = view.peers.by_slug(app.key, who.peer) if app is not None and who.is_peer and who.peer is not None else None
        wanted = resolve.chosen(uid, own.uid if own is not None else None, "User")
        resolve.authorise(view, who, Path(app_uid, wanted))
        return resolve.require_user(view, Path(app_uid, wanted))[1]


def page(rt: Runtime, who: Principal, app_uid: str, filter_: object, paging: Paging) -> Page[Peer]:
    """In the order in which they were created."""
    condition = all_of(parse_containment(filter_), USERS)
    with rt.storage.read() as view:
        resolve.authorise(view, who, Path(app_uid))
        app = resolve.app_of(view, app_uid)
        if app is None:
            return Page([], 0, paging.page, paging.size)
        key = app.key
        return read_page(
            paging,
            lambda: view.peers.page(key, condition, paging.order(), paging.size, paging.offset),
            lambda: view.peers.count(key, condition),
        )


def update(rt: Runtime, who: Principal, path: Path, name: str | None, metadata: Mapping[str, Any] | None) -> Peer:
    """Name and metadata are replaced; None leaves either. The id of the other generations stays."""
    wanted, stored = names.changed_name(name), validation.metadata(metadata)

    def change(view: View) -> Peer:
        resolve.authorise(view, who, path)
        app, found = resolve.require_user(view, path)
        held = view.peers.by_slug(app.key, found.slug, lock=True) or found
        if wanted is not None and wanted != held.v1_name and _is_taken(view, app, wanted):
            raise Conflict("User update failed - unique constraint violation")
        changed = replace(
            held,
            v1_name=held.v1_name if wanted is None else wanted,
            metadata=held.metadata if stored is None else stored,
        )
        return held if changed == held else peers.change(view, held, changed)

    return rt.storage.write(change)


def assistant_of(rt: Runtime, view: View, app: Workspace) -> Peer:
    """The app's assistant, which is made when it is first needed: whoever says what no user says. An ordinary peer elsewhere."""
    found = view.rows.get(Peer, where(workspace_key=app.key, v1_role=ASSISTANT))
    if found is None:
        # Held, so that it is made once; looked for again, since somebody else may have made it meanwhile.
        view.rows.get(Workspace, where(key=app.key), lock=True)
        found = view.rows.get(Peer, where(workspace_key=app.key, v1_role=ASSISTANT))
    if found is None:
        slug = new_uid()
        found = peers.ensure(rt, view, app.key, [slug], ("path", "app_id"), v1_role=ASSISTANT)[slug]
    return found
