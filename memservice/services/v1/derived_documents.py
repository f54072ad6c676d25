"""Documents of the reserved collection: the user's conclusions about itself, shared with the other
generations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Not
from memservice.domain.ids import fingerprint
from memservice.domain.records import LIVE, Conclusion, Peer, Workspace
from memservice.runtime import Runtime
from memservice.services import conclusions, indexing
from memservice.services.auth.bounds import Bounds
from memservice.services.conclusions import ConclusionDraft
from memservice.services.paging import Page, Paging, listing
from memservice.services.retrieval.search import Search
from memservice.spi.index_filter import IndexFilter
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memservice.spi.vectors import Vector


def _about(user: Peer) -> Condition:
    return equals(observer_key=user.key, observed_key=user.key)


def create(
    rt: Runtime, workspace: Workspace, user: Peer, text: str, metadata: dict[str, Any]
) -> Conclusion:
    """An explicit conclusion of no session, of any length that a document may have. The caller is
    authorised."""
    draft = ConclusionDraft(text, user.slug, user.slug, metadata=metadata)
    return conclusions.store(rt, workspace.slug, [draft], max_tokens=None)[0]


def page(
    tx: Transaction, workspace: Workspace, user: Peer, condition: Condition, paging: Paging
) -> Page[Conclusion]:
    matching = all_of(_about(user), condition)
    return listing(tx.conclusions, paging, workspace.key, matching)


def find(
    tx: Transaction, workspace: Workspace, user: Peer, uid: str, *, lock: bool = False
) -> Conclusion | None:
    """The live conclusion with this uid."""
    return tx.rows.get(
        Conclusion,
        all_of(equals(uid=uid, workspace_key=workspace.key, state=LIVE), _about(user)),
        lock=lock,
    )


def save(
    rt: Runtime,
    tx: Transaction,
    fact: Conclusion,
    text: str | None,
    vectors: Sequence[Vector] | None,
) -> Conclusion:
    """Store a changed conclusion, with new content if `text` is set."""
    if text is None:
        return tx.conclusions.put([fact])[0]
    now = rt.clock()
    changed = replace(
        fact, content=text, fingerprint=fingerprint(text), said_at=now, created_at=now
    )
    conclusion = tx.conclusions.put([changed])[0]
    indexing.remove_conclusions(rt, tx, conclusion.workspace_key, [conclusion.key])
    tx.tasks.add(
        indexing.index_conclusions(rt, tx, conclusion.workspace_key, [conclusion], vectors)
    )
    return conclusion


def nearest(
    tx: Transaction,
    bounds: Bounds,
    user: Peer,
    lookup: Search,
    limit: int,
    condition: Condition,
) -> list[Conclusion]:
    """The best conclusions for a query, best first; then any others, up to `limit`."""
    narrowed = bounds.with_conclusions(
        all_of(_about(user), condition), IndexFilter(observers=(user.key,), observed=(user.key,))
    )
    hits = lookup.conclusions(tx, narrowed, limit)
    conclusions = [hit.conclusion for hit in hits]
    if len(conclusions) < limit:
        other = narrowed.condition
        if conclusions:
            other = all_of(other, Not(equals(key=tuple(row.key for row in conclusions))))
        conclusions += tx.conclusions.page(
            narrowed.workspace, other, BY_KEY, limit - len(conclusions)
        )
    return conclusions
