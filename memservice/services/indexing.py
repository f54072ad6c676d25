"""Indexes of messages and conclusions: analysed text in the write, vectors in it or soon after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from memservice.domain.records import ACTIVE, Conclusion, Document, Message, Peer, Space, Task
from memservice.domain.text.analysis import analyse
from memservice.domain.text.relatives import IndexTerms, index_terms
from memservice.runtime import Runtime
from memservice.services.peers import spoken_name
from memservice.services.tasks import outbox
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Transaction
from memservice.spi.text import TextRow
from memservice.spi.vectors import VectorRow

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

Kind = Literal["message", "conclusion", "document"]
MESSAGE: Kind = "message"
CONCLUSION: Kind = "conclusion"
DOCUMENT: Kind = "document"


SIMILAR_BATCH_SIZE = 100
"""Number of rows per task that copies vectors."""
TEXT_BATCH_SIZE = 500
"""Number of messages per task that indexes their text."""


def message_terms(content: str) -> IndexTerms:
    """The terms by which a message is found: its words, and those near in form."""
    return index_terms(content, beginnings=True)


def derived_terms(content: str) -> IndexTerms:
    """The terms by which a conclusion or a document is found. Without beginnings of words, because
    these rows have vectors, which find what is near in form."""
    return index_terms(content, beginnings=False)


def index_messages(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    messages: Sequence[Message],
    texts: Sequence[IndexTerms],
    authors: Mapping[int, Peer],
    like: Mapping[int, int] | None = None,
) -> list[Task]:
    """Index messages; `texts` are the terms of their content (`message_terms`). Returns tasks that
    the caller must store.

    `like`: key of a message → key of an indexed message with the same content.
    """
    add_message_texts(rt, tx, workspace_key, messages, texts, authors)
    return message_vectors_later(rt, tx, workspace_key, messages, like)


def index_messages_later(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    messages: Sequence[Message],
    like: Mapping[int, int] | None = None,
) -> list[Task]:
    """The tasks that do the work of `index_messages`, for too many messages for one write."""
    keys = [message.key for message in messages]
    tasks = [
        outbox.index(rt, workspace_key, keys[start : start + TEXT_BATCH_SIZE])
        for start in range(0, len(keys), TEXT_BATCH_SIZE)
    ]
    return tasks + message_vectors_later(rt, tx, workspace_key, messages, like)


def message_vectors_later(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    messages: Sequence[Message],
    like: Mapping[int, int] | None = None,
) -> list[Task]:
    """The tasks that embed messages; none if messages have no vectors."""
    # Hashed vectors of messages measured no gain over text, so messages get vectors only from a
    # semantic embedder: the configured one, or one that the workspace was moved to.
    if not rt.settings.app.embed_messages:
        return []
    if (
        Capability.SEMANTIC not in rt.embedder.capabilities
        and tx.spaces.active(workspace_key, MESSAGE) is None
    ):
        return []
    return embed_later(
        rt,
        MESSAGE,
        workspace_key,
        [message.key for message in messages if message.content.strip()],
        like,
    )


def add_message_texts(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    messages: Sequence[Message],
    texts: Sequence[IndexTerms],
    authors: Mapping[int, Peer],
) -> None:
    """Add messages to the text index, replacing existing entries."""
    rows = []
    for message, text in zip(messages, texts, strict=True):
        # The speaker and the day are searchable parts of a message: "[8 May 2023] Caroline: text",
        # analysed in two parts, because the text was analysed before the transaction and the name
        # is known only in it.
        header = analyse(
            f"{message.created_at.day} {message.created_at:%B %Y} "
            f"{spoken_name(authors[message.author_key])}"
        )
        rows.append(
            TextRow(
                message.key,
                [*header, *text.terms],
                session=message.session_key,
                author=message.author_key,
                at=message.created_at,
                related=text.related,
            )
        )
    rt.storage.text.add(tx, MESSAGE, workspace_key, rows)


def embed_later(
    rt: Runtime,
    kind: Kind,
    workspace_key: int,
    keys: Sequence[int],
    like: Mapping[int, int] | None = None,
) -> list[Task]:
    """The tasks that embed these rows, or copy the vectors of the rows in `like`, which have the
    same text."""
    if like is None:
        return [outbox.embed(rt, kind, workspace_key, keys)]
    parts = [
        keys[start : start + SIMILAR_BATCH_SIZE]
        for start in range(0, len(keys), SIMILAR_BATCH_SIZE)
    ]
    return [
        outbox.embed(rt, kind, workspace_key, part, [like[key] for key in part]) for part in parts
    ]


def add_conclusion_texts(
    rt: Runtime, tx: Transaction, workspace_key: int, conclusions: Sequence[Conclusion]
) -> None:
    """Add conclusions to the text index, replacing existing entries."""
    texts = [derived_terms(conclusion.content) for conclusion in conclusions]
    rows = [
        TextRow(
            conclusion.key,
            text.terms,
            session=conclusion.session_key,
            observer=conclusion.observer_key,
            observed=conclusion.observed_key,
            level=conclusion.level,
            at=conclusion.created_at,
            related=text.related,
        )
        for conclusion, text in zip(conclusions, texts, strict=True)
    ]
    rt.storage.text.add(tx, CONCLUSION, workspace_key, rows)


def index_conclusions(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    conclusions: Sequence[Conclusion],
    vectors: Sequence[Vector] | None = None,
    like: Mapping[int, int] | None = None,
) -> list[Task]:
    """Index conclusions, with their `vectors` if the embedder is inline. Returns tasks that the
    caller must store.

    `like`: key of a conclusion → key of an indexed conclusion with the same content.
    """
    if not conclusions:
        return []
    add_conclusion_texts(rt, tx, workspace_key, conclusions)
    space = _inline_space(rt, tx, workspace_key, CONCLUSION, vectors)
    if space is None or vectors is None:
        keys = [conclusion.key for conclusion in conclusions]
        return embed_later(rt, CONCLUSION, workspace_key, keys, like)
    rt.vectors.upsert(tx, space, vector_rows(conclusions, vectors))
    return []


def _inline_space(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    kind: Kind,
    vectors: Sequence[Vector] | None,
) -> Space | None:
    """The space that the vectors are stored in, in this transaction; None if a task has to embed
    the rows later."""
    if vectors is None or not rt.vectors_transactional:
        return None
    space = writing_space(rt, tx, workspace_key, kind)
    if space is None or any(len(vector) != space.dimension for vector in vectors):
        return None
    return space


def vector_rows(
    rows: Sequence[Conclusion | Document | Message], vectors: Sequence[Vector]
) -> list[VectorRow]:
    """Rows for the vector index. A vector of zeros has no direction and is left out."""
    return [
        VectorRow(row.key, row.uid, vector, at=row.created_at, **_attributes(row))
        for row, vector in zip(rows, vectors, strict=True)
        if vector.any()
    ]


def _attributes(row: Conclusion | Document | Message) -> dict[str, Any]:
    """What a query of the vector index can be narrowed by."""
    if isinstance(row, Conclusion):
        return {
            "session": row.session_key,
            "observer": row.observer_key,
            "observed": row.observed_key,
            "level": row.level,
        }
    if isinstance(row, Document):
        return {"observer": row.collection_key, "observed": row.owner_key}
    return {"session": row.session_key, "author": row.author_key}


def index_documents(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    documents: Sequence[Document],
    vectors: Sequence[Vector] | None = None,
) -> list[Task]:
    """Like `index_conclusions`, for documents: the collection is in the column of the observer, its
    owner in that of the observed."""
    add_document_texts(rt, tx, workspace_key, documents)
    space = _inline_space(rt, tx, workspace_key, DOCUMENT, vectors)
    if space is None or vectors is None:
        return embed_later(rt, DOCUMENT, workspace_key, [document.key for document in documents])
    rt.vectors.upsert(tx, space, vector_rows(documents, vectors))
    return []


def add_document_texts(
    rt: Runtime, tx: Transaction, workspace_key: int, documents: Sequence[Document]
) -> None:
    """Add documents to the text index, replacing existing entries."""
    texts = [derived_terms(document.content) for document in documents]
    rows = [
        TextRow(
            document.key,
            text.terms,
            observer=document.collection_key,
            observed=document.owner_key,
            at=document.created_at,
            related=text.related,
        )
        for document, text in zip(documents, texts, strict=True)
    ]
    rt.storage.text.add(tx, DOCUMENT, workspace_key, rows)


def embed_inline(rt: Runtime, texts: Sequence[str]) -> list[Vector] | None:
    """Vectors of these texts if the embedder is inline, else None. Call it before the
    transaction."""
    if Capability.INLINE not in rt.embedder.capabilities:
        return None
    return rt.embedder.embed(texts)


def writing_space(rt: Runtime, tx: Transaction, workspace_key: int, kind: Kind) -> Space | None:
    """The active space if it is the configured embedder's. The first write of a workspace decides
    its embedder."""
    space = tx.spaces.active(workspace_key, kind) or new_space(rt, tx, workspace_key, kind)
    return space if space.embedder == rt.embedder.id else None


def new_space(rt: Runtime, tx: Transaction, workspace_key: int, kind: Kind) -> Space:
    """Create the first space of a workspace and kind, with the configured embedder, which must have
    returned a vector before: only then is its dimension known without a call."""
    return tx.spaces.save(
        Space(
            workspace_key=workspace_key,
            kind=kind,
            embedder=rt.embedder.id,
            dimension=rt.embedder.dimension,
            state=ACTIVE,
            created_at=rt.clock(),
        )
    )


def remove_conclusions(
    rt: Runtime, tx: Transaction, workspace_key: int, keys: Sequence[int]
) -> None:
    """Remove conclusions that are no longer live from the indexes. A task removes them from an
    index outside the storage."""
    remove_rows(rt, tx, CONCLUSION, workspace_key, keys)


def remove_rows(
    rt: Runtime, tx: Transaction, kind: Kind, workspace_key: int, keys: Sequence[int]
) -> None:
    """Like `remove_from_storage`, with a task for an index outside the storage."""
    remove_from_storage(rt, tx, kind, workspace_key, keys)
    if (
        keys
        and not rt.vectors_transactional
        and any(space.kind == kind for space in tx.spaces.of_workspace(workspace_key))
    ):
        tx.tasks.add([outbox.delete_vectors(rt, kind, workspace_key, keys)])


def remove_from_storage(
    rt: Runtime, tx: Transaction, kind: str, workspace_key: int, keys: Sequence[int]
) -> None:
    """Remove rows from the indexes in the storage."""
    if not keys:
        return
    rt.storage.text.remove(tx, kind, workspace_key, keys)
    if rt.vectors_transactional:
        remove_vectors(rt, tx, kind, tx.spaces.of_workspace(workspace_key), keys)


def remove_vectors(
    rt: Runtime, tx: Transaction | None, kind: str, spaces: Sequence[Space], keys: Sequence[int]
) -> None:
    """Remove rows from the vector index; `tx` is None for one outside the storage, which must not
    be called inside a transaction."""
    for space in spaces:
        if space.kind == kind:
            rt.vectors.delete(tx, space, keys)
