"""Processes are ended at random while clients write: nothing acknowledged is lost, and nothing is
done twice."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from memservice.compose import open_runtime
from memservice.domain.records import Conclusion, Message, Session, Summary
from memservice.runtime import Runtime
from memservice.services import messages
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.processes.processes import Service, eventually, send
from support.processes.writers import LEAST, Writer, writing
from support.stores.stores import store_of

pytestmark = pytest.mark.crash

Serve = Callable[..., Service]
Held = list[tuple[str, str, str, str, int]]
Covered = list[tuple[str, str, int]]

VICTIMS = ("server", "worker", "extra", "master", "everything", "supervisor")
WEIGHTS = (6, 6, 3, 1, 2, 2)
"""How often each is ended. The last three take the whole service down, and it is started again."""


def kill(service: Service, victim: str) -> bool:
    """SIGKILL one process, or all at once. False if there was none of that kind."""
    roles = service.roles()
    pids = (
        [pid for group in roles.values() for pid in group]
        if victim == "everything"
        else roles[victim][:1]
    )
    hit = [send(pid, signal.SIGKILL) for pid in pids]
    return any(hit)


def ordeal(service: Service, kills: int, chance: random.Random) -> Counter[str]:
    """End processes at random moments; returns how often each kind was ended."""
    done: Counter[str] = Counter()
    while done.total() < kills:
        time.sleep(chance.uniform(0.05, 0.9))
        victim = chance.choices(VICTIMS, WEIGHTS)[0]
        if not kill(service, victim):
            continue
        done[victim] += 1
        if victim in ("master", "everything", "supervisor"):
            eventually(
                lambda: service.server.process.poll() is not None, what="the supervisor ends"
            )
            service.restart()
        if not service.roles()["extra"]:
            service.add_worker()
        service.remember()
    return done


def opened(uri: str, folder: Path) -> Runtime:
    settings = load_settings(environ={"DB_CONNECTION_URI": uri}, cwd=folder)
    return open_runtime(settings)


def found_in(rt: Runtime) -> tuple[Held, Covered]:
    """Conclusions, and the position that each summary covers, without ids and times."""
    with rt.storage.read() as tx:
        conclusions = [
            (c.observer, c.observed, str(c.session), c.content, c.times_derived)
            for c in tx.rows.page(Conclusion)
        ]
        sessions = {session.key: session.slug for session in tx.rows.page(Session)}
        last = {
            summary: tx.messages.by_keys([summary.message_key])[summary.message_key].seq
            for summary in tx.rows.page(Summary)
        }
    return sorted(conclusions), sorted(
        (sessions[summary.session_key], summary.kind, seq) for summary, seq in last.items()
    )


def without_ends(stored: dict[str, list[Message]], folder: Path) -> tuple[Held, Covered]:
    """What a run makes of the same messages in which no process ends."""
    rt = opened("memory://", folder)
    for session, texts in stored.items():
        for start in range(0, len(texts), 50):
            drafts = [
                Draft(message.content, message.author) for message in texts[start : start + 50]
            ]
            messages.create(rt, Principal(admin=True), "w", session, drafts)
    Worker(rt).run_until_idle(240)  # up to 6,640 messages, beside other tests
    rows = found_in(rt)
    rt.close()
    return rows


def survive(serve: Serve, folder: Path, kills: int, seed: int, uri: str | None = None) -> None:
    """On the database of that URI, or on the file that a service starts with."""
    settings = {
        "DERIVER_POLLING_STARTUP_JITTER_SECONDS": "0",
        "DERIVER_STALE_WORK_UNIT_CLEANUP_INTERVAL_SECONDS": "1",
    }
    service = serve(**settings, **({} if uri is None else {"DB_CONNECTION_URI": uri}))
    service.add_worker()
    writers = [Writer(number, f"s{number % 2}", keys=number < 2) for number in range(4)]
    with writing(service, writers, most=60 + 40 * kills):
        result = ordeal(service, kills, random.Random(seed))
    service.drained()
    assert service.server.stop() == 0
    assert result.total() == kills
    assert [writer.wrong for writer in writers] == [[], [], [], []]

    rt = opened(service.uri, folder)
    with rt.storage.read() as tx:
        sessions = tx.rows.page(Session)
        stored = {
            session.slug: tx.messages.run(session.key, 1, session.message_count + 10)
            for session in sessions
        }
    for session in sessions:
        texts = stored[session.slug]
        assert [message.seq for message in texts] == list(range(1, session.message_count + 1)), (
            "positions are dense"
        )
        totals = [
            sum(message.tokens for message in texts[: index + 1]) for index in range(len(texts))
        ]
        assert [message.tokens_through for message in texts] == totals
        assert session.token_total == totals[-1]
    for writer in writers:
        own = [
            message.content for message in stored[writer.session] if message.author == writer.peer
        ]
        assert [content for content in own if content in writer.ids] == writer.acknowledged, (
            "each once, in order"
        )
        assert {
            m.content: m.uid for m in stored[writer.session] if m.content in writer.ids
        } == writer.ids
        assert set(own) <= {*writer.acknowledged, *writer.given_up}
        assert len(own) == len(set(own)), "what was not acknowledged is there at most once"
        assert not (writer.keys and writer.given_up)
        assert len(own) >= LEAST
    conclusions, covered = found_in(rt)
    rt.close()
    expected, covering = without_ends(stored, folder)
    assert len(expected) > 200
    assert conclusions == expected
    assert covered == covering
    failed = service.rows(
        "SELECT kind, last_error FROM tasks WHERE state = 'failed' OR attempts > 0"
    )
    assert failed == [], "the end of a process is no failure of a task"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", [4, pytest.param(8, marks=pytest.mark.heavy)])
def test_nothing_is_lost_or_done_twice_when_processes_end(
    serve: Serve, tmp_path: Path, kills: int
) -> None:
    survive(serve, tmp_path, kills=kills, seed=20)


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_nothing_is_lost_or_done_twice_on_postgres_when_processes_end(
    serve: Serve, tmp_path: Path
) -> None:
    with store_of("postgres", tmp_path) as uri:
        survive(serve, tmp_path, kills=12, seed=21, uri=uri)


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("storage", "seed"), [("sqlite", 1), ("sqlite", 2), ("postgres", 3)])
def test_nothing_is_lost_or_done_twice_when_many_processes_end(
    serve: Serve, tmp_path: Path, storage: str, seed: int
) -> None:
    with store_of(storage, tmp_path) as uri:
        survive(serve, tmp_path, kills=40, seed=seed, uri=uri)
