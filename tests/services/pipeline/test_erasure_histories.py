"""Random histories with erasures: what was erased is nowhere, and everything else is as if it had
never been said."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memservice.domain import records as r
from memservice.domain.filters import TRUE, equals
from memservice.services import cloning, deletion, sessions
from memservice.services.erasure import messages, peers
from memservice.services.sessions import SessionFields
from memservice.services.tasks import kinds
from memservice.spi.schema import TABLES
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

pytestmark = pytest.mark.every_storage

PEERS = ("alice", "bob", "carol")
Told = list[tuple[str, str]]
"""Author and marker of each message of a session, in order."""


class History:
    """A random history, and what should remain of it."""

    def __init__(self, pipeline: Pipeline, seed: int) -> None:
        self.pipeline = pipeline
        self.random = random.Random(seed)
        self.original: dict[str, Told] = {}
        self.clones: dict[str, Told] = {}
        self.markers: list[str] = []

    @property
    def sessions(self) -> dict[str, Told]:
        return self.original | self.clones

    def say(self) -> None:
        session = f"s{self.random.randrange(3)}"
        scopes = ["team"] if session == "s0" else []
        sessions.get_or_create(
            self.pipeline.rt, PRINCIPAL, WORKSPACE, session, SessionFields(scopes=scopes)
        )
        told = []
        for _ in range(self.random.randint(1, 6)):
            marker = f"zq{self.random.getrandbits(48):012x}zq"
            self.markers.append(marker)
            told.append((self.random.choice(PEERS), marker))
        self.original.setdefault(session, []).extend(told)
        self.pipeline.say(session, *((author, f"I like {marker}.") for author, marker in told))

    def work(self) -> None:
        self.pipeline.work()

    def clone(self) -> None:
        if self.original:
            name = self.random.choice(sorted(self.original))
            copy = cloning.clone(self.pipeline.rt, PRINCIPAL, WORKSPACE, name)
            self.clones[copy.slug] = list(self.original[name])

    def delete_message(self) -> None:
        names = [name for name, told in sorted(self.sessions.items()) if told]
        if names:
            name = self.random.choice(names)
            told = self.sessions[name]
            author, marker = told[self.random.randrange(len(told))]
            with self.pipeline.rt.storage.read() as tx:
                (message,) = tx.rows.page(
                    r.Message, equals(session=name, content=f"I like {marker}.")
                )
            messages.delete(self.pipeline.rt, PRINCIPAL, WORKSPACE, name, message.uid)
            told.remove((author, marker))

    def erase_peer(self) -> None:
        name = self.random.choice(PEERS)
        with self.pipeline.rt.storage.read() as tx:
            exists = tx.rows.get(r.Peer, equals(slug=name))
        if exists:
            peers.erase(self.pipeline.rt, PRINCIPAL, WORKSPACE, name)
            for told in self.sessions.values():
                told[:] = [(author, marker) for author, marker in told if author != name]

    def delete_session(self) -> None:
        if len(self.original) > 1:
            name = self.random.choice(sorted(self.original))
            deletion.delete_session(self.pipeline.rt, PRINCIPAL, WORKSPACE, name)
            self.work()  # its name is free afterwards
            del self.original[name]

    def run(self, steps: int) -> None:
        actions = (self.say, self.work, self.clone, self.delete_message, self.erase_peer)
        for _ in range(steps):
            (action,) = self.random.choices(
                (*actions, self.delete_session), weights=(5, 3, 1, 5, 1, 1)
            )
            action()
        self.work()


@pytest.mark.parametrize("seed", range(4))
def test_erased_texts_are_nowhere_and_the_rest_is_complete(
    pipeline: Pipeline, tmp_path: Path, seed: int
) -> None:
    history = History(pipeline, seed)
    history.run(30)
    assert {task.state for task in pipeline.tasks(kinds.ERASE)} == {"done"}
    kept = {marker for told in history.sessions.values() for _, marker in told}
    erased = [marker for marker in history.markers if marker not in kept]
    assert erased
    with pipeline.rt.storage.read() as tx:
        rows = [repr(row) for spec in TABLES for row in tx.rows.page(spec.record, TRUE)]
        for name, told in history.sessions.items():
            (session,) = tx.rows.page(r.Session, equals(slug=name))
            stored = tx.messages.page(session.key, limit=1_000)
            assert [(message.author, message.content) for message in stored] == [
                (author, f"I like {marker}.") for author, marker in told
            ]
            assert [message.seq for message in stored] == list(range(1, len(told) + 1))
            tokens = sum(message.tokens for message in stored)
            assert (session.message_count, session.token_total) == (len(told), tokens)
    for marker in erased:
        assert not [row for row in rows if marker in row]
    for peer in PEERS:
        expected = [
            f"I like {marker}."
            for told in history.original.values()
            for author, marker in told
            if author == peer
        ]
        assert sorted(pipeline.texts(peer)) == sorted(expected)
        assert sorted(pipeline.texts("scope.team", peer)) == sorted(
            f"I like {marker}."
            for author, marker in history.original.get("s0", [])
            if author == peer
        )
    files = [path for path in tmp_path.iterdir() if path.name.startswith("memory.db")]
    content = b"".join(path.read_bytes() for path in files)
    assert not [marker for marker in erased if marker.encode() in content]
    if files:
        assert all(marker.encode() in content for marker in kept)
