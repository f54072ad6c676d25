"""Vectors in Redis keep the contract, by comparing all of them and by the graph; filters lose
nothing and cannot be broken out of."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from memservice.domain.errors import ConfigurationError, IndexUnavailable
from memservice.domain.records import Space
from memservice.plugins import load_plugins
from memservice.spi.index_filter import EVERYTHING, IndexFilter
from memservice.spi.providers import Context
from memservice.spi.vectors import VectorIndex, VectorRow
from memservice.testing.indexes import NOON, Engine
from memservice.testing.vectors import OURS, THEIRS, VectorIndexContract, row, space
from memservice_redis import attributes
from memservice_redis.server import Server
from memservice_redis.vectors import RedisVectorIndex
from support.stores import redis_vectors
from support.stores.redis_vectors import erase, index_at

log = logging.getLogger("memservice.test")

Open = Callable[..., RedisVectorIndex]


class TestRedisVectors(VectorIndexContract):
    @pytest.fixture
    def open_index(self, client: Redis, name: str) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(index_at(client, name))


class TestRedisVectorsByTheGraph(VectorIndexContract):
    @pytest.fixture
    def open_index(self, client: Redis, name: str) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(index_at(client, name, exact_up_to=0))


def test_filters_lose_nothing_in_a_large_space(client: Redis, name: str) -> None:
    """A filter that few rows fit, all of them far from what is asked: the graph alone would come
    back with nothing."""
    wide = space(5, dimension=16)
    chance = np.random.default_rng(7)
    near = chance.standard_normal((4_000, 16)).astype(np.float32) + 3
    far = chance.standard_normal((30, 16)).astype(np.float32) - 3
    index = index_at(client, name, exact_up_to=100)
    index.upsert(None, wide, [row(n + 1, vector=each, session=1) for n, each in enumerate(near)])
    index.upsert(
        None, wide, [row(n + 10_001, vector=each, session=2) for n, each in enumerate(far)]
    )
    vector = np.ones(16, np.float32)
    exact = index_at(client, name, exact_up_to=10_000)
    for index_filter in (
        IndexFilter(sessions=(2,)),
        IndexFilter(sessions=(2, 3), since=None),
        EVERYTHING,
    ):
        hits = index.query(None, wide, vector, 20, index_filter)
        best = exact.query(None, wide, vector, 20, index_filter)
        assert len(hits) == 20
        shared = {hit.key for hit in hits} & {hit.key for hit in best}
        assert len(shared) >= 19


@given(st.text(), st.text())
def test_values_are_escaped_and_compared_as_a_whole(one: str, other: str) -> None:
    about = VectorRow(1, "u", np.ones(2, np.float32), level=one)
    stored = attributes.attributes(about).encode()
    expression = attributes.expression(IndexFilter(levels=(other,)))
    assert expression is not None
    inside = expression.removeprefix(".l in ['<").removesuffix(">']")
    assert set(inside) <= set("0123456789abcdef")
    assert attributes.fits(stored, IndexFilter(levels=(other,))) == (one == other)


def test_spaces_of_other_installations_are_separate(client: Redis, name: str) -> None:
    other = f"{name}-b"
    try:
        index_at(client, name).upsert(None, OURS, [row(1)])
        index_at(client, other).upsert(None, OURS, [row(2)])
        index_at(client, other).drop(None, OURS)
        assert index_at(client, name).keys(None, OURS) == [1]
    finally:
        erase(client, other)


@pytest.mark.parametrize("wild", ["", "*", "[a-z]", "\\"])
def test_erasing_removes_one_namespace_whatever_its_name(
    client: Redis, name: str, wild: str
) -> None:
    ours, theirs = f"{name}{wild}", f"{name}-b"
    try:
        for each in (ours, theirs):
            for of in (OURS, THEIRS):
                index_at(client, each).upsert(None, of, [row(1)])
        index_at(client, ours).erase()
        assert list(client.scan_iter(f"*{redis_vectors.escaped(ours)}:*")) == []
        assert [index_at(client, theirs).keys(None, of) for of in (OURS, THEIRS)] == [[1], [1]]
    finally:
        erase(client, redis_vectors.escaped(ours))
        erase(client, theirs)


@pytest.mark.parametrize("lost", ["keys", "vectors"])
def test_listing_keys_reveals_rows_that_the_server_lost(
    client: Redis, name: str, lost: str
) -> None:
    """A server that evicts may take the list of keys, or the vectors, away alone."""
    index = index_at(client, name)
    index.upsert(None, OURS, [row(key, key) for key in range(1, 8)])
    vectors, listed = index._set_names(OURS)
    client.delete(listed if lost == "keys" else vectors)
    assert index.keys(None, OURS) == (list(range(1, 8)) if lost == "keys" else [])


class Other(Redis):
    """Reports that it is another server. It is never reached."""

    def __init__(self, **reported: str) -> None:
        super().__init__(port=9)
        self._reported = reported

    def info(self, section: str | None = None, *args: object, **options: object) -> dict[str, str]:
        return self._reported


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        ({"redis_version": "7.0.15"}, "Redis 7.0.15"),
        ({"redis_version": "7.2.4", "server_name": "valkey"}, "valkey"),
    ],
)
def test_a_server_without_vector_sets_is_refused_by_name(
    reported: dict[str, str], words: str
) -> None:
    server = Server(Other(**reported), "redis://test")
    with pytest.raises(ConfigurationError, match=words) as refused:
        server.check_now(log)
    assert "Redis 8.0 or newer" in str(refused.value)
    with pytest.raises(ConfigurationError):
        RedisVectorIndex(server).count(None, OURS)


def _open(**settings: object) -> VectorIndex:
    plugins = load_plugins()
    opened: VectorIndex = plugins.open_provider(
        plugins.vector_index("redis"), settings, Context(lambda: NOON, log)
    )
    return opened


def test_a_missing_url_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="VECTOR_STORE_URL"):
        _open()
    with pytest.raises(ConfigurationError, match="VECTOR_STORE_URL"):
        _open(url="http://nowhere")


def test_the_error_for_an_unreachable_server_hides_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = _open(url="redis://me:hunter2@127.0.0.1:9/0")
    assert "127.0.0.1:9" in caplog.text
    space = Space(
        key=1,
        workspace_key=1,
        kind="conclusion",
        embedder="e",
        dimension=4,
        state="active",
        created_at=NOON,
    )
    for ask in (
        lambda: index.count(None, space),
        lambda: index.upsert(None, space, [row(1)]),
        lambda: index.delete(None, space, [1]),
    ):
        with pytest.raises(IndexUnavailable, match=r"127\.0\.0\.1:9") as away:
            ask()
        assert "hunter2" not in str(away.value)
    assert "hunter2" not in caplog.text
