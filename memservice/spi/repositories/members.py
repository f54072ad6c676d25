"""Members."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import Any_, all_of, where
from memservice.domain.records import Member
from memservice.spi.repositories.base import (
    Noun,
)


class Members(Noun):
    def one(self, session: int, peer: int, *, lock: bool = False) -> Member | None:
        """The membership row, also of a peer that left."""
        return self.rows.get(Member, where(session_key=session, peer_key=peer), lock=lock)

    def of_session(self, session: int, *, active: bool = True, peers: Sequence[int] | None = None) -> list[Member]:
        """Members of every kind, in key order; with `active=False` also those that left, with `peers` only these."""
        condition = where(session_key=session, left_at=None) if active else where(session_key=session)
        return self.rows.page(Member, condition if peers is None else all_of(condition, where(peer_key=tuple(peers))))

    def listening(self, session: int, speakers: Sequence[int]) -> list[Member]:
        """The active members that observe the others, and the speakers (peer keys) among the members, in key order."""
        wanted = Any_((where(peer_key=tuple(speakers)), where(observe_others=True)))
        return self.rows.page(Member, all_of(where(session_key=session, left_at=None), wanted))

    def of_peer(self, peer: int, *, active: bool = False) -> list[Member]:
        """Every membership of a peer, in key order."""
        return self.rows.page(Member, where(peer_key=peer, left_at=None) if active else where(peer_key=peer))

    def active_among(self, peer: int, sessions: Sequence[str]) -> set[str]:
        """Those of the sessions, by slug, that the peer is a member of now."""
        if not sessions:
            return set()
        return {member.session for member in self.rows.page(Member, where(peer_key=peer, left_at=None, session=tuple(sessions)))}

    def put(self, members: Sequence[Member]) -> list[Member]:
        return self.rows.put(members) if members else []
