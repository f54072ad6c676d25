"""Conclusions that say nearly the same as one that is held already: found through the vector index, before the transaction."""

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
from memservice.spi.index_filter import Where
from memservice.telemetry.context import Reason, embedding_for

if TYPE_CHECKING:
    from memservice.spi.storage import View
    from memservice.spi.vectors import Vector, VectorHit

log = logging.getLogger("memservice.pipeline")

NEAREST = 3
"""Rows that are looked at for each new one."""
LACKS = 10
"""What a word that the other text lacks is worth, against one that both have."""


@dataclass(frozen=True, slots=True)
class Alike:
    """A held conclusion that says the same as a new one."""

    held: Conclusion
    replaces: bool
    """The new one says at least as much, so the held one gives way."""


def vectors_of(rt: Runtime, workspace: int, slug: str, texts: Sequence[str]) -> list[Vector] | None:
    """Vectors of these texts, where they can be had now and belong to the workspace's space; else they are made by a task."""
    if not texts or Capability.INLINE in rt.embedder.capabilities or not _is_wanted(rt):
        return indexing.embed_inline(rt, texts) if texts else []
    with rt.storage.read() as view:
        space = view.spaces.active(workspace, CONCLUSION)
    if space is not None and space.embedder != rt.embedder.id:
        return None
    try:
        with embedding_for(Reason("create_observations", workspace, slug)):
            return rt.embedder.embed(texts)
    except Exception as error:  # whatever a provider raises, what was derived is not lost by it
        log.warning("the embedder %s failed (%s): conclusions are not compared by likeness now", rt.embedder.id, type(error).__name__)
        return None


def _is_wanted(rt: Runtime) -> bool:
    """Likeness tells something only where the embedder understands what texts say."""
    known = Capability.SEMANTIC in rt.embedder.capabilities and rt.embedder.duplicate_distance is not None
    return known and rt.settings.deriver.deduplicate


def find(
    rt: Runtime, drafts: Sequence[Conclusion], vectors: Sequence[Vector] | None, observers: Sequence[Peer]
) -> dict[tuple[int, str], Alike]:
    """By the key of an observer and the fingerprint of a draft, what is held of the same level and says the same; what was stated, within
    its session."""
    if not drafts or not vectors or not _is_wanted(rt):
        return {}
    workspace = drafts[0].workspace_key
    found: dict[tuple[int, str], Alike] = {}
    with rt.storage.read() as view:
        space = view.spaces.active(workspace, CONCLUSION)
        if space is None or space.embedder != rt.embedder.id:
            return {}
        hits = _nearest(rt, view, space, drafts, vectors, observers) if rt.vectors_transactional else None
    if hits is None:
        try:
            hits = _nearest(rt, None, space, drafts, vectors, observers)
        except IndexUnavailable as error:  # what was derived is not lost by it
            log.warning("%s: conclusions are not compared by likeness now", error)
            return {}
    least = 1 - (rt.embedder.duplicate_distance or 0.0)
    near = {place: [hit.key for hit in rows if hit.score >= least] for place, rows in hits.items()}
    with rt.storage.read() as view:
        rows = view.conclusions.by_keys(sorted({key for keys in near.values() for key in keys}))
    for (observer, index), keys in near.items():
        draft = drafts[index]
        held = next((rows[key] for key in keys if key in rows and _may_merge(rows[key], draft, observer)), None)
        if held is not None:
            found[observer, draft.fingerprint] = Alike(held, _worth(draft.content, held.content) >= _worth(held.content, draft.content))
    return found


def _nearest(
    rt: Runtime, view: View | None, space: Space, drafts: Sequence[Conclusion], vectors: Sequence[Vector], observers: Sequence[Peer]
) -> dict[tuple[int, int], list[VectorHit]]:
    """By observer and place of the draft."""
    found = {}
    for observer in observers:
        for place, (draft, vector) in enumerate(zip(drafts, vectors, strict=True)):
            # What was drawn from several sessions carries the stamp of one, so only what was stated is compared within its session.
            sessions = None if draft.level != EXPLICIT else () if draft.session_key is None else (draft.session_key,)
            narrowed = Where(observers=(observer.key,), observed=(draft.observed_key,), levels=(draft.level,), sessions=sessions)
            found[observer.key, place] = rt.vectors.query(view, space, vector, NEAREST, narrowed) if vector.any() else []
    return found


def _may_merge(held: Conclusion, draft: Conclusion, observer: int) -> bool:
    same_pair = held.observer_key == observer and held.observed_key == draft.observed_key
    same_session = draft.level != EXPLICIT or held.session_key == draft.session_key
    same_place = same_pair and held.level == draft.level and same_session
    return same_place and held.fingerprint != draft.fingerprint and same_particulars(held.content, draft.content)


def _worth(text: str, other: str) -> int:
    """How much a text says that the other one does not: its distinct words, those that the other lacks counting more."""
    own, others = set(words(text)), set(words(other))
    return len(own) + LACKS * len(own - others)
