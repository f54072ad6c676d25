"""Peers, and their membership of sessions."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import TRUE, Node, all_of, where
from memservice.domain.records import PEER, SCOPE, Member, Peer, PeerName
from memservice.spi.repositories.base import (
    CREATED,
    Noun,
)
from memservice.spi.rows import Order


class Peers(Noun):
    def by_slug(self, workspace: int, slug: str, *, lock: bool = False) -> Peer | None:
        return self.rows.get(Peer, where(workspace_key=workspace, slug=slug), lock=lock)

    def by_slugs(self, workspace: int, slugs: Sequence[str]) -> dict[str, Peer]:
        """The peers that exist, by slug."""
        if not slugs:
            return {}
        return {peer.slug: peer for peer in self.rows.page(Peer, where(workspace_key=workspace, slug=tuple(slugs)))}

    def by_keys(self, keys: Sequence[int]) -> dict[int, Peer]:
        if not keys:
            return {}
        return {peer.key: peer for peer in self.rows.page(Peer, where(key=tuple(keys)))}

    def put(self, peers: Sequence[Peer]) -> list[Peer]:
        return self.rows.put(peers) if peers else []

    def page(
        self, workspace: int, condition: Node = TRUE, order: Sequence[Order] = CREATED, limit: int = 50, offset: int = 0
    ) -> list[Peer]:
        return self.rows.page(Peer, all_of(where(workspace_key=workspace), condition), order, limit, offset)

    def count(self, workspace: int, condition: Node = TRUE) -> int:
        return self.rows.count(Peer, all_of(where(workspace_key=workspace), condition))

    def page_of_session(self, session: int, reverse: bool = False, limit: int = 50, offset: int = 0) -> tuple[list[Peer], int]:
        """Ordinary peers that are members now, in the order they joined, and how many there are."""
        condition = where(session_key=session, left_at=None, kind=PEER)
        order = (Order("joined_at", reverse), Order("key", reverse))
        members = self.rows.page(Member, condition, order, limit, offset)
        peers = self.by_keys([member.peer_key for member in members])
        return [peers[member.peer_key] for member in members], self.rows.count(Member, condition)

    def set_names(self, peer: Peer, tokens: Sequence[str]) -> None:
        """Replace the words by which queries may name the peer."""
        self.rows.delete(PeerName, where(peer_key=peer.key))
        self.rows.put([PeerName(workspace_key=peer.workspace_key, peer_key=peer.key, token=token) for token in dict.fromkeys(tokens)])

    def named(self, workspace: int, tokens: Sequence[str]) -> dict[str, list[Peer]]:
        """Peers by the tokens among `tokens` that name them; scopes never."""
        if not tokens:
            return {}
        names = self.rows.page(PeerName, where(workspace_key=workspace, token=tuple(tokens)))
        peers = self.by_keys(sorted({name.peer_key for name in names}))
        found: dict[str, list[Peer]] = {}
        for name in names:
            peer = peers.get(name.peer_key)
            if peer is not None and peer.kind != SCOPE:
                found.setdefault(name.token, []).append(peer)
        return found
