"""Documents of a collection. Those of the reserved collection are conclusions
(`derived_documents`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memservice.domain import ranking
from memservice.domain.errors import InvalidInput, NotFound, Problem
from memservice.domain.filters import Condition, all_of, equals, parse_containment
from memservice.domain.filters.ast import Not
from memservice.domain.ids import new_uid
from memservice.domain.records import Conclusion, Document, NamedCollection, Peer, Workspace
from memservice.domain.text.relatives import query_words
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import indexing, validation
from memservice.services.auth.bounds import bounds_for
from memservice.services.auth.principal import Principal
from memservice.services.indexing import DOCUMENT
from memservice.services.paging import Page, Paging, records
from memservice.services.retrieval import query_embedding
from memservice.services.retrieval.query import MAX_TERMS
from memservice.services.retrieval.query_embedding import Remote
from memservice.services.retrieval.search import Search, active_embedders
from memservice.services.retrieval.text_matches import TextSearch
from memservice.services.retrieval.vector_query import query as nearest
from memservice.services.v1 import collections, derived_documents, resolve
from memservice.services.v1.resolve import Path
from memservice.spi.index_filter import IndexFilter
from memservice.spi.storage import Transaction

AnyDocument = Document | Conclusion
"""Both have a uid, a content, metadata and a time."""


def _content(content: str) -> str:
    text: str = strip_nul(content)
    if not text:
        raise InvalidInput(
            Problem(("content",), "String should have at least 1 character", "string_too_short")
        )
    return text


def _unknown(uid: str) -> NotFound:
    return NotFound(f"Document with ID '{uid}' not found")


def _find_collection(
    tx: Transaction, principal: Principal, path: Path
) -> tuple[Workspace, Peer, NamedCollection] | None:
    resolve.authorise_collections(tx, principal, path)
    match = resolve.find_user(tx, path)
    collection = None if match is None else collections.find(tx, match[1], path.collection)
    return None if match is None or collection is None else (*match, collection)


def _require(
    rt: Runtime, principal: Principal, path: Path
) -> tuple[Workspace, Peer, NamedCollection]:
    with rt.storage.read() as tx:
        match = _find_collection(tx, principal, path)
    if match is None:
        raise collections.missing()
    return match


def create(
    rt: Runtime, principal: Principal, path: Path, content: str, metadata: Mapping[str, Any] | None
) -> AnyDocument:
    """Create a document. Duplicates are not merged."""
    text, new_metadata = _content(content), validation.metadata(metadata) or {}
    workspace, user, collection = _require(rt, principal, path)
    if collections.is_derived(collection):
        return derived_documents.create(rt, workspace, user, text, new_metadata)
    vectors = indexing.embed_inline(rt, [text])

    def change(tx: Transaction) -> Document:
        # Lock the collection: a deletion at the same time either includes this document or is
        # visible here.
        if collections.find(tx, user, path.collection, lock=True) is None:
            raise collections.missing()
        row = Document(
            uid=new_uid(),
            workspace_key=workspace.key,
            owner_key=user.key,
            collection_key=collection.key,
            content=text,
            metadata=new_metadata,
            created_at=rt.clock(),
        )
        document = tx.rows.put([row])[0]
        tx.tasks.add(indexing.index_documents(rt, tx, workspace.key, [document], vectors))
        return document

    return rt.storage.write(change)


def _in(collection: NamedCollection) -> Condition:
    return equals(collection_key=collection.key)


def page(
    rt: Runtime, principal: Principal, path: Path, filter_: object, paging: Paging
) -> Page[AnyDocument]:
    """Documents in the order of creation."""
    condition = parse_containment(filter_)
    with rt.storage.read() as tx:
        match = _find_collection(tx, principal, path)
        if match is None:
            return paging.empty()
        workspace, user, collection = match
        if collections.is_derived(collection):
            document_page = derived_documents.page(tx, workspace, user, condition, paging)
            return Page(document_page.items, document_page.total, paging.page, paging.size)
        matching = all_of(_in(collection), condition)
        documents = records(tx.rows, Document, matching, paging)
        return Page(documents.items, documents.total, paging.page, paging.size)


def get(rt: Runtime, principal: Principal, path: Path, uid: str) -> AnyDocument:
    with rt.storage.read() as tx:
        match = _find_collection(tx, principal, path)
        document = None if match is None else _one(tx, *match, uid)
    if document is None:
        raise _unknown(uid)
    return document


def _one(
    tx: Transaction,
    workspace: Workspace,
    user: Peer,
    collection: NamedCollection,
    uid: str,
    *,
    lock: bool = False,
) -> AnyDocument | None:
    if collections.is_derived(collection):
        return derived_documents.find(tx, workspace, user, uid, lock=lock)
    return tx.rows.get(Document, all_of(_in(collection), equals(uid=uid)), lock=lock)


def update(
    rt: Runtime,
    principal: Principal,
    path: Path,
    uid: str,
    content: str | None,
    metadata: Mapping[str, Any] | None,
) -> AnyDocument:
    """Replace metadata and content; at least one is required. New content sets the creation time to
    now."""
    if content is None and metadata is None:
        raise InvalidInput.at(message="Content and metadata cannot both be None")
    text, new_metadata = (
        None if content is None else _content(content),
        validation.metadata(metadata),
    )
    vectors = None if text is None else indexing.embed_inline(rt, [text])

    def change(tx: Transaction) -> AnyDocument:
        match = _find_collection(tx, principal, path)
        document = None if match is None else _one(tx, *match, uid, lock=True)
        if document is None:
            raise _unknown(uid)
        if new_metadata is not None:
            document = replace(document, metadata=new_metadata)
        if isinstance(document, Conclusion):
            return derived_documents.save(rt, tx, document, text, vectors)
        if text is not None:
            document = replace(document, content=text, created_at=rt.clock())
        document = tx.rows.put([document])[0]
        if text is not None:
            indexing.remove_rows(rt, tx, DOCUMENT, document.workspace_key, [document.key])
            tx.tasks.add(
                indexing.index_documents(rt, tx, document.workspace_key, [document], vectors)
            )
        return document

    return rt.storage.write(change)


def delete(rt: Runtime, principal: Principal, path: Path, uid: str) -> None:
    """Erase a document. InvalidInput for a conclusion of the reserved collection."""

    def change(tx: Transaction) -> None:
        match = _find_collection(tx, principal, path)
        if match is not None and collections.is_derived(match[2]):
            raise InvalidInput.at(
                "collection_id",
                message=f"Cannot delete collection with reserved name '{collections.RESERVED}'",
            )
        document = None if match is None else _one(tx, *match, uid, lock=True)
        if document is None:
            raise NotFound("Document not found or does not belong to user")
        indexing.remove_rows(rt, tx, DOCUMENT, document.workspace_key, [document.key])
        tx.rows.delete(Document, equals(key=document.key))

    rt.storage.write(change)


def query(
    rt: Runtime, principal: Principal, path: Path, text: str, top_k: int, filter_: object
) -> list[AnyDocument]:
    """The `top_k` nearest documents by cosine similarity, nearest first, without a maximum
    distance. Without a vector of the query, ranked by its words."""
    condition = parse_containment(filter_)
    query_text: str = strip_nul(text)
    with rt.storage.read() as tx:
        match = _find_collection(tx, principal, path)
        embedders = (
            active_embedders(tx.spaces.of_workspace(match[0].key))
            if match is not None and rt.has_remote_embedder
            else set()
        )
    if match is None:
        return []
    workspace, user, collection = match
    if collections.is_derived(collection):
        lookup = Search.begin(rt, workspace.slug, query_text)
        with rt.storage.read() as tx:
            caller = bounds_for(tx, principal, workspace)
            return list(derived_documents.nearest(tx, caller, user, lookup, top_k, condition))
    remote = query_embedding.remote_vectors(rt, embedders, query_text)
    with rt.storage.read() as tx:
        return list(_nearest(rt, tx, collection, query_text, top_k, condition, remote))


def _nearest(
    rt: Runtime,
    tx: Transaction,
    collection: NamedCollection,
    text: str,
    limit: int,
    condition: Condition,
    remote: Remote,
) -> list[Document]:
    matching = all_of(_in(collection), condition)
    documents: list[Document] = []
    depth = 4 * limit
    while True:
        ranked_keys = _ranked_keys(rt, tx, collection, text, depth, remote)
        rows = (
            {
                row.key: row
                for row in tx.rows.page(Document, all_of(equals(key=tuple(ranked_keys)), matching))
            }
            if ranked_keys
            else {}
        )
        documents = [rows[key] for key in ranked_keys if key in rows][:limit]
        if len(documents) >= limit or len(ranked_keys) < depth:
            break
        depth *= 4
    if len(documents) < limit:
        # Documents without a vector cannot be ranked, so they come last.
        unranked = (
            all_of(matching, Not(equals(key=tuple(row.key for row in documents))))
            if documents
            else matching
        )
        documents += tx.rows.page(Document, unranked, limit=limit - len(documents))
    return documents


def _ranked_keys(
    rt: Runtime, tx: Transaction, collection: NamedCollection, text: str, depth: int, remote: Remote
) -> list[int]:
    """Keys of documents, best first; fewer than `depth` if there are no more."""
    index_filter = IndexFilter(observers=(collection.key,))
    space = tx.spaces.active(collection.workspace_key, DOCUMENT)
    vector = query_embedding.vector_in(rt, space, text, remote)
    hits = (
        None
        if space is None or vector is None
        else nearest(rt, tx, space, vector, depth, index_filter)
    )
    if hits is not None:
        return [hit.key for hit in hits]
    words = query_words(text)[:MAX_TERMS]
    search = TextSearch(rt, tx, DOCUMENT, collection.workspace_key, words)
    return ranking.ranked(search.exact(depth, index_filter).bm25(), depth)
