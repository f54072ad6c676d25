"""Peer cards: short facts that one peer (the observer) has about another, or about itself."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.card_rules import MAX_LINES, folded
from memservice.domain.errors import NotFound
from memservice.domain.records import Card, Peer
from memservice.domain.sizes import MAX_CARD_LINE
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import peers, validation, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.spi.storage import Transaction


def tidy(lines: Sequence[str]) -> list[str]:
    """The lines of a card as stored: the first 40 lines, without blank ones and duplicates that
    differ only in case and white space."""
    unique: dict[str, str] = {}
    for line in lines:
        text: str = strip_nul(line)
        if normalised := folded(text):
            unique.setdefault(normalised, text)
    return list(unique.values())[:MAX_LINES]


def of(tx: Transaction, workspace_id: str, peer_id: str, target: str | None) -> list[str] | None:
    """The card, read in an open transaction; None if there is none."""
    peer = tx.workspaces.locate(workspace_id, peer_id=peer_id).peer
    if peer is None:
        raise no_observer(workspace_id, peer_id)
    return read_lines(tx, peer, target or peer.slug)


def no_observer(workspace_id: str, peer_id: str) -> NotFound:
    return NotFound(f"Peer {peer_id} not found in workspace {workspace_id}")


def read_lines(tx: Transaction, observer: Peer, target: str) -> list[str] | None:
    card = tx.cards.one(observer.key, target)
    return None if card is None else list(card.lines)


def get(
    rt: Runtime, principal: Principal, workspace_id: str, peer_id: str, target: str | None = None
) -> list[str] | None:
    """The peer's card of the target (by default itself); None if there is none."""
    policy.require(principal, workspace_id, peer_id=peer_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        return of(tx, workspace_id, peer_id, target)


def put(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    peer_id: str,
    target: str | None,
    lines: Sequence[str],
) -> list[str]:
    """Replace the card; returns it as stored. Creates the observer. The target need not exist.
    Raises `InvalidInput` for a line that is too long."""
    policy.require(principal, workspace_id, peer_id=peer_id)
    for index, line in enumerate(lines):
        validation.require_length(line, MAX_CARD_LINE, ("peer_card", index))
    tidy_lines = tidy(lines)

    def change(tx: Transaction) -> list[str]:
        workspace, _ = workspaces.ensure(rt, tx, workspace_id)
        if target:
            validation.refuse_scope(target, tx.peers.by_slug(workspace.key, target), ("target",))
        peer = tx.peers.by_slug(workspace.key, peer_id)
        if peer is None:
            validation.require_name(peer_id, ("peer_id",))
        observer = peer or peers.ensure(rt, tx, workspace.key, [peer_id], ("peer_id",))[peer_id]
        card = Card(
            workspace_key=workspace.key,
            observer_key=observer.key,
            target=target or observer.slug,
            lines=tidy_lines,
            given=_caller_lines(tx.cards.one(observer.key, target or observer.slug), tidy_lines),
            updated_at=rt.clock(),
        )
        tx.cards.save(card)
        return tidy_lines

    return rt.storage.write(change)


def _caller_lines(before: Card | None, lines: Sequence[str]) -> list[str]:
    """The lines that belong to the caller. A line that the service wrote remains the service's,
    even if the caller sends it back."""
    if before is None:
        return list(lines)
    caller_lines = {folded(line) for line in before.given}
    service_lines = {folded(line) for line in before.lines} - caller_lines
    return [line for line in lines if folded(line) not in service_lines]
