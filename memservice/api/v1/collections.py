"""Collections."""

from __future__ import annotations

from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths, schemas
from memservice.api.v1.sessions import Done
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import NamedCollection
from memservice.services.paging import Page
from memservice.services.v1 import collections
from memservice.services.v1.resolve import Path

routes = Routes(
    "collections",
    "Collections contain documents. The collection `honcho` contains the conclusions about the "
    "user.",
    "v1",
)


@routes.operation(
    "POST",
    paths.COLLECTIONS,
    access=paths.OF_COLLECTIONS,
    body=schemas.CollectionCreate,
    answer=schemas.Collection,
)
def create_collection(call: Call, app_id: str, user_id: str) -> NamedCollection:
    """Create a collection

    409 if the name is in use.
    """
    return collections.create(
        call.rt, call.principal, Path(app_id, user_id), call.body["name"], call.body["metadata"]
    )


@routes.operation(
    "GET",
    paths.COLLECTIONS,
    access=paths.LOOK_UP_COLLECTION,
    query=schemas.CollectionQuery,
    answer=schemas.Collection,
)
def get_collection(call: Call, app_id: str, user_id: str) -> NamedCollection:
    """Get the collection with this id, or the collection of the key"""
    return collections.get(
        call.rt, call.principal, Path(app_id, user_id), call.query["collection_id"]
    )


@routes.operation(
    "POST",
    paths.COLLECTIONS + "/list",
    reads=True,
    access=paths.OF_COLLECTIONS,
    query=PageQuery,
    body=schemas.CollectionGet,
    body_optional=True,
    answer=page_of(schemas.Collection),
)
def get_collections(call: Call, app_id: str, user_id: str) -> Page[NamedCollection]:
    """List a user's collections"""
    return collections.page(
        call.rt, call.principal, Path(app_id, user_id), call.body["filter"], paging(call.query)
    )


@routes.operation(
    "GET",
    paths.COLLECTIONS + "/name/<name>",
    access=paths.OF_COLLECTIONS,
    answer=schemas.Collection,
)
def get_collection_by_name(call: Call, app_id: str, user_id: str, name: str) -> NamedCollection:
    """Get a collection by its name"""
    return collections.by_name(call.rt, call.principal, Path(app_id, user_id), name)


@routes.operation(
    "PUT",
    paths.COLLECTION,
    access=paths.OF_COLLECTION,
    body=schemas.CollectionUpdate,
    answer=schemas.Collection,
)
def update_collection(call: Call, app_id: str, user_id: str, collection_id: str) -> NamedCollection:
    """Rename a collection, or replace its metadata"""
    path = Path(app_id, user_id, collection=collection_id)
    return collections.update(
        call.rt, call.principal, path, call.body["name"], call.body["metadata"]
    )


@routes.operation("DELETE", paths.COLLECTION, access=paths.OF_COLLECTION, answer=schemas.Deleted)
def delete_collection(call: Call, app_id: str, user_id: str, collection_id: str) -> Done:
    """Delete a collection with its documents"""
    collections.delete(call.rt, call.principal, Path(app_id, user_id, collection=collection_id))
    return Done("Collection deleted successfully")
