"""Concurrent creations of the same thing all succeed, and create one row."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memservice.domain.filters import TRUE
from memservice.domain.records import (
    Card,
    Collection,
    Conclusion,
    IdempotencyKey,
    Member,
    Message,
    Peer,
    PeerName,
    Session,
    Space,
    Task,
    Workspace,
)
from memservice.services import cards, messages, peers, sessions, workspaces
from memservice.services.messages import Draft
from memservice.services.sessions import MemberConfig, SessionFields
from memservice.spi.rows import Rows, UniqueViolation
from services.conftest import OpenServices
from support.processes import preloaded
from support.services.services import ME, WORKSPACE, Services


def count(services: Services, record: type[Any]) -> int:
    with services.rt.storage.read() as tx:
        return tx.rows.count(record)


def at_once(number: int, job: Callable[[int], Any]) -> list[Any]:
    start = threading.Barrier(number)

    def run(index: int) -> Any:
        start.wait(30)
        return job(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))


JOBS: dict[str, tuple[Callable[[Services, int], Any], dict[type[Any], int]]] = {
    "workspace": (
        lambda s, n: workspaces.get_or_create(s.rt, ME, WORKSPACE, None, None)[0],
        {Workspace: 1},
    ),
    "workspace update": (
        lambda s, n: workspaces.update(s.rt, ME, WORKSPACE, {"n": 1}, None).uid,
        {Workspace: 1},
    ),
    "peer": (
        lambda s, n: peers.get_or_create(s.rt, ME, WORKSPACE, "ann", None, None)[0],
        {Workspace: 1, Peer: 1, PeerName: 1},
    ),
    "session": (
        lambda s, n: sessions.get_or_create(
            s.rt,
            ME,
            WORKSPACE,
            "s",
            SessionFields(members={"ann": MemberConfig(), "bob": MemberConfig()}),
        )[0],
        {Session: 1, Peer: 2, Member: 2},
    ),
    "card": (
        lambda s, n: cards.put(s.rt, ME, WORKSPACE, "ann", None, ["Name: Ann"]),
        {Card: 1, Peer: 1},
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_concurrent_creations_create_one_row(open_services: OpenServices, name: str) -> None:
    services = open_services(DB_POOL_TIMEOUT="30")
    job, counts = JOBS[name]
    answers = at_once(8, lambda n: job(services, n))
    assert all(answer == answers[0] for answer in answers)
    assert {record: count(services, record) for record in counts} == counts


@pytest.mark.slow
def test_messages_of_many_writers_are_dense_and_whole(open_services: OpenServices) -> None:
    services = open_services(DB_POOL_TIMEOUT="30")

    def write(writer: int) -> None:
        for number in range(5):
            services.say(
                "s", *[(f"peer{writer}", f"{writer} {number} {part}") for part in range(3)]
            )

    at_once(8, write)
    with services.rt.storage.read() as tx:
        session = tx.workspaces.locate(WORKSPACE, session_id="s").session
        assert session is not None
        rows = tx.messages.run(session.key, 1, 1000)
    assert [message.seq for message in rows] == list(range(1, 121))
    assert session.message_count == 120
    assert session.token_total == sum(message.tokens for message in rows) == rows[-1].tokens_through
    batches = [
        tuple(message.content for message in rows[start : start + 3]) for start in range(0, 120, 3)
    ]
    assert all(len({text.rpartition(" ")[0] for text in batch}) == 1 for batch in batches), (
        "no batch is torn apart"
    )
    by_writer = [
        [batch[0] for batch in batches if batch[0].startswith(f"{writer} ")] for writer in range(8)
    ]
    assert by_writer == [[f"{writer} {number} 0" for number in range(5)] for writer in range(8)]
    assert count(services, Task) >= 120


def test_concurrent_conclusions_share_one_collection_and_one_space(
    open_services: OpenServices,
) -> None:
    services = open_services(DB_POOL_TIMEOUT="30")
    services.peer("ann", "bob")
    at_once(8, lambda n: services.conclude("ann", "bob", f"fact {n}", f"other {n}"))
    assert (count(services, Collection), count(services, Space), count(services, Conclusion)) == (
        1,
        1,
        16,
    )
    with services.rt.storage.read() as tx:
        (collection,) = tx.rows.page(Collection)
    assert collection.explicit_count == 16


@pytest.mark.slow
def test_concurrent_processes_create_one_row(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from memservice.compose import open_runtime
from memservice.services import messages
from memservice.services.messages import Draft
from memservice.services.auth.principal import Principal
from memservice.settings import load_settings
given = {{"DB_CONNECTION_URI": "sqlite:///{tmp_path}/m.db", "DB_POOL_TIMEOUT": "60", \
"DB_SYNCHRONOUS": "normal"}}
rt = open_runtime(load_settings(environ=given, cwd=Path({str(tmp_path)!r})))
rt.storage.migrate()
print("ready", flush=True)
sys.stdin.readline()
for number in range(5):
    messages.create(rt, Principal(admin=True), "w", "s", [Draft(f"{{sys.argv[1]}} {{number}}", \
"ann"), Draft("again", sys.argv[1])])
rt.close()
"""
    waiting, begin = os.pipe()
    children = [
        preloaded.start_python(code, f"p{n}", folder=tmp_path, stdin=waiting) for n in range(2)
    ]
    os.close(waiting)
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        os.close(begin)
        assert [child.wait(60) for child in children] == [0, 0]
    finally:
        for child in children:
            child.kill()
            for stream in (child.stdout, child.stderr):
                assert stream is not None
                stream.close()
    from support.stores.sqlite_store import opened

    storage = opened(tmp_path / "m.db")
    with storage.read() as tx:
        (session,) = tx.rows.page(Session)
        seqs = [message.seq for message in tx.messages.run(session.key, 1, 100)]
        assert (tx.rows.count(Workspace), tx.rows.count(Peer)) == (1, 3)
    storage.close()
    assert seqs == list(range(1, 21))


class Blind:
    """Rows that overlook, once, one record that is there: as a transaction does that looked before
    another one committed."""

    def __init__(self, rows: Rows, record: type[Any], left: list[int]) -> None:
        self._rows, self._record, self._left = rows, record, left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def get(self, record: type[Any], *args: Any, **options: Any) -> Any:
        return None if self._overlooks(record) else self._rows.get(record, *args, **options)

    def page(self, record: type[Any], *args: Any, **options: Any) -> Any:
        return [] if self._overlooks(record) else self._rows.page(record, *args, **options)

    def change(self, record: type[Any], *args: Any, **options: Any) -> Any:
        return 0 if self._overlooks(record) else self._rows.change(record, *args, **options)

    def _overlooks(self, record: type[Any]) -> bool:
        if record is self._record and self._left:
            self._left.pop()
            return True
        return False


@contextmanager
def overlooking(
    services: Services, record: type[Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[int]]:
    """The next transaction that looks for such a row overlooks it. Only on the in-memory storage,
    whose nouns are the plain ones."""
    storage, left = services.rt.storage, [1]
    transaction = storage.transaction  # type: ignore[attr-defined]

    @contextmanager
    def blind() -> Iterator[Any]:
        with transaction() as tx:
            yield type(tx)(Blind(tx.rows, record, left))

    with monkeypatch.context() as patch:
        patch.setattr(storage, "transaction", blind)
        yield left


RACES: dict[str, tuple[type[Any], Callable[[Services], Any]]] = {
    "workspace": (Workspace, lambda s: workspaces.update(s.rt, ME, WORKSPACE, {"n": 1}, None).slug),
    "peer": (Peer, lambda s: peers.update(s.rt, ME, WORKSPACE, "ann", {"n": 1}, None).slug),
    "session": (Session, lambda s: sessions.update(s.rt, ME, WORKSPACE, "s", {"n": 1}, None).slug),
    "member": (Member, lambda s: s.join("s", "ann").slug),
    "author": (Peer, lambda s: [m.author for m in s.say("s", ("ann", "again"))]),
    "collection": (
        Collection,
        lambda s: [c.content for c in s.conclude("ann", "ann", "likes tea")],
    ),
    "space": (Space, lambda s: [c.content for c in s.conclude("ann", "ann", "likes tea")]),
    "idempotency key": (
        IdempotencyKey,
        lambda s: [m.content for m in s.say("s", ("ann", "once"), once="k")],
    ),
}


@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("open_services", ["memory"], indirect=True)
def test_a_row_stored_between_read_and_write_is_found_by_the_retry(
    open_services: OpenServices, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = open_services()
    services.say("s", ("ann", "once"), once="k")
    services.conclude("ann", "ann", "likes tea")
    record, job = RACES[name]
    expected, before = job(services), count(services, record)
    with overlooking(services, record, monkeypatch) as left:
        assert job(services) == expected
        assert left == [], "it was looked for"
    assert count(services, record) == before


def test_a_real_unique_violation_is_raised_after_retries(services: Services) -> None:
    services.peer("ann")
    runs: list[int] = []

    def twice(tx: Any) -> None:
        runs.append(1)
        (ann,) = tx.rows.page(Peer, TRUE)
        tx.rows.put(
            [
                Peer(
                    uid="another",
                    workspace_key=ann.workspace_key,
                    slug="ann",
                    v1_name="x",
                    created_at=services.clock(),
                )
            ]
        )

    with pytest.raises(UniqueViolation):
        services.rt.storage.write(twice)
    assert 1 < len(runs) <= 5
    assert count(services, Peer) == 1


def test_concurrent_messages_of_one_author_in_many_sessions(open_services: OpenServices) -> None:
    services = open_services(DB_POOL_TIMEOUT="30")
    at_once(
        8,
        lambda n: messages.create(
            services.rt, ME, WORKSPACE, f"s{n}", [Draft("hello", "ann"), Draft("hi", f"bob{n}")]
        ),
    )
    assert (count(services, Peer), count(services, Message), count(services, Member)) == (9, 16, 16)
