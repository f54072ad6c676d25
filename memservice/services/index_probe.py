"""Whether the vector index answers, in a bounded time."""

from __future__ import annotations

from memservice.domain.records import ACTIVE, Space
from memservice.runtime import Runtime
from memservice.services import indexing


def ask(rt: Runtime) -> None:
    """Query an index outside the storage for a space that never exists. Raises whatever the index
    raises, within `VECTOR_STORE_QUERY_TIMEOUT_SECONDS`."""
    never = Space(
        workspace_key=0,
        kind=indexing.CONCLUSION,
        embedder=rt.embedder.id,
        dimension=rt.embedder.dimension,
        state=ACTIVE,
        created_at=rt.clock(),
    )
    seconds = rt.settings.vector_store.query_timeout_seconds
    rt.vector_calls.within(seconds, lambda: rt.vectors.count(None, never))
