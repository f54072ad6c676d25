"""Vectors in Qdrant keep the contract, in the process and in the server that
`MEMSERVICE_TEST_QDRANT_URL` names, where it does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import pytest
from msgspec.structs import replace
from qdrant_client import QdrantClient

from memservice.spi.index_filter import IndexFilter
from memservice.spi.vectors import VectorIndex
from memservice.testing.indexes import Engine
from memservice.testing.vectors import OURS, THEIRS, WIDE, VectorIndexContract, at_angle, keys, row
from memservice_qdrant.collections import collection_of
from memservice_qdrant.vectors import IN_PROCESS, QdrantVectorIndex
from support.stores.vector_stores import QDRANT

_numbers = count(1)


@pytest.fixture(params=["in-process", "real"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "in-process":
        return IN_PROCESS
    url = os.environ.get(QDRANT)
    if not url:
        pytest.skip(f"payload indexes and tenants of a real Qdrant: set {QDRANT}")
    return url


@pytest.fixture
def client(url: str) -> Iterator[QdrantClient]:
    opened = QdrantClient(IN_PROCESS) if url == IN_PROCESS else QdrantClient(url=url, timeout=30)
    yield opened
    opened.close()


@pytest.fixture
def name(client: QdrantClient) -> Iterator[str]:
    """Tests share a real server, so each has a namespace of its own."""
    chosen = f"test-{os.getpid()}-{next(_numbers)}"
    yield chosen
    for collection in client.get_collections().collections:
        if collection.name.startswith(f"{chosen}_"):
            client.delete_collection(collection.name)


class TestQdrantVectors(VectorIndexContract):
    @pytest.fixture
    def open_index(
        self, client: QdrantClient, url: str, name: str
    ) -> Callable[[], Engine[VectorIndex]]:
        return lambda: Engine(QdrantVectorIndex(client, url, name))


def test_workspaces_share_a_collection_but_no_rows(
    client: QdrantClient, url: str, name: str
) -> None:
    index = QdrantVectorIndex(client, url, name)
    index.upsert(None, OURS, [row(1, 10), row(2, 20)])
    index.upsert(None, THEIRS, [row(1, 0), row(3, 0)])
    ours = [
        each.name
        for each in client.get_collections().collections
        if each.name.startswith(f"{name}_")
    ]
    assert ours == [collection_of(name, OURS)] == [collection_of(name, THEIRS)]
    assert keys(index.query(None, OURS, at_angle(0), 9, IndexFilter())) == [1, 2]
    index.drop(None, OURS)
    assert (index.count(None, OURS), index.count(None, THEIRS)) == (0, 2)


def test_a_lost_collection_is_created_again(client: QdrantClient, url: str, name: str) -> None:
    index = QdrantVectorIndex(client, url, name)
    index.upsert(None, OURS, [row(1)])
    client.delete_collection(collection_of(name, OURS))
    assert index.query(None, OURS, at_angle(0), 9, IndexFilter()) == []
    assert (index.count(None, OURS), index.keys(None, OURS), index.fetch(None, OURS, [1])) == (
        0,
        [],
        {},
    )
    index.delete(None, OURS, [1])
    client.delete_collection(collection_of(name, OURS))
    index.upsert(None, OURS, [row(2)])
    assert index.keys(None, OURS) == [2]
    client.delete_collection(collection_of(name, OURS))
    index.upsert(None, OURS, [row(3)])
    assert index.keys(None, OURS) == [3]


def test_erasing_takes_the_collections_of_one_namespace(
    client: QdrantClient, url: str, name: str
) -> None:
    other = f"{name}_b"
    ours, theirs = QdrantVectorIndex(client, url, name), QdrantVectorIndex(client, url, other)
    for index in (ours, theirs):
        for of in (OURS, WIDE):
            index.upsert(None, of, [row(1, vector=np.ones(of.dimension, np.float32))])
    ours.erase()
    assert (ours.count(None, OURS), theirs.count(None, OURS), theirs.count(None, WIDE)) == (0, 1, 1)
    left = {
        each.name
        for each in client.get_collections().collections
        if each.name.startswith(f"{name}_")
    }
    assert left == {collection_of(other, OURS), collection_of(other, WIDE)}
    ours.upsert(None, OURS, [row(2)])
    assert ours.keys(None, OURS) == [2]


def test_each_embedder_has_its_own_collection_whatever_its_name() -> None:
    names = {
        collection_of("n", replace(OURS, embedder=embedder))
        for embedder in ("a/b:1", "a-b-1", "a/b:1 ", "ž" * 300, "")
    }
    assert len(names) == 5
    for collection in names:
        assert len(collection) < 120
        assert not set(collection) & set('/\\:*?"<>| ')
