"""Many writers at once, through the services: nothing is lost, and they never wait for each other
in a ring."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from flask import Flask

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.records import Peer
from memservice.runtime import Runtime
from memservice.settings import load_settings
from memservice.testing.storage.base import together
from memservice_sql.repositories import SqlPeers
from support.stores.postgres_server import connect
from support.stores.stores import store_of

WRITERS, ROUNDS = 8, 6
PEERS = [f"peer-{n}" for n in range(10)]


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    with store_of("postgres", tmp_path) as uri:
        opened = open_runtime(
            load_settings(environ={}, cwd=tmp_path, overrides={"DB_CONNECTION_URI": uri}), "api"
        )
        yield opened
        opened.close()


@pytest.fixture
def app(runtime: Runtime) -> Flask:
    return create_app(runtime=runtime)


def test_writers_on_overlapping_peers_never_deadlock(app: Flask, runtime: Runtime) -> None:
    """Each in sessions of its own and in shared ones, with peers in an order of its own, none of
    which exists at first."""

    def write(me: int) -> int:
        dice = random.Random(me)
        client, stored = app.test_client(), 0
        for n in range(ROUNDS):
            session = f"shared-{n % 3}" if n % 2 else f"own-{me}-{n}"
            named = dice.sample(PEERS, 5)
            answer = client.post(
                "/v3/workspaces/w/sessions",
                json={"id": session, "peers": {name: {} for name in named}},
            )
            assert answer.status_code in (200, 201), answer.text
            messages = [
                {"peer_id": name, "content": f"{me} says {n}"} for name in dice.sample(PEERS, 5)
            ]
            answer = client.post(
                f"/v3/workspaces/w/sessions/{session}/messages", json={"messages": messages}
            )
            assert answer.status_code == 201, answer.text
            stored += len(answer.json or ())
        return stored

    stored = together(*[lambda me=me: write(me) for me in range(WRITERS)])
    assert sum(stored) == WRITERS * ROUNDS * 5
    with connect(runtime.settings.db.connection_uri) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        counted = connection.execute(
            "SELECT (SELECT count(*) FROM messages), sum(message_count)::bigint FROM sessions"
        ).fetchone()
    assert row == (0,)
    assert counted == (sum(stored), sum(stored))


def test_new_peers_are_stored_in_the_order_of_their_names(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So two requests that name the same new peers wait for each other at the first one only. The
    writers above seldom meet there: they pass without the order, too."""
    written: list[str] = []
    put = SqlPeers.put

    def watched(peers: SqlPeers, new: Sequence[Peer]) -> list[Peer]:
        written.extend(peer.slug for peer in new)
        return put(peers, new)

    monkeypatch.setattr(SqlPeers, "put", watched)
    names = ["m", "z", "a", "q", "b"]
    messages = [{"peer_id": name, "content": "hello"} for name in names]
    answer = app.test_client().post(
        "/v3/workspaces/w/sessions/s/messages", json={"messages": messages}
    )
    assert answer.status_code == 201, answer.text
    assert written == sorted(names)
