"""Common parts of the chapters: fixtures, threads that start together, and a small dataset."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from msgspec import Struct

from memservice.domain.records import (
    PEER,
    Collection,
    Conclusion,
    Member,
    Message,
    Peer,
    Session,
    Task,
    Workspace,
)
from memservice.spi.storage import Storage, Transaction

T = TypeVar("T")

NOW = datetime(2024, 5, 17, 12, 30, 15, 123456, tzinfo=UTC)
PATIENCE = 30.0
"""Maximum seconds that a test waits for something that must happen."""


class Chapter:
    """A part of the storage contract."""

    @pytest.fixture
    def open_storage(self) -> Callable[[], Storage]:
        """Opens and migrates the store of this test. Every call opens the same store."""
        raise NotImplementedError(
            "give your subclass of StorageContract a fixture `open_storage`: a callable "
            "that opens the storage"
        )

    @pytest.fixture
    def storage(self, open_storage: Callable[[], Storage]) -> Iterator[Storage]:
        opened = open_storage()
        yield opened
        opened.close()

    @pytest.fixture
    def dataset(self, storage: Storage) -> Dataset:
        """A small workspace, stored."""
        return storage.write(lambda tx: populate(tx, "w"))


class Dataset(Struct, frozen=True):
    """One workspace with a session, three peers (the last one in no session) and a collection of
    `alice` about herself."""

    tag: str
    workspace: Workspace
    session: Session
    alice: Peer
    bob: Peer
    carol: Peer
    collection: Collection

    def uid(self, number: int) -> str:
        return uid(self.tag, number)

    def message(self, seq: int, **values: Any) -> Message:
        """A message of `alice` in the session, 10 tokens each."""
        defaults: dict[str, Any] = {
            "uid": self.uid(1000 + seq),
            "workspace_key": self.workspace.key,
            "session_key": self.session.key,
            "author_key": self.alice.key,
            "session": self.session.slug,
            "author": self.alice.slug,
            "seq": seq,
            "content": f"message {seq}",
            "tokens": 10,
            "tokens_through": 10 * seq,
            "created_at": NOW + timedelta(seconds=seq),
        }
        return Message(**(defaults | values))

    def conclusion(self, number: int, **values: Any) -> Conclusion:
        defaults: dict[str, Any] = {
            "uid": self.uid(2000 + number),
            "workspace_key": self.workspace.key,
            "collection_key": self.collection.key,
            "observer_key": self.alice.key,
            "observed_key": self.alice.key,
            "observer": self.alice.slug,
            "observed": self.alice.slug,
            "content": f"conclusion {number}",
            "fingerprint": f"fingerprint-{number}",
            "said_at": NOW + timedelta(seconds=number),
            "created_at": NOW + timedelta(seconds=number),
        }
        return Conclusion(**(defaults | values))

    def task(self, number: int, unit: str, **values: Any) -> Task:
        defaults: dict[str, Any] = {
            "uid": self.uid(3000 + number),
            "unit": unit,
            "kind": "derive",
            "workspace_key": self.workspace.key,
            "not_before": NOW,
            "created_at": NOW,
        }
        return Task(**(defaults | values))

    def peer(self, slug: str, number: int, **values: Any) -> Peer:
        defaults: dict[str, Any] = {
            "uid": self.uid(4000 + number),
            "workspace_key": self.workspace.key,
            "slug": slug,
            "v1_name": slug,
            "created_at": NOW + timedelta(seconds=number),
        }
        return Peer(**(defaults | values))

    def another_session(self, slug: str, number: int, **values: Any) -> Session:
        defaults: dict[str, Any] = {
            "uid": self.uid(5000 + number),
            "workspace_key": self.workspace.key,
            "slug": slug,
            "created_at": NOW + timedelta(seconds=number),
        }
        return Session(**(defaults | values))

    def member(self, session: Session, peer: Peer, number: int, **values: Any) -> Member:
        defaults: dict[str, Any] = {
            "workspace_key": self.workspace.key,
            "session_key": session.key,
            "peer_key": peer.key,
            "session": session.slug,
            "peer": peer.slug,
            "kind": peer.kind,
            "joined_at": NOW + timedelta(seconds=number),
        }
        return Member(**(defaults | values))


def uid(tag: str, number: int) -> str:
    """A public id of 21 characters."""
    return f"{tag[:8]}-{number}".ljust(21, "_")


def new_workspace(tag: str, number: int = 0, **values: Any) -> Workspace:
    defaults: dict[str, Any] = {
        "uid": uid(tag, number),
        "slug": tag,
        "v1_name": tag,
        "created_at": NOW,
    }
    return Workspace(**(defaults | values))


def populate(tx: Transaction, tag: str) -> Dataset:
    """Store a `Dataset`. Every workspace has the same names, so a look-up that ignores the
    workspace finds too many rows."""
    workspace = tx.workspaces.save(new_workspace(tag))
    key = workspace.key
    names = ("alice", "bob", "carol")
    alice, bob, carol = tx.peers.put(
        [
            Peer(
                uid=uid(tag, 10 + n),
                workspace_key=key,
                slug=name,
                v1_name=name,
                kind=PEER,
                created_at=NOW + timedelta(seconds=n),
            )
            for n, name in enumerate(names)
        ]
    )
    session = tx.sessions.save(
        Session(uid=uid(tag, 20), workspace_key=key, slug="talk", created_at=NOW)
    )
    collection = tx.conclusions.put_collection(
        Collection(
            workspace_key=key,
            observer_key=alice.key,
            observed_key=alice.key,
            observer="alice",
            observed="alice",
            created_at=NOW,
        )
    )
    dataset = Dataset(tag, workspace, session, alice, bob, carol, collection)
    tx.members.put([dataset.member(session, alice, 1), dataset.member(session, bob, 2)])
    return dataset


def together(*jobs: Callable[[], T]) -> list[T]:
    """Run the jobs at the same time, each in its own thread. Returns their results in order, or
    raises the error of one of them."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        start.wait(PATIENCE)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(PATIENCE) for future in [pool.submit(run, job) for job in jobs]]


def elsewhere(job: Callable[[], T]) -> T:
    """Run the job in another thread and wait for it."""
    return together(job)[0]


def keys(rows: Sequence[Any]) -> list[int]:
    return [row.key for row in rows]
