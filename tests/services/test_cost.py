"""What a request costs does not grow with the store: every read takes as many statements at twenty
rows as at two thousand, on every database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from memservice.compose import open_runtime
from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.records import ApiKey, Conclusion, Message
from memservice.runtime import Runtime
from memservice.services import cards, messages, peers, sessions, workspaces
from memservice.services import conclusions as concluding
from memservice.services.auth import api_keys
from memservice.services.conclusions import ConclusionDraft
from memservice.services.messages import Draft
from memservice.services.paging import Paging
from memservice.services.retrieval import context
from memservice.services.retrieval.representation import RepresentationOptions
from memservice.services.sessions import MemberConfig, SessionFields
from memservice.services.tasks import queue_status
from memservice.settings import load_settings
from support.services.services import ME, WORKSPACE, Clock, Services
from support.stores.plans import plan_of_postgres, plan_of_sqlite, trace
from support.stores.stores import store_of

SIZES = (20, 2_000)
OFTEN = 12
"""After so many searches, a process has read the texts of all messages."""
DEEP = Paging(page=2, size=10, reverse=True)


@dataclass
class Sized:
    services: Services
    message_rows: list[Message]
    concluded: list[Conclusion]
    statements: list[str] = field(default_factory=list)
    costs: dict[str, list[str]] = field(default_factory=dict)

    def cost(self, name: str) -> list[str]:
        """The statements that the database runs for a read when it has run often, beginning and end
        of transactions left out: until then a process may read vectors and texts into its
        memory."""
        if name not in self.costs:
            _, job = READS[name]
            for _ in range(OFTEN):
                job(self)
            self.statements.clear()
            job(self)
            self.costs[name] = [
                sql
                for sql in self.statements
                if not sql.startswith(("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "--"))
            ]
        return self.costs[name]


def fill(uri: str, folder: Path, size: int) -> Sized:
    loaded = load_settings(
        environ={"DB_CONNECTION_URI": uri, "DB_SYNCHRONOUS": "normal"}, cwd=folder
    )
    runtime = open_runtime(loaded, clock=Clock())
    services = Services(runtime, Clock())
    message_rows: list[Message] = []
    concluded: list[Conclusion] = []
    services.peer("ann", "bob", metadata={"name": "A B"})
    batch = min(size, 100)
    for start in range(0, size, batch):
        numbers = range(start, start + batch)
        drafts = [
            Draft(f"the heron stands by the river {n}", ("ann", "bob")[n % 2], metadata={"n": n})
            for n in numbers
        ]
        # One session that grows, and others.
        message_rows += messages.create(runtime, ME, WORKSPACE, "s", drafts[: batch - 4])
        messages.create(runtime, ME, WORKSPACE, f"s{start}", drafts[batch - 4 :])
        texts = [ConclusionDraft(f"saw {n} herons", "ann", "bob", "s") for n in numbers]
        concluded += concluding.create(runtime, ME, WORKSPACE, texts)
        peers.get_or_create(runtime, ME, WORKSPACE, f"peer{start}", None, None)
        workspaces.get_or_create(runtime, ME, f"w{start}", None, None)
    named = [
        ApiKey(
            uid=f"k{n}", workspace=WORKSPACE, peer="ann", session="s", created_at=runtime.clock()
        )
        for n in range(size)
    ]
    runtime.storage.write(lambda tx: tx.rows.put([api_keys.bound(tx, named[0]), *named[1:]]))
    services.summarise(message_rows[5], "short", 5)
    cards.put(runtime, ME, WORKSPACE, "ann", None, ["Name: Ann"])
    sized = Sized(services, message_rows, concluded)
    engine = runtime.storage.engine  # type: ignore[attr-defined]
    sa.event.listen(engine, "connect", lambda driver, record: trace(driver, sized.statements))
    engine.dispose()
    return sized


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.heavy)]
)
def sized(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, own_statements: None
) -> Iterator[tuple[Sized, ...]]:
    with ExitStack() as stack:
        sizes: list[Sized] = []
        for size in SIZES:
            folder = tmp_path_factory.mktemp("cost")
            one = fill(stack.enter_context(store_of(request.param, folder)), folder, size)
            stack.callback(one.services.rt.close)
            sizes.append(one)
        yield tuple(sizes)


def _rt(job: Callable[[Runtime, Sized], Any]) -> Callable[[Sized], Any]:
    return lambda sized: job(sized.services.rt, sized)


def recognise(rt: Runtime) -> None:
    """As each request does it that shows a key."""
    claims = Claims(id="k0", workspace=WORKSPACE, peer="ann", session="s")
    with rt.storage.read() as tx:
        match = api_keys.recognise(tx, claims, "")
    assert match is not None
    assert match.session_uid


NONE = MemberConfig()
PAIR = {"observer": "ann", "observed": "bob"}
FEW = {**PAIR, "session_id": "s0", "level": "explicit"}
READS: dict[str, tuple[int, Callable[[Sized], Any]]] = {
    "get workspace": (
        1,
        _rt(lambda rt, s: workspaces.get_or_create(rt, ME, WORKSPACE, None, None)),
    ),
    "list workspaces": (2, _rt(lambda rt, s: workspaces.page(rt, ME, None, DEEP))),
    "get peer": (1, _rt(lambda rt, s: peers.get_or_create(rt, ME, WORKSPACE, "ann", None, None))),
    "list peers": (3, _rt(lambda rt, s: peers.page(rt, ME, WORKSPACE, None, Paging(size=1)))),
    "peer's sessions": (
        3,
        _rt(lambda rt, s: peers.sessions(rt, ME, WORKSPACE, "ann", None, Paging(size=1))),
    ),
    "get session": (1, _rt(lambda rt, s: sessions.get_or_create(rt, ME, WORKSPACE, "s"))),
    "get session and its members": (
        3,
        _rt(
            lambda rt, s: sessions.get_or_create(
                rt, ME, WORKSPACE, "s", SessionFields(members=dict.fromkeys(("ann", "bob"), NONE))
            )
        ),
    ),
    "list sessions": (3, _rt(lambda rt, s: sessions.page(rt, ME, WORKSPACE, None, Paging(size=1)))),
    "session peers": (
        3,
        _rt(lambda rt, s: sessions.members_page(rt, ME, WORKSPACE, "s", Paging())),
    ),
    "peer config": (2, _rt(lambda rt, s: sessions.get_peer_config(rt, ME, WORKSPACE, "s", "ann"))),
    "summaries": (2, _rt(lambda rt, s: sessions.summaries(rt, ME, WORKSPACE, "s"))),
    "list messages": (
        2,
        _rt(lambda rt, s: messages.page(rt, ME, WORKSPACE, "s", None, Paging(size=10))),
    ),
    "list messages, reversed": (
        2,
        _rt(lambda rt, s: messages.page(rt, ME, WORKSPACE, "s", None, DEEP)),
    ),
    "list messages, filtered": (
        2,
        _rt(
            lambda rt, s: messages.page(
                rt, ME, WORKSPACE, "s", {"metadata": {"n": {"gte": 3}}}, Paging(size=2)
            )
        ),
    ),
    "list messages, filtered to few": (
        2,
        _rt(lambda rt, s: messages.page(rt, ME, WORKSPACE, "s", {"metadata": {"n": 3}}, Paging())),
    ),
    "get message": (
        1,
        _rt(lambda rt, s: messages.get(rt, ME, WORKSPACE, "s", s.message_rows[3].uid)),
    ),
    "context": (4, lambda s: s.services.context("s", tokens=100)),
    "context with target": (
        7,
        lambda s: s.services.context(
            "s", tokens=180, peer_target="bob", peer_perspective="ann", max_conclusions=3
        ),
    ),
    "peer context": (
        6,
        _rt(
            lambda rt, s: context.of_peer(
                rt,
                ME,
                WORKSPACE,
                "ann",
                RepresentationOptions(target="bob", include_most_frequent=True),
            )
        ),
    ),
    "representation": (3, lambda s: s.services.represent("ann", target="bob")),
    "representation, with a query": (
        13,
        lambda s: s.services.represent("ann", target="bob", search_query="heron river"),
    ),
    "search workspace": (8, lambda s: s.services.search("heron river")),
    "search session": (7, lambda s: s.services.search("heron river", session_id="s")),
    "search session, by filter": (
        9,
        lambda s: s.services.search("heron river", filters={"session_id": "s0"}),
    ),
    "search peer": (8, lambda s: s.services.search("heron river", peer_id="ann")),
    "search, nothing asked": (3, lambda s: s.services.search("?")),
    "card": (2, _rt(lambda rt, s: cards.get(rt, ME, WORKSPACE, "ann"))),
    "list conclusions": (
        4,
        _rt(lambda rt, s: concluding.page(rt, ME, WORKSPACE, PAIR, Paging(size=10))),
    ),
    "get conclusion": (2, _rt(lambda rt, s: concluding.get(rt, ME, WORKSPACE, s.concluded[3].uid))),
    "query conclusions": (7, lambda s: s.services.ask("how many herons", "ann", "bob")),
    "query conclusions of oneself": (5, lambda s: s.services.ask("how many herons", "ann", "ann")),
    "query conclusions of a session": (
        7,
        _rt(lambda rt, s: concluding.query(rt, ME, WORKSPACE, "herons", filters=FEW)),
    ),
    "recognise a key": (1, _rt(lambda rt, s: recognise(rt))),
    "queue status": (4, _rt(lambda rt, s: queue_status.status(rt, ME, WORKSPACE))),
    "queue status of a session": (
        4,
        _rt(
            lambda rt, s: queue_status.status(
                rt, ME, WORKSPACE, observer="ann", sender="bob", session_id="s"
            )
        ),
    ),
}

LARGE = (
    "messages",
    "conclusions",
    "tasks",
    "sessions",
    "peers",
    "members",
    "vectors",
    "text_rows",
    "text_terms",
    "api_keys",
    "workspaces",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", READS)
def test_a_read_takes_few_statements_and_as_many_at_any_size(
    sized: tuple[Sized, ...], name: str
) -> None:
    most, _ = READS[name]
    few, many = (one.cost(name) for one in sized)
    # The words of a search are in all messages: of 20, a process compares them in its memory.
    searches = name.startswith("search ") or name == "representation, with a query"
    assert len(many) == len(few) or (searches and len(few) < len(many)), "\n".join(many)
    assert 0 < len(many) <= most, "\n".join(many)


@pytest.mark.slow
@pytest.mark.parametrize("name", READS)
def test_a_read_scans_no_large_table(sized: tuple[Sized, ...], name: str) -> None:
    large = sized[-1]
    statements = list(dict.fromkeys(large.cost(name)))
    with large.services.rt.storage.engine.connect() as connection:  # type: ignore[attr-defined]
        driver: Any = connection.connection.driver_connection
        plan = plan_of_postgres if isinstance(driver, psycopg.Connection) else plan_of_sqlite
        assert [
            (step, sql) for sql in statements for step in plan(driver, sql) if _scans_table(step)
        ] == []


@pytest.mark.slow
def test_a_snapshot_reads_the_states_of_sessions_once(sized: tuple[Sized, ...]) -> None:
    """A search looks for positions around its hits by words, and then around those by vectors."""
    large = sized[-1]
    keys = [message.key for message in large.message_rows[:200]]

    def around(times: int) -> int:
        large.statements.clear()
        with large.services.rt.storage.read() as tx:
            for _ in range(times):
                assert set(keys) <= set(tx.messages.neighbourhood(keys, 2))
        return sum("FROM sessions" in sql for sql in large.statements)

    for _ in range(OFTEN):  # until the process has the session in memory
        around(1)
    assert (around(1), around(3)) == (1, 1)


def _scans_table(step: str) -> bool:
    """Does a step of a plan read a whole large table, and not only an index?"""
    table = re.match(rf"(?:SCAN|(?:Parallel )?Seq Scan on) ({'|'.join(LARGE)})\b", step)
    return table is not None and " USING " not in step and " by " not in step
