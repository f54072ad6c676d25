"""Documents of the reserved collection: the conclusions that a user holds about itself, as the other generations see them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import Node, all_of, where
from memservice.domain.filters.ast import Not
from memservice.domain.ids import fingerprint
from memservice.domain.records import LIVE, Conclusion, Peer, Workspace
from memservice.runtime import Runtime
from memservice.services import (
    conclusions,
    indexing,
)
from memservice.services.auth.bounds import Bounds
from memservice.services.conclusions import ConclusionDraft
from memservice.services.paging import Page, Paging, read_page
from memservice.services.retrieval import search
from memservice.services.retrieval.query_embedding import Remote
from memservice.spi.index_filter import Where
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memservice.spi.vectors import Vector


def _about(user: Peer) -> Node:
    return where(observer_key=user.key, observed_key=user.key)


def create(rt: Runtime, app: Workspace, user: Peer, text: str, metadata: dict[str, Any]) -> Conclusion:
    """An explicit conclusion of no session, of any length that a document may have. Whether the caller may is settled."""
    draft = ConclusionDraft(text, user.slug, user.slug, metadata=metadata)
    try:
        return conclusions.store(rt, app.slug, [draft], of_any_length=True)[0]
    except InvalidInput as error:
        raise InvalidInput(*(replace(problem, loc=("body", "content")) for problem in error.problems)) from error


def page(view: View, app: Workspace, user: Peer, condition: Node, paging: Paging) -> Page[Conclusion]:
    matching = all_of(_about(user), condition)
    return read_page(
        paging,
        lambda: view.conclusions.page(app.key, matching, paging.order(), paging.size, paging.offset),
        lambda: view.conclusions.count(app.key, matching),
    )


def find(view: View, app: Workspace, user: Peer, uid: str, *, lock: bool = False) -> Conclusion | None:
    """A live one."""
    return view.rows.get(Conclusion, all_of(where(uid=uid, workspace_key=app.key, state=LIVE), _about(user)), lock=lock)


def save(rt: Runtime, view: View, fact: Conclusion, text: str | None, vectors: Sequence[Vector] | None) -> Conclusion:
    """Store a changed conclusion, with another content if one is given."""
    if text is None:
        return view.conclusions.put([fact])[0]
    now = rt.clock()
    changed = replace(fact, content=text, fingerprint=fingerprint(text), said_at=now, created_at=now)
    stored = view.conclusions.put([changed])[0]
    indexing.forget_conclusions(rt, view, stored.workspace_key, [stored.key])
    view.tasks.add(indexing.index_conclusions(rt, view, stored.workspace_key, [stored], vectors))
    return stored


def nearest(
    rt: Runtime, view: View, caller: Bounds, user: Peer, text: str, limit: int, condition: Node, remote: Remote
) -> list[Conclusion]:
    """The best for a query, best first; then whatever else there is, up to `limit`."""
    within = caller.concluding(all_of(_about(user), condition), Where(observers=(user.key,), observed=(user.key,)))
    found = search.find_conclusions(rt, view, within, text, limit, None, remote)
    kept = [each.conclusion for each in found]
    if len(kept) < limit:
        rest = within.condition
        if kept:
            rest = all_of(rest, Not(where(key=tuple(row.key for row in kept))))
        kept += view.conclusions.page(within.workspace, rest, BY_KEY, limit - len(kept))
    return kept
