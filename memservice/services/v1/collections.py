"""Collections of a user: documents under a name. The reserved one holds what was concluded about
the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memservice.domain.errors import Conflict, InvalidInput, NotFound
from memservice.domain.filters import all_of, equals, parse_containment
from memservice.domain.ids import new_uid
from memservice.domain.records import Document, NamedCollection, Peer
from memservice.runtime import Runtime
from memservice.services import indexing, validation
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, records
from memservice.services.v1 import names, resolve
from memservice.services.v1.resolve import Path
from memservice.spi.storage import Transaction

RESERVED = "honcho"
"""The name of the collection whose documents are the conclusions that a user holds about itself."""

ERASE_BATCH_SIZE = 1_000
"""Documents that one transaction erases with their collection."""


def is_derived(collection: NamedCollection) -> bool:
    return collection.name == RESERVED


def missing() -> NotFound:
    return NotFound("Collection not found or does not belong to user")


def find(
    tx: Transaction, user: Peer, uid: str | None, *, lock: bool = False
) -> NamedCollection | None:
    return (
        None
        if uid is None
        else tx.rows.get(NamedCollection, equals(uid=uid, owner_key=user.key), lock=lock)
    )


def _named(tx: Transaction, user: Peer, name: str) -> NamedCollection | None:
    return tx.rows.get(NamedCollection, equals(owner_key=user.key, name=name))


def _checked(name: str) -> str:
    if name.casefold() == RESERVED:
        raise InvalidInput.at(
            "name", message=f"Value error, Collection name cannot be '{RESERVED}'"
        )
    return name


def ensure_derived(rt: Runtime, tx: Transaction, user: Peer) -> NamedCollection:
    """The reserved collection, which gets a row of its own when it is first needed."""
    collection = _named(tx, user, RESERVED)
    if collection is not None:
        return collection
    row = NamedCollection(
        uid=new_uid(),
        workspace_key=user.workspace_key,
        owner_key=user.key,
        name=RESERVED,
        created_at=rt.clock(),
    )
    return tx.rows.put([row])[0]


def _show_derived(rt: Runtime, principal: Principal, path: Path) -> None:
    """From its first conclusion on, a user has the reserved collection: let it appear before the
    user's collections are looked at."""
    with rt.storage.read() as tx:
        resolve.authorise_collections(tx, principal, path)
        found = resolve.find_user(tx, path)
        if found is None or _named(tx, found[1], RESERVED) is not None:
            return
        user = found[1]
        if tx.conclusions.collection(user.key, user.key) is None:
            return
    rt.storage.write(lambda tx: ensure_derived(rt, tx, user))


def create(
    rt: Runtime, principal: Principal, path: Path, name: str, metadata: Mapping[str, Any] | None
) -> NamedCollection:
    """A new collection. Conflict if the user has one of that name."""
    wanted, stored = (
        _checked(names.new_name(name, ("name",))),
        validation.metadata(metadata) or {},
    )

    def change(tx: Transaction) -> NamedCollection:
        resolve.authorise_collections(tx, principal, path)
        workspace, user = resolve.require_user(tx, path)
        if _named(tx, user, wanted) is not None:
            raise Conflict(f"Collection with name '{wanted}' already exists")
        row = NamedCollection(
            uid=new_uid(),
            workspace_key=workspace.key,
            owner_key=user.key,
            name=wanted,
            metadata=stored,
            created_at=rt.clock(),
        )
        return tx.rows.put([row])[0]

    return rt.storage.write(change)


def by_name(rt: Runtime, principal: Principal, path: Path, name: str) -> NamedCollection:
    if name == RESERVED:
        _show_derived(rt, principal, path)
    with rt.storage.read() as tx:
        resolve.authorise_collections(tx, principal, path)
        user = resolve.find_user(tx, path)
        collection = None if user is None else _named(tx, user[1], name)
    if collection is None:
        raise NotFound(f"Collection with name '{name}' not found")
    return collection


def get(rt: Runtime, principal: Principal, path: Path, uid: str | None) -> NamedCollection:
    """The user's collection of that uid, or the one that the key is for."""
    with rt.storage.read() as tx:
        wanted = resolve.requested_id(uid, principal.collection, "Collection")
        resolve.authorise_collections(tx, principal, replace(path, collection=wanted))
        user = resolve.find_user(tx, path)
        collection = None if user is None else find(tx, user[1], wanted)
    if collection is None:
        raise missing()
    return collection


def page(
    rt: Runtime, principal: Principal, path: Path, filter_: object, paging: Paging
) -> Page[NamedCollection]:
    """In the order in which they were created."""
    condition = parse_containment(filter_)
    _show_derived(rt, principal, path)
    with rt.storage.read() as tx:
        resolve.authorise_collections(tx, principal, path)
        found = resolve.find_user(tx, path)
        if found is None:
            return paging.empty()
        matching = all_of(equals(owner_key=found[1].key), condition)
        return records(tx.rows, NamedCollection, matching, paging)


def update(
    rt: Runtime,
    principal: Principal,
    path: Path,
    name: str | None,
    metadata: Mapping[str, Any] | None,
) -> NamedCollection:
    """Name and metadata are replaced; at least one has to be given. The reserved collection keeps
    its name."""
    if name is None and metadata is None:
        raise InvalidInput.at(
            message="Invalid collection configuration - at least one field must be provided"
        )
    wanted, stored = names.changed_name(name), validation.metadata(metadata)
    if wanted is not None:
        _checked(wanted)

    def change(tx: Transaction) -> NamedCollection:
        resolve.authorise_collections(tx, principal, path)
        user = resolve.find_user(tx, path)
        collection = None if user is None else find(tx, user[1], path.collection, lock=True)
        if user is None or collection is None:
            raise missing()
        if wanted is not None and is_derived(collection):
            raise InvalidInput.at(
                "name", message=f"'{RESERVED}' is a reserved name: the collection keeps it"
            )
        if (
            wanted is not None
            and wanted != collection.name
            and _named(tx, user[1], wanted) is not None
        ):
            raise Conflict("Collection update failed - name already in use")
        changed = replace(
            collection,
            name=collection.name if wanted is None else wanted,
            metadata=collection.metadata if stored is None else stored,
        )
        return collection if changed == collection else tx.rows.put([changed])[0]

    return rt.storage.write(change)


def delete(rt: Runtime, principal: Principal, path: Path) -> None:
    """Erase a collection with its documents, some at a time, itself last: whatever interrupts this,
    it can be asked for again."""

    def step(tx: Transaction) -> bool:
        resolve.authorise_collections(tx, principal, path)
        user = resolve.find_user(tx, path)
        collection = None if user is None else find(tx, user[1], path.collection, lock=True)
        if collection is None:
            raise missing()
        if is_derived(collection):
            raise InvalidInput.at(
                "collection_id",
                message=f"Invalid collection configuration - '{RESERVED}' is a reserved name",
            )
        rows = tx.rows.page(Document, equals(collection_key=collection.key), limit=ERASE_BATCH_SIZE)
        keys = tuple(row.key for row in rows)
        if keys:
            indexing.forget_rows(rt, tx, indexing.DOCUMENT, collection.workspace_key, keys)
            tx.rows.delete(Document, equals(key=keys))
        if len(rows) == ERASE_BATCH_SIZE:
            return False
        tx.rows.delete(NamedCollection, equals(key=collection.key))
        return True

    while not rt.storage.write(step):
        pass
