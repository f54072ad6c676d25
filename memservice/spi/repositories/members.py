"""Members."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import Any_, all_of, equals
from memservice.domain.records import Member
from memservice.spi.repositories.base import Repository


class Members(Repository):
    def one(self, session_key: int, peer_key: int, *, lock: bool = False) -> Member | None:
        """The membership row, even if the peer left."""
        return self.rows.get(Member, equals(session_key=session_key, peer_key=peer_key), lock=lock)

    def of_session(
        self, session_key: int, *, active: bool = True, peer_keys: Sequence[int] | None = None
    ) -> list[Member]:
        """Members of every kind, in key order; with `active=False`, also those that left; with
        `peer_keys`, only these."""
        condition = (
            equals(session_key=session_key, left_at=None)
            if active
            else equals(session_key=session_key)
        )
        return self.rows.page(
            Member,
            condition
            if peer_keys is None
            else all_of(condition, equals(peer_key=tuple(peer_keys))),
        )

    def listening(self, session_key: int, speakers: Sequence[int]) -> list[Member]:
        """Active members that observe others or are among the speakers (peer keys), in key
        order."""
        any = Any_((equals(peer_key=tuple(speakers)), equals(observe_others=True)))
        return self.rows.page(Member, all_of(equals(session_key=session_key, left_at=None), any))

    def authors_and_observers(self, session_key: int, authors: Sequence[int]) -> list[Member]:
        """The memberships of these peers (by key), even of those that left, and of active members
        that observe others, in key order."""
        observing = equals(observe_others=True, left_at=None)
        any = Any_((equals(peer_key=tuple(authors)), observing))
        return self.rows.page(Member, all_of(equals(session_key=session_key), any))

    def of_peer(self, peer_key: int, *, active: bool = False) -> list[Member]:
        """Every membership of a peer, in key order."""
        return self.rows.page(
            Member, equals(peer_key=peer_key, left_at=None) if active else equals(peer_key=peer_key)
        )

    def active_among(self, peer_key: int, session_ids: Sequence[str]) -> set[str]:
        """The sessions among these, by slug, that the peer is a member of now."""
        if not session_ids:
            return set()
        return {
            member.session
            for member in self.rows.page(
                Member, equals(peer_key=peer_key, left_at=None, session=tuple(session_ids))
            )
        }

    def put(self, members: Sequence[Member]) -> list[Member]:
        return self.rows.put(members) if members else []
