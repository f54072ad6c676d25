"""Peers, and their membership of sessions."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import TRUE, Condition, all_of, equals
from memservice.domain.records import PEER, SCOPE, Member, Peer, PeerName
from memservice.spi.repositories.base import CREATED, Repository
from memservice.spi.rows import Order


class Peers(Repository):
    def by_slug(self, workspace_key: int, slug: str, *, lock: bool = False) -> Peer | None:
        return self.rows.get(Peer, equals(workspace_key=workspace_key, slug=slug), lock=lock)

    def by_slugs(self, workspace_key: int, slugs: Sequence[str]) -> dict[str, Peer]:
        """The peers that exist, by slug."""
        if not slugs:
            return {}
        return {
            peer.slug: peer
            for peer in self.rows.page(Peer, equals(workspace_key=workspace_key, slug=tuple(slugs)))
        }

    def by_keys(self, keys: Sequence[int]) -> dict[int, Peer]:
        if not keys:
            return {}
        return {peer.key: peer for peer in self.rows.page(Peer, equals(key=tuple(keys)))}

    def put(self, peers: Sequence[Peer]) -> list[Peer]:
        return self.rows.put(peers) if peers else []

    def page(
        self,
        workspace_key: int,
        condition: Condition = TRUE,
        order: Sequence[Order] = CREATED,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Peer]:
        return self.rows.page(
            Peer, all_of(equals(workspace_key=workspace_key), condition), order, limit, offset
        )

    def count(self, workspace_key: int, condition: Condition = TRUE) -> int:
        return self.rows.count(Peer, all_of(equals(workspace_key=workspace_key), condition))

    def page_of_session(
        self, session_key: int, reverse: bool = False, limit: int = 50, offset: int = 0
    ) -> tuple[list[Peer], int]:
        """Ordinary peers that are members now, in the order they joined, and their number."""
        condition = equals(session_key=session_key, left_at=None, kind=PEER)
        order = (Order("joined_at", reverse), Order("key", reverse))
        members = self.rows.page(Member, condition, order, limit, offset)
        peers = self.by_keys([member.peer_key for member in members])
        return [peers[member.peer_key] for member in members], self.rows.count(Member, condition)

    def set_names(self, peer: Peer, tokens: Sequence[str]) -> None:
        """Replace the words by which queries may name the peer."""
        self.rows.delete(PeerName, equals(peer_key=peer.key))
        self.rows.put(
            [
                PeerName(workspace_key=peer.workspace_key, peer_key=peer.key, token=token)
                for token in dict.fromkeys(tokens)
            ]
        )

    def named(self, workspace_key: int, tokens: Sequence[str]) -> dict[str, list[Peer]]:
        """Peers by the tokens that name them, without scopes."""
        if not tokens:
            return {}
        names = self.rows.page(PeerName, equals(workspace_key=workspace_key, token=tuple(tokens)))
        peers = self.by_keys(sorted({name.peer_key for name in names}))
        peers_by_token: dict[str, list[Peer]] = {}
        for name in names:
            peer = peers.get(name.peer_key)
            if peer is not None and peer.kind != SCOPE:
                peers_by_token.setdefault(name.token, []).append(peer)
        return peers_by_token
