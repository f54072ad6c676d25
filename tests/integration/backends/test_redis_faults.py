"""A Redis that crashes, is full, or refuses to write: what was stored is there, and what could not
be stored is an error that names the reason, and is stored later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from redis import Redis

from memservice.compose import open_runtime
from memservice.domain.errors import IndexUnavailable
from memservice.services import conclusions, peers, workspaces
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.vectors import VectorRow
from memservice.testing.vectors import OURS, row, space
from memservice.worker.polling import Worker
from support.processes.processes import eventually
from support.redis_server import RedisServer
from support.stores import redis_vectors
from support.stores.redis_vectors import index_at
from support.stores.stores import sqlite_store_at

ME = Principal(admin=True)
WIDE = space(5, dimension=16)
ROWS = [
    VectorRow(key, f"u{key}", vector, session=key % 10, level="explicit")
    for key, vector in enumerate(
        np.random.default_rng(4).standard_normal((200, 16)).astype(np.float32), 1
    )
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    opened = RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    opened.start()
    try:
        if not redis_vectors.has_vector_sets(opened.url):
            pytest.skip(redis_vectors.NEEDED)
        yield opened
    finally:
        opened.stop()


@pytest.fixture
def client(server: RedisServer) -> Iterator[Redis]:
    with closing(Redis.from_url(server.url)) as opened:
        yield opened


def as_it_was(client: Redis) -> None:
    pass


def rewrite(client: Redis) -> None:
    client.bgrewriteaof()
    eventually(
        lambda: (
            not client.info("persistence")["aof_rewrite_in_progress"]
            and not client.info("persistence")["aof_rewrite_scheduled"]
        ),
        what="the file is rewritten",
    )


@pytest.mark.parametrize("prepare", [as_it_was, rewrite])
def test_the_append_only_file_restores_every_vector_after_a_crash(
    server: RedisServer, client: Redis, prepare: Callable[[Redis], None]
) -> None:
    index = index_at(client, "ours", exact_up_to=0)
    index.upsert(None, WIDE, ROWS)
    index.delete(None, WIDE, [1, 2, 3])
    queries = [(row.vector, IndexFilter(sessions=(row.session or 0,))) for row in ROWS[:20]]
    before = [index.query(None, WIDE, vector, 5, where) for vector, where in queries]
    prepare(client)
    server.stop()
    server.start()
    client.connection_pool.disconnect()
    assert index.keys(None, WIDE) == list(range(4, 201))
    after = [index.query(None, WIDE, vector, 5, where) for vector, where in queries]
    assert [[hit.key for hit in hits] for hits in after] == [
        [hit.key for hit in hits] for hits in before
    ]


def fill(client: Redis, folder: Path) -> None:
    client.config_set("maxmemory", "1")


def follow(client: Redis, folder: Path) -> None:
    client.replicaof("127.0.0.1", "9")


def fail_to_save(client: Redis, folder: Path) -> None:
    """No file can replace a folder."""
    client.config_set("appendonly", "no")
    client.config_set("save", "3600 1")
    (folder / "dump.rdb").mkdir()
    client.bgsave()
    eventually(
        lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err",
        what="saving fails",
    )


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        (fill, r"OutOfMemoryError: command not allowed when used memory > 'maxmemory'\.$"),
        (follow, r"ReadOnlyError: You can't write against a read only replica\.$"),
        (fail_to_save, r"ResponseError: MISCONF .*unable to persist to disk"),
    ],
)
def test_a_refused_write_changes_nothing_and_is_an_error_with_the_reason(
    client: Redis, tmp_path: Path, refuse: Callable[[Redis, Path], None], words: str
) -> None:
    index = index_at(client, "ours")
    index.upsert(None, OURS, [row(1), row(2, 90)])
    before = index.fetch(None, OURS, [1])
    refuse(client, tmp_path)
    for rows in ([row(3)], [row(1, 45)]):
        with pytest.raises(IndexUnavailable, match=words) as refused:
            index.upsert(None, OURS, rows)
        assert str(refused.value).startswith("the vector index at redis://test failed: ")
        assert "VADD" not in str(refused.value)
        assert "uid-of" not in str(refused.value)
    assert index.fetch(None, OURS, [1])[1].tobytes() == before[1].tobytes()
    assert [hit.key for hit in index.query(None, OURS, before[1], 9, EVERYTHING)] == [1, 2]
    assert index.keys(None, OURS) == [1, 2]


def test_a_full_server_can_be_relieved_by_deleting(client: Redis, tmp_path: Path) -> None:
    index = index_at(client, "ours")
    index.upsert(None, OURS, [row(1), row(2)])
    fill(client, tmp_path)
    index.delete(None, OURS, [1])
    assert index.keys(None, OURS) == [2]
    index.drop(None, OURS)
    assert index.count(None, OURS) == 0


def test_vectors_that_a_full_server_refused_are_stored_when_it_has_space(
    server: RedisServer, client: Redis, tmp_path: Path
) -> None:
    environ = {
        "DB_CONNECTION_URI": sqlite_store_at(tmp_path / "m.db"),
        "VECTOR_STORE_TYPE": "redis",
        "VECTOR_STORE_URL": server.url,
    }
    with closing(open_runtime(load_settings(environ=environ, cwd=tmp_path))) as rt:
        workspaces.get_or_create(rt, ME, "w", None, None)
        peers.get_or_create(rt, ME, "w", "alice", None, None)
        fill(client, tmp_path)
        text = "Alice keeps bees."
        conclusions.create(rt, ME, "w", [ConclusionDraft(text, "alice", "alice")])
        Worker(rt).run_until_idle(10)
        with rt.storage.read() as tx:
            (task,) = tx.tasks.pending(f"{kinds.EMBED}:1:conclusion")
            (vectors,) = tx.spaces.of_workspace(1)
        assert task.last_error is not None
        assert task.last_error.endswith("command not allowed when used memory > 'maxmemory'.")
        filters = {"observer": "alice", "observed": "alice"}
        (hit,) = conclusions.query(rt, ME, "w", "bees", 9, filters=filters)
        assert hit.content == text

        client.config_set("maxmemory", "0")
        real = rt.clock
        rt.clock = lambda: real() + timedelta(minutes=2)
        Worker(rt).run_until_idle(10)
        with rt.storage.read() as tx:
            assert tx.tasks.pending(f"{kinds.EMBED}:1:conclusion") == []
        assert rt.vectors.count(None, vectors) == 1
