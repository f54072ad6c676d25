"""Peer cards: a few lines that one peer (the observer) keeps about another, or about itself."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.errors import NotFound
from memservice.domain.records import Card
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import naming, peers, workspaces
from memservice.services.principal import Principal
from memservice.spi.storage import View

MAX_LINES = 40


def tidy(lines: Sequence[str]) -> list[str]:
    """As a card is stored: the first 40 lines after removing repetitions that differ only in case and white space, and blank ones."""
    kept: dict[str, str] = {}
    for line in lines:
        text: str = strip_nul(line)
        folded = " ".join(text.casefold().split())
        if folded:
            kept.setdefault(folded, text)
    return list(kept.values())[:MAX_LINES]


def of(view: View, workspace: str, peer: str, target: str | None) -> list[str] | None:
    """The card inside an open view; None where there is none."""
    found = view.workspaces.locate(workspace, peer=peer).peer
    if found is None:
        raise NotFound(f"Peer {peer} not found in workspace {workspace}")
    card = view.cards.one(found.key, target or found.slug)
    return None if card is None else list(card.lines)


def get(rt: Runtime, who: Principal, workspace: str, peer: str, target: str | None = None) -> list[str] | None:
    """The card that the peer keeps about the target (itself, if none is given); None where there is none."""
    with rt.storage.read() as view:
        return of(view, workspace, peer, target)


def put(rt: Runtime, who: Principal, workspace: str, peer: str, target: str | None, lines: Sequence[str]) -> list[str]:
    """Replace the card; returns it as stored. Creates the observer. The target need not exist."""
    stored = tidy(lines)

    def change(view: View) -> list[str]:
        place, _ = workspaces.ensure(rt, view, workspace)
        if target:
            naming.refuse_scope(target, view.peers.by_slug(place.key, target), ("query", "target"))
        found = view.peers.by_slug(place.key, peer)
        if found is None:
            naming.require_name(peer, ("path", "peer_id"))
        observer = found or peers.ensure(rt, view, place.key, [peer], ("path", "peer_id"))[peer]
        view.cards.save(
            Card(workspace_key=place.key, observer_key=observer.key, target=target or observer.slug, lines=stored, updated_at=rt.clock())
        )
        return stored

    return rt.storage.write(change)
