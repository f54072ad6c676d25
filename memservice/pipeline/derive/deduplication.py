"""Conclusions that say nearly the same as one that is held already: found through the vector index,
before the transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
"""Rows that are looked at for each new one."""
LACKS = 10
"""What a word that the other text lacks is worth, against one that both have."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A held conclusion that says the same as a new one."""

    held: Conclusion
    replaces: bool
    """The new one says at least as much, so the held one gives way."""


def vectors_of(
    rt: Runtime, workspace_key: int, slug: str, texts: Sequence[str]
) -> list[Vector] | None:
    """Vectors of these texts, where they can be had now and belong to the workspace's space; else
    they are made by a task."""
    if not texts or Capability.INLINE in rt.embedder.capabilities or not _is_wanted(rt):
        return indexing.embed_inline(rt, texts) if texts else []
    with rt.storage.read() as tx:
        space = tx.spaces.active(workspace_key, CONCLUSION)
    if space is not None and space.embedder != rt.embedder.id:
        return None
    try:
        with embedding_for(Reason("create_observations", workspace_key, slug)):
            return rt.embedder.embed(texts)
    except Exception as error:  # whatever a provider raises, what was derived is not lost by it
        log.warning(
            "the embedder %s failed (%s): conclusions are not compared by likeness now",
            rt.embedder.id,
            type(error).__name__,
        )
        return None


def _is_wanted(rt: Runtime) -> bool:
    """Likeness tells something only where the embedder understands what texts say."""
    known = (
        Capability.SEMANTIC in rt.embedder.capabilities
        and rt.embedder.duplicate_distance is not None
    )
    return known and rt.settings.deriver.deduplicate


def find(
    rt: Runtime,
    drafts: Sequence[Conclusion],
    vectors: Sequence[Vector] | None,
    observers: Sequence[Peer],
) -> dict[tuple[int, str], Duplicate]:
    """By the key of an observer and the fingerprint of a draft, what is held of the same level and
    says the same; what was stated, within its session."""
    if not drafts or not vectors or not _is_wanted(rt):
        return {}
    workspace_key = drafts[0].workspace_key
    found: dict[tuple[int, str], Duplicate] = {}
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
        except IndexUnavailable as error:  # what was derived is not lost by it
            log.warning("%s: conclusions are not compared by likeness now", error)
            return {}
    minimum = 1 - (rt.embedder.duplicate_distance or 0.0)
    near = {
        position: [hit.key for hit in rows if hit.score >= minimum]
        for position, rows in hits.items()
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
            found[observer_key, draft.fingerprint] = Duplicate(
                conclusion,
                _worth(draft.content, conclusion.content)
                >= _worth(conclusion.content, draft.content),
            )
    return found


def _nearest(
    rt: Runtime,
    tx: Transaction | None,
    space: Space,
    drafts: Sequence[Conclusion],
    vectors: Sequence[Vector],
    observers: Sequence[Peer],
) -> dict[tuple[int, int], list[VectorHit]]:
    """By observer and place of the draft."""
    found = {}
    for observer in observers:
        for index, (draft, vector) in enumerate(zip(drafts, vectors, strict=True)):
            # What was drawn from several sessions carries the stamp of one, so only what was stated
            # is compared within its session.
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
            found[observer.key, index] = (
                rt.vectors.query(tx, space, vector, NEAREST, index_filter) if vector.any() else []
            )
    return found


def _may_merge(conclusion: Conclusion, draft: Conclusion, observer_key: int) -> bool:
    same_pair = (
        conclusion.observer_key == observer_key and conclusion.observed_key == draft.observed_key
    )
    same_session = draft.level != EXPLICIT or conclusion.session_key == draft.session_key
    same_place = same_pair and conclusion.level == draft.level and same_session
    return (
        same_place
        and conclusion.fingerprint != draft.fingerprint
        and same_particulars(conclusion.content, draft.content)
    )


def _worth(text: str, other: str) -> int:
    """How much a text says that the other one does not: its distinct words, those that the other
    lacks counting more."""
    own, others = set(words(text)), set(words(other))
    return len(own) + LACKS * len(own - others)
