"""Peers: the members of a session, and peers by their names, by joins."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from memservice.domain.records import PEER, SCOPE, Peer
from memservice.spi import repositories as base
from memservice.spi.rows import Order
from memservice_sql import tables as t
from memservice_sql.rows import SqlRows, ordering, window, window_values
from memservice_sql.statements import Slots
from memservice_sql.types import KEY


class SqlPeers(base.Peers):
    rows: SqlRows

    def __init__(self, rows: SqlRows) -> None:
        super().__init__(rows)

    def page_of_session(
        self, session_key: int, reverse: bool = False, limit: int = 50, offset: int = 0
    ) -> tuple[list[Peer], int]:
        active = (t.members.c.left_at.is_(None)) & (t.members.c.kind == PEER)

        def page(slots: Slots) -> sa.Executable:
            joined = t.members.join(t.peers, t.peers.c.key == t.members.c.peer_key)
            query = (
                sa.select(*t.peers.c)
                .select_from(joined)
                .where(t.members.c.session_key == slots.take(KEY), active)
            )
            order = (Order("joined_at", reverse), Order("key", reverse))
            return window(query.order_by(*ordering(t.members, order)), slots, limit, offset)

        def count(slots: Slots) -> sa.Executable:
            return sa.select(sa.func.count()).where(
                t.members.c.session_key == slots.take(KEY), active
            )

        rows = self.rows.run(
            ("peers of session", reverse, offset > 0),
            page,
            [session_key, *window_values(limit, offset)],
        ).fetchall()
        total = self.rows.run(("count peers of session",), count, [session_key]).fetchone()[0]
        return self.rows.mapping(Peer).records(rows), total

    def named(self, workspace_key: int, tokens: Sequence[str]) -> dict[str, list[Peer]]:
        if not tokens:
            return {}
        dialect = self.rows.store.dialect

        def write(slots: Slots) -> sa.Executable:
            joined = t.peer_names.join(t.peers, t.peers.c.key == t.peer_names.c.peer_key)
            same_workspace = t.peer_names.c.workspace_key == slots.take(KEY)
            same_token = dialect.one_of(t.peer_names.c.token, slots)
            query = (
                sa.select(t.peer_names.c.token, *t.peers.c)
                .select_from(joined)
                .where(same_workspace, same_token, t.peers.c.kind != SCOPE)
            )
            return query.order_by(t.peer_names.c.key)

        rows = self.rows.run(
            ("named",), write, [workspace_key, dialect.list_value(tokens)]
        ).fetchall()
        peers = self.rows.mapping(Peer).records([row[1:] for row in rows])
        peers_by_name: dict[str, list[Peer]] = {}
        for row, peer in zip(rows, peers, strict=True):
            peers_by_name.setdefault(row[0], []).append(peer)
        return peers_by_name
