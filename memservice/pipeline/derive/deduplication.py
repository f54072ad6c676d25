"""Duplicates of stored conclusions in nearly the same words. The search in the vector index runs
before the transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from memservice.domain.errors import IndexUnavailable
from memservice.domain.records import EXPLICIT, Conclusion, Peer, Space
from memservice.domain.text.analysis import words
from memservice.domain.text.particulars import same_particulars
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.indexing import CONCLUSION
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import IndexFilter
from memservice.telemetry.context import Reason, embedding_for

if TYPE_CHECKING:
    from memservice.spi.storage import Transaction
    from memservice.spi.vectors import Vector, VectorHit

log = logging.getLogger("memservice.pipeline")

NEAREST = 3
"""Nearest stored conclusions that are compared with a new one."""
UNIQUE_WORD_WEIGHT = 10
"""Additional weight of a word that the other text does not have."""


class Duplicate(Struct, frozen=True):
    """A stored conclusion with the same meaning as a new one."""

    existing: Conclusion
    replaces: bool
    """Whether the new one says at least as much, and so supersedes the existing one."""


def vectors_of(
    rt: Runtime, workspace_key: int, slug: str, texts: Sequence[str]
) -> list[Vector] | None:
    """Vectors of these texts in the workspace's space; None if they are not available now: a task
    creates them then."""
    if not texts or Capability.INLINE in rt.embedder.capabilities or not _is_enabled(rt):
        return indexing.embed_inline(rt, texts) if texts else []
    with rt.storage.read() as tx:
        space = tx.spaces.active(workspace_key, CONCLUSION)
    if space is not None and space.embedder != rt.embedder.id:
        return None
    try:
        with embedding_for(Reason("create_observations", workspace_key, slug)):
            return rt.embedder.embed(texts)
    except Exception as error:  # of any provider: the derived conclusions must not be lost
        log.warning(
            "the embedder %s failed (%s): conclusions are stored without a search for duplicates",
            rt.embedder.id,
            type(error).__name__,
        )
        return None


def _is_enabled(rt: Runtime) -> bool:
    """Distances between vectors show duplicates only if the embedder represents meaning."""
    is_comparable = (
        Capability.SEMANTIC in rt.embedder.capabilities
        and rt.embedder.duplicate_distance is not None
    )
    return is_comparable and rt.settings.deriver.deduplicate


def find(
    rt: Runtime,
    drafts: Sequence[Conclusion],
    vectors: Sequence[Vector] | None,
    observers: Sequence[Peer],
) -> dict[tuple[int, str], Duplicate]:
    """(Key of an observer, fingerprint of a draft) → the stored conclusion of the same level and
    meaning. Explicit conclusions are compared within their session only."""
    if not drafts or not vectors or not _is_enabled(rt):
        return {}
    workspace_key = drafts[0].workspace_key
    duplicates: dict[tuple[int, str], Duplicate] = {}
    with rt.storage.read() as tx:
        space = tx.spaces.active(workspace_key, CONCLUSION)
        if space is None or space.embedder != rt.embedder.id:
            return {}
        hits = (
            _nearest(rt, tx, space, drafts, vectors, observers)
            if rt.vectors_transactional
            else None
        )
    if hits is None:
        try:
            hits = _nearest(rt, None, space, drafts, vectors, observers)
        except IndexUnavailable as error:  # the derived conclusions must not be lost
            log.warning("%s: conclusions are stored without a search for duplicates", error)
            return {}
    minimum = 1 - (rt.embedder.duplicate_distance or 0.0)
    near = {
        pair: [hit.key for hit in nearest if hit.score >= minimum] for pair, nearest in hits.items()
    }
    with rt.storage.read() as tx:
        rows = tx.conclusions.by_keys(sorted({key for keys in near.values() for key in keys}))
    for (observer_key, index), keys in near.items():
        draft = drafts[index]
        conclusion = next(
            (
                rows[key]
                for key in keys
                if key in rows and _may_merge(rows[key], draft, observer_key)
            ),
            None,
        )
        if conclusion is not None:
            duplicates[observer_key, draft.fingerprint] = Duplicate(
                conclusion,
                _information(draft.content, conclusion.content)
                >= _information(conclusion.content, draft.content),
            )
    return duplicates


def _nearest(
    rt: Runtime,
    tx: Transaction | None,
    space: Space,
    drafts: Sequence[Conclusion],
    vectors: Sequence[Vector],
    observers: Sequence[Peer],
) -> dict[tuple[int, int], list[VectorHit]]:
    """(Key of an observer, index of the draft) → the nearest vectors."""
    hits = {}
    for observer in observers:
        for index, (draft, vector) in enumerate(zip(drafts, vectors, strict=True)):
            # A conclusion from several sessions is stored with one of them, so only explicit ones
            # are compared within their session.
            sessions = (
                None
                if draft.level != EXPLICIT
                else ()
                if draft.session_key is None
                else (draft.session_key,)
            )
            index_filter = IndexFilter(
                observers=(observer.key,),
                observed=(draft.observed_key,),
                levels=(draft.level,),
                sessions=sessions,
            )
            hits[observer.key, index] = (
                rt.vectors.query(tx, space, vector, NEAREST, index_filter) if vector.any() else []
            )
    return hits


def _may_merge(conclusion: Conclusion, draft: Conclusion, observer_key: int) -> bool:
    same_pair = (
        conclusion.observer_key == observer_key and conclusion.observed_key == draft.observed_key
    )
    same_session = draft.level != EXPLICIT or conclusion.session_key == draft.session_key
    same_scope = same_pair and conclusion.level == draft.level and same_session
    return (
        same_scope
        and conclusion.fingerprint != draft.fingerprint
        and same_particulars(conclusion.content, draft.content)
    )


def _information(text: str, other: str) -> int:
    """The amount of information in a text compared with another: its distinct words, with more
    weight on the words that the other one does not have."""
    own, others = set(words(text)), set(words(other))
    return len(own) + UNIQUE_WORD_WEIGHT * len(own - others)
