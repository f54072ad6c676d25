"""Collections of a user: documents under a name. The reserved one holds what was concluded about the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memservice.domain.errors import Conflict, InvalidInput, NotFound
from memservice.domain.filters import all_of, parse_containment, where
from memservice.domain.ids import new_uid
from memservice.domain.records import Document, NamedCollection, Peer
from memservice.runtime import Runtime
from memservice.services import (
    indexing,
    validation,
)
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, read_page
from memservice.services.v1 import (
    names,
    resolve,
)
from memservice.services.v1.resolve import Path
from memservice.spi.storage import View

RESERVED = "honcho"
"""The name of the collection whose documents are the conclusions that a user holds about itself."""

ERASED_AT_ONCE = 1_000
"""Documents that one transaction erases with their collection."""


def is_derived(collection: NamedCollection) -> bool:
    return collection.name == RESERVED


def missing() -> NotFound:
    return NotFound("Collection not found or does not belong to user")


def find(view: View, user: Peer, uid: str | None, *, lock: bool = False) -> NamedCollection | None:
    return None if uid is None else view.rows.get(NamedCollection, where(uid=uid, owner_key=user.key), lock=lock)


def _named(view: View, user: Peer, name: str) -> NamedCollection | None:
    return view.rows.get(NamedCollection, where(owner_key=user.key, name=name))


def _checked(name: str) -> str:
    if name.casefold() == RESERVED:
        raise InvalidInput.at("body", "name", message=f"Value error, Collection name cannot be '{RESERVED}'")
    return name


def ensure_derived(rt: Runtime, view: View, user: Peer) -> NamedCollection:
    """The reserved collection, which gets a row of its own when it is first needed."""
    found = _named(view, user, RESERVED)
    if found is not None:
        return found
    row = NamedCollection(uid=new_uid(), workspace_key=user.workspace_key, owner_key=user.key, name=RESERVED, created_at=rt.clock())
    return view.rows.put([row])[0]


def _show_derived(rt: Runtime, who: Principal, path: Path) -> None:
    """From its first conclusion on, a user has the reserved collection: let it appear before the user's collections are looked at."""
    with rt.storage.read() as view:
        resolve.authorise_collections(view, who, path)
        found = resolve.find_user(view, path)
        if found is None or _named(view, found[1], RESERVED) is not None:
            return
        user = found[1]
        if view.conclusions.collection(user.key, user.key) is None:
            return
    rt.storage.write(lambda view: ensure_derived(rt, view, user))


def create(rt: Runtime, who: Principal, path: Path, name: str, metadata: Mapping[str, Any] | None) -> NamedCollection:
    """A new collection. Conflict if the user has one of that name."""
    wanted, stored = _checked(names.new_name(name, ("body", "name"))), validation.metadata(metadata) or {}

    def change(view: View) -> NamedCollection:
        resolve.authorise_collections(view, who, path)
        app, user = resolve.require_user(view, path)
        if _named(view, user, wanted) is not None:
            raise Conflict(f"Collection with name '{wanted}' already exists")
        row = NamedCollection(uid=new_uid(), workspace_key=app.key, owner_key=user.key, name=wanted, metadata=stored, created_at=rt.clock())
        return view.rows.put([row])[0]

    return rt.storage.write(change)


def by_name(rt: Runtime, who: Principal, path: Path, name: str) -> NamedCollection:
    if name == RESERVED:
        _show_derived(rt, who, path)
    with rt.storage.read() as view:
        resolve.authorise_collections(view, who, path)
        user = resolve.find_user(view, path)
        found = None if user is None else _named(view, user[1], name)
    if found is None:
        raise NotFound(f"Collection with name '{name}' not found")
    return found


def get(rt: Runtime, who: Principal, path: Path, uid: str | None) -> NamedCollection:
    """The user's collection of that uid, or the one that the key is for."""
    with rt.storage.read() as view:
        wanted = resolve.chosen(uid, who.collection, "Collection")
        resolve.authorise_collections(view, who, replace(path, collection=wanted))
        user = resolve.find_user(view, path)
        found = None if user is None else find(view, user[1], wanted)
    if found is None:
        raise missing()
    return found


def page(rt: Runtime, who: Principal, path: Path, filter_: object, paging: Paging) -> Page[NamedCollection]:
    """In the order in which they were created."""
    condition = parse_containment(filter_)
    _show_derived(rt, who, path)
    with rt.storage.read() as view:
        resolve.authorise_collections(view, who, path)
        found = resolve.find_user(view, path)
        if found is None:
            return Page([], 0, paging.page, paging.size)
        matching = all_of(where(owner_key=found[1].key), condition)
        return read_page(
            paging,
            lambda: view.rows.page(NamedCollection, matching, paging.order(), paging.size, paging.offset),
            lambda: view.rows.count(NamedCollection, matching),
        )


def update(rt: Runtime, who: Principal, path: Path, name: str | None, metadata: Mapping[str, Any] | None) -> NamedCollection:
    """Name and metadata are replaced; at least one has to be given. The reserved collection keeps its name."""
    if name is None and metadata is None:
        raise InvalidInput.at("body", message="Invalid collection configuration - at least one field must be provided")
    wanted, stored = names.changed_name(name), validation.metadata(metadata)
    if wanted is not None:
        _checked(wanted)

    def change(view: View) -> NamedCollection:
        resolve.authorise_collections(view, who, path)
        user = resolve.find_user(view, path)
        found = None if user is None else find(view, user[1], path.collection, lock=True)
        if user is None or found is None:
            raise missing()
        if wanted is not None and is_derived(found):
            raise InvalidInput.at("body", "name", message=f"'{RESERVED}' is a reserved name: the collection keeps it")
        if wanted is not None and wanted != found.name and _named(view, user[1], wanted) is not None:
            raise Conflict("Collection update failed - name already in use")
        changed = replace(found, name=found.name if wanted is None else wanted, metadata=found.metadata if stored is None else stored)
        return found if changed == found else view.rows.put([changed])[0]

    return rt.storage.write(change)


def delete(rt: Runtime, who: Principal, path: Path) -> None:
    """Erase a collection with its documents, some at a time, itself last: whatever interrupts this, it can be asked for again."""

    def step(view: View) -> bool:
        resolve.authorise_collections(view, who, path)
        user = resolve.find_user(view, path)
        found = None if user is None else find(view, user[1], path.collection, lock=True)
        if found is None:
            raise missing()
        if is_derived(found):
            raise InvalidInput.at("path", "collection_id", message=f"Invalid collection configuration - '{RESERVED}' is a reserved name")
        rows = view.rows.page(Document, where(collection_key=found.key), limit=ERASED_AT_ONCE)
        keys = tuple(row.key for row in rows)
        if keys:
            indexing.forget_rows(rt, view, indexing.DOCUMENT, found.workspace_key, keys)
            view.rows.delete(Document, where(key=keys))
        if len(rows) == ERASED_AT_ONCE:
            return False
        view.rows.delete(NamedCollection, where(key=found.key))
        return True

    while not rt.storage.write(step):
        pass
