"""Collections of a user: named sets of documents. The reserved collection contains the conclusions
about the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

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
"""The name of the collection whose documents are the user's conclusions about itself."""

ERASE_BATCH_SIZE = 1_000
"""Number of documents that one transaction erases with their collection."""


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


def _require_not_reserved(name: str) -> str:
    if name.casefold() == RESERVED:
        raise InvalidInput.at(
            "name", message=f"Value error, Collection name cannot be '{RESERVED}'"
        )
    return name


def ensure_derived(rt: Runtime, tx: Transaction, user: Peer) -> NamedCollection:
    """The reserved collection. Its row is created on first use."""
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


def _ensure_listed(rt: Runtime, principal: Principal, path: Path) -> None:
    """Create the reserved collection before the user's collections are listed, if the user has any
    conclusion."""
    with rt.storage.read() as tx:
        resolve.authorise_collections(tx, principal, path)
        match = resolve.find_user(tx, path)
        if match is None or _named(tx, match[1], RESERVED) is not None:
            return
        user = match[1]
        if tx.conclusions.collection(user.key, user.key) is None:
            return
    rt.storage.write(lambda tx: ensure_derived(rt, tx, user))


def create(
    rt: Runtime, principal: Principal, path: Path, name: str, metadata: Mapping[str, Any] | None
) -> NamedCollection:
    """Create a collection. Conflict if the user has one of that name."""
    new_name, new_metadata = (
        _require_not_reserved(names.new_name(name, ("name",))),
        validation.metadata(metadata) or {},
    )

    def change(tx: Transaction) -> NamedCollection:
        resolve.authorise_collections(tx, principal, path)
        workspace, user = resolve.require_user(tx, path)
        if _named(tx, user, new_name) is not None:
            raise Conflict(f"Collection with name '{new_name}' already exists")
        row = NamedCollection(
            uid=new_uid(),
            workspace_key=workspace.key,
            owner_key=user.key,
            name=new_name,
            metadata=new_metadata,
            created_at=rt.clock(),
        )
        return tx.rows.put([row])[0]

    return rt.storage.write(change)


def by_name(rt: Runtime, principal: Principal, path: Path, name: str) -> NamedCollection:
    if name == RESERVED:
        _ensure_listed(rt, principal, path)
    with rt.storage.read() as tx:
        resolve.authorise_collections(tx, principal, path)
        user = resolve.find_user(tx, path)
        collection = None if user is None else _named(tx, user[1], name)
    if collection is None:
        raise NotFound(f"Collection with name '{name}' not found")
    return collection


def get(rt: Runtime, principal: Principal, path: Path, uid: str | None) -> NamedCollection:
    """The user's collection with that uid, or the collection of the key."""
    with rt.storage.read() as tx:
        collection_id = resolve.requested_id(uid, principal.collection, "Collection")
        resolve.authorise_collections(tx, principal, replace(path, collection=collection_id))
        user = resolve.find_user(tx, path)
        collection = None if user is None else find(tx, user[1], collection_id)
    if collection is None:
        raise missing()
    return collection


def page(
    rt: Runtime, principal: Principal, path: Path, filter_: object, paging: Paging
) -> Page[NamedCollection]:
    """Collections in the order of creation."""
    condition = parse_containment(filter_)
    _ensure_listed(rt, principal, path)
    with rt.storage.read() as tx:
        resolve.authorise_collections(tx, principal, path)
        match = resolve.find_user(tx, path)
        if match is None:
            return paging.empty()
        matching = all_of(equals(owner_key=match[1].key), condition)
        return records(tx.rows, NamedCollection, matching, paging)


def update(
    rt: Runtime,
    principal: Principal,
    path: Path,
    name: str | None,
    metadata: Mapping[str, Any] | None,
) -> NamedCollection:
    """Replace name and metadata; at least one is required. The reserved collection keeps its
    name."""
    if name is None and metadata is None:
        raise InvalidInput.at(
            message="Invalid collection configuration - at least one field must be provided"
        )
    new_name, new_metadata = names.changed_name(name), validation.metadata(metadata)
    if new_name is not None:
        _require_not_reserved(new_name)

    def change(tx: Transaction) -> NamedCollection:
        resolve.authorise_collections(tx, principal, path)
        user = resolve.find_user(tx, path)
        collection = None if user is None else find(tx, user[1], path.collection, lock=True)
        if user is None or collection is None:
            raise missing()
        if new_name is not None and is_derived(collection):
            raise InvalidInput.at(
                "name", message=f"'{RESERVED}' is a reserved name: the collection keeps it"
            )
        if (
            new_name is not None
            and new_name != collection.name
            and _named(tx, user[1], new_name) is not None
        ):
            raise Conflict("Collection update failed - name already in use")
        changed = replace(
            collection,
            name=collection.name if new_name is None else new_name,
            metadata=collection.metadata if new_metadata is None else new_metadata,
        )
        return collection if changed == collection else tx.rows.put([changed])[0]

    return rt.storage.write(change)


def delete(rt: Runtime, principal: Principal, path: Path) -> None:
    """Erase a collection and its documents in batches, the collection last. An interrupted deletion
    can be repeated."""

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
            indexing.remove_rows(rt, tx, indexing.DOCUMENT, collection.workspace_key, keys)
            tx.rows.delete(Document, equals(key=keys))
        if len(rows) == ERASE_BATCH_SIZE:
            return False
        tx.rows.delete(NamedCollection, equals(key=collection.key))
        return True

    while not rt.storage.write(step):
        pass
