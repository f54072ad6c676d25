"""Documents."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.api.locations import ANY
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths, schemas
from memservice.api.v1.sessions import Done
from memservice.api.v3.schemas.queries import PageQuery
from memservice.services.paging import Page
from memservice.services.v1 import documents
from memservice.services.v1.documents import AnyDocument
from memservice.services.v1.resolve import Path

routes = Routes("documents", "Texts of a collection, with semantic search.", "v1")

_DOCUMENT = paths.DOCUMENTS + "/<document_id>"


def _path(app_id: str, user_id: str, collection_id: str) -> Path:
    return Path(app_id, user_id, collection=collection_id)


@routes.operation(
    "POST",
    paths.DOCUMENTS,
    access=paths.OF_COLLECTION,
    body=schemas.DocumentCreate,
    large=True,
    answer=schemas.Document,
    locations={("conclusions", ANY): ("body",)},
)
def create_document(call: Call, app_id: str, user_id: str, collection_id: str) -> AnyDocument:
    """Store a document"""
    return documents.create(
        call.rt,
        call.principal,
        _path(app_id, user_id, collection_id),
        call.body["content"],
        call.body["metadata"],
    )


@routes.operation(
    "POST",
    paths.DOCUMENTS + "/list",
    reads=True,
    access=paths.OF_COLLECTION,
    query=PageQuery,
    body=schemas.DocumentGet,
    body_optional=True,
    answer=page_of(schemas.Document),
)
def get_documents(call: Call, app_id: str, user_id: str, collection_id: str) -> Page[AnyDocument]:
    """List a collection's documents"""
    return documents.page(
        call.rt,
        call.principal,
        _path(app_id, user_id, collection_id),
        call.body["filter"],
        paging(call.query),
    )


@routes.operation(
    "POST",
    paths.DOCUMENTS + "/query",
    reads=True,
    access=paths.OF_COLLECTION,
    body=schemas.DocumentQuery,
    answer=schemas.Document,
    many=True,
)
def query_documents(
    call: Call, app_id: str, user_id: str, collection_id: str
) -> Sequence[AnyDocument]:
    """Find the documents that are nearest to a text

    Nearest first.
    """
    body = call.body
    return documents.query(
        call.rt,
        call.principal,
        _path(app_id, user_id, collection_id),
        body["query"],
        body["top_k"],
        body["filter"],
    )


@routes.operation("GET", _DOCUMENT, access=paths.OF_COLLECTION, answer=schemas.Document)
def get_document(
    call: Call, app_id: str, user_id: str, collection_id: str, document_id: str
) -> AnyDocument:
    """Get a document"""
    return documents.get(
        call.rt, call.principal, _path(app_id, user_id, collection_id), document_id
    )


@routes.operation(
    "PUT",
    _DOCUMENT,
    access=paths.OF_COLLECTION,
    body=schemas.DocumentUpdate,
    large=True,
    answer=schemas.Document,
)
def update_document(
    call: Call, app_id: str, user_id: str, collection_id: str, document_id: str
) -> AnyDocument:
    """Replace a document's content or metadata"""
    body = call.body
    return documents.update(
        call.rt,
        call.principal,
        _path(app_id, user_id, collection_id),
        document_id,
        body["content"],
        body["metadata"],
    )


@routes.operation("DELETE", _DOCUMENT, access=paths.OF_COLLECTION, answer=schemas.Deleted)
def delete_document(
    call: Call, app_id: str, user_id: str, collection_id: str, document_id: str
) -> Done:
    """Delete a document"""
    documents.delete(call.rt, call.principal, _path(app_id, user_id, collection_id), document_id)
    return Done("Document deleted successfully")
