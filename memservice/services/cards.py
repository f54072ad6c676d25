"""Peer cards: a few lines that one peer (the observer) keeps about another, or about itself."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.card_rules import MAX_LINES, folded
from memservice.domain.errors import NotFound
from memservice.domain.records import Card, Peer
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import (
    peers,
    validation,
    workspaces,
)
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.spi.storage import View


def tidy(lines: Sequence[str]) -> list[str]:
    """As a card is stored: the first 40 lines after removing repetitions that differ only in case and white space, and blank ones."""
    kept: dict[str, str] = {}
    for line in lines:
        text: str = strip_nul(line)
        if mark := folded(text):
            kept.setdefault(mark, text)
    return list(kept.values())[:MAX_LINES]


def of(view: View, workspace: str, peer: str, target: str | None) -> list[str] | None:
    """The card inside an open view; None where there is none."""
    found = view.workspaces.locate(workspace, peer=peer).peer
    if found is None:
        raise no_observer(workspace, peer)
    return held(view, found, target or found.slug)


def no_observer(workspace: str, peer: str) -> NotFound:
    return NotFound(f"Peer {peer} not found in workspace {workspace}")


def held(view: View, observer: Peer, target: str) -> list[str] | None:
    card = view.cards.one(observer.key, target)
    return None if card is None else list(card.lines)


def get(rt: Runtime, who: Principal, workspace: str, peer: str, target: str | None = None) -> list[str] | None:
    """The card that the peer keeps about the target (itself, if none is given); None where there is none."""
    policy.require(who, workspace, peer=peer)
    with rt.storage.read() as view:
        return of(view, workspace, peer, target)


def put(rt: Runtime, who: Principal, workspace: str, peer: str, target: str | None, lines: Sequence[str]) -> list[str]:
    """Replace the card; returns it as stored. Creates the observer. The target need not exist."""
    policy.require(who, workspace, peer=peer)
    stored = tidy(lines)

    def change(view: View) -> list[str]:
        place, _ = workspaces.ensure(rt, view, workspace)
        if target:
            validation.refuse_scope(target, view.peers.by_slug(place.key, target), ("query", "target"))
        found = view.peers.by_slug(place.key, peer)
        if found is None:
            validation.require_name(peer, ("path", "peer_id"))
        observer = found or peers.ensure(rt, view, place.key, [peer], ("path", "peer_id"))[peer]
        card = Card(
            workspace_key=place.key,
            observer_key=observer.key,
            target=target or observer.slug,
            lines=stored,
            given=_given(view.cards.one(observer.key, target or observer.slug), stored),
            updated_at=rt.clock(),
        )
        view.cards.save(card)
        return stored

    return rt.storage.write(change)


def _given(before: Card | None, stored: Sequence[str]) -> list[str]:
    """The lines that are the caller's own. One that the service had written stays the service's, though the caller sent it back."""
    if before is None:
        return list(stored)
    own = {folded(line) for line in before.given}
    made = {folded(line) for line in before.lines} - own
    return [line for line in stored if folded(line) not in made]
