"""Ends a process at one commit after the other and looks at what is left.

Run as a program, since it forks: `boundaries.py FOLDER WHAT STORAGE STEP`, where STORAGE is
`sqlite` or `postgres`, and one of STEP commits is tried.

Prints one line of JSON: for each point that was reached what the store held after the next start,
and what it holds without any end.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memservice.compose import open_runtime
from memservice.domain.records import (
    DONE,
    Collection,
    Conclusion,
    Lease,
    Message,
    Session,
    Space,
    Summary,
    Task,
)
from memservice.plugins import Plugins, load_plugins
from memservice.runtime import Runtime
from memservice.services import messages, sessions
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.services.sessions import MemberConfig
from memservice.settings import load_settings
from memservice.testing import failpoints
from memservice.worker import retention
from memservice.worker.polling import Worker
from support import sharing
from support.stores.postgres_server import drop_database, new_database

FACTS = [
    f"I keep {number} bees in the garden behind house {number * 7}." for number in range(1, 11)
]
"""Two speakers say ten each: enough for a summary."""
KEY = "the request that is sent again"


class Stores(ABC):
    """Stores by name, which can be copied while no process has them open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def uri(self, name: str) -> str: ...

    @abstractmethod
    def make(self, name: str) -> None:
        """A new one, without tables."""

    @abstractmethod
    def copy(self, name: str, to: str) -> None: ...

    @abstractmethod
    def drop(self, name: str) -> None: ...

    def note(self, name: str, kind: str) -> Path:
        """A file through which processes report on a store to one another."""
        return self.folder / f"{name}.{kind}"


class Files(Stores):
    def uri(self, name: str) -> str:
        return f"sqlite:///{self.folder}/{name}.db"

    def make(self, name: str) -> None:
        pass

    def copy(self, name: str, to: str) -> None:
        shutil.copy(self.folder / f"{name}.db", self.folder / f"{to}.db")

    def drop(self, name: str) -> None:
        (self.folder / f"{name}.db").unlink()


class Databases(Stores):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._uris: dict[str, str] = {}

    def uri(self, name: str) -> str:
        return self._uris[name]

    def make(self, name: str) -> None:
        self._uris[name] = new_database()

    def copy(self, name: str, to: str) -> None:
        self._uris[to] = new_database(self._uris[name])

    def drop(self, name: str) -> None:
        drop_database(self._uris.pop(name))

    def drop_all(self) -> None:
        for name in list(self._uris):
            self.drop(name)


def opened(uri: str, point: str = "") -> Runtime:
    os.environ[failpoints.POINTS] = point
    settings = load_settings(environ={"DB_CONNECTION_URI": f"failpoint+{uri}"}, cwd=Path.cwd())
    return open_runtime(settings, plugins=plugins())


@cache
def plugins() -> Plugins:
    return load_plugins(load_settings(environ={}, cwd=Path.cwd()), extra=[failpoints])


def in_a_process(work: Callable[[], None]) -> int:
    """Run it in a process of its own; returns its exit status, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def write(rt: Runtime, acknowledged: Path | None = None) -> None:
    """Two requests that a client sends again, with the same key, until they are acknowledged."""
    for number, author in enumerate(("ada", "bot")):
        drafts = [
            Draft(fact.replace("bees", "bees" if author == "ada" else "goats"), author)
            for fact in FACTS
        ]
        messages.create(rt, Principal(admin=True), "w", "s", drafts, f"{KEY} {number}")
        if acknowledged is not None:
            acknowledged.write_text(str(number + 1), encoding="utf-8")


def work(rt: Runtime) -> None:
    """As a worker does that has just been started."""
    retention.free_abandoned(rt)
    retention.sweep(rt)
    Worker(rt).run_until_idle(60)


def contents(rt: Runtime) -> dict[str, Any]:
    """All that matters, without ids and times."""
    with rt.storage.read() as tx:
        spaces = tx.rows.page(Space)
        session = tx.rows.page(Session)
        return {
            "messages": [
                (m.author, m.seq, m.content, m.tokens_through) for m in tx.rows.page(Message)
            ],
            "sessions": [(s.slug, s.message_count, s.token_total) for s in session],
            "conclusions": sorted(
                (c.observer, c.observed, c.content, c.times_derived, len(c.message_keys))
                for c in tx.rows.page(Conclusion)
            ),
            "collections": sorted(
                (c.observer, c.observed, c.explicit_count) for c in tx.rows.page(Collection)
            ),
            "vectors": sorted((space.kind, rt.vectors.count(tx, space)) for space in spaces),
            "summaries": sorted(
                (s.kind, s.content, m.seq) for s in tx.rows.page(Summary) if (m := _covered(tx, s))
            ),
            "tasks": sorted(
                (t.kind, t.state, t.attempts)
                for t in tx.rows.page(Task)
                if t.kind in ("representation", "summary")
            ),
            "unfinished": sum(
                1 for t in tx.rows.page(Task) if t.state != DONE and t.kind != "dream_timer"
            ),
            "leases": tx.rows.count(Lease),
        }


def _covered(tx: Any, summary: Summary) -> Message | None:
    result: Message | None = tx.messages.by_keys([summary.message_key]).get(summary.message_key)
    return result


def after_work(stores: Stores, name: str) -> dict[str, Any]:
    """What the store holds once everything was done by a process that nothing happens to."""
    answer = stores.note(name, "json")

    def look() -> None:
        rt = opened(stores.uri(name))
        write(rt)
        work(rt)
        answer.write_text(json.dumps(contents(rt)), encoding="utf-8")
        rt.close()

    status = in_a_process(look)
    assert status == 0, status
    result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return result


def warm_up(stores: Stores) -> None:
    """Do, in this process, all that its forks would each do for themselves: load code, find plugins
    and compile statements. Nothing stays open."""
    patch = pytest.MonkeyPatch()  # never undone: this program ends
    sharing.share_statements(patch)
    sharing.share_metadata(patch)
    stores.make("warm")
    rt = opened(stores.uri("warm"))
    rt.storage.migrate()
    write(rt)
    work(rt)
    contents(rt)
    rt.close()
    stores.drop("warm")
    gc.collect()
    gc.freeze()  # a collection in a fork would copy all of it


def main(stores: Stores, what: str, step: int) -> None:
    warm_up(stores)
    stores.make("empty")

    def prepare() -> None:
        rt = opened(stores.uri("empty"))
        rt.storage.migrate()
        sessions.add_peers(
            rt, Principal(admin=True), "w", "s", {"bob": MemberConfig(observe_others=True)}
        )
        rt.close()

    def ready() -> None:
        rt = opened(stores.uri("ready"))
        write(rt)
        rt.close()

    assert in_a_process(prepare) == 0
    stores.copy("empty", "ready")
    assert in_a_process(ready) == 0
    stores.copy("empty", "whole")
    whole = after_work(stores, "whole")
    differing: dict[str, Any] = {}
    reached: list[str] = []
    for moment in (failpoints.BEFORE, failpoints.AFTER):
        # The second commit is the first that stores results.
        for number in range(min(step, 2), 200, step):
            point, name = f"kill:{moment}:{number}", f"{moment}{number}"
            stores.copy("empty" if what == "writing" else "ready", name)
            acknowledged = stores.note(name, "ack")

            def attempt(
                name: str = name, point: str = point, acknowledged: Path = acknowledged
            ) -> None:
                rt = opened(stores.uri(name), point)
                if what == "writing":
                    write(rt, acknowledged)
                else:
                    work(rt)
                rt.close()

            status = in_a_process(attempt)
            assert status in (0, -9), (point, status)
            if status == 0:
                break
            reached.append(point)
            lost = acknowledged_lost(stores, name) if what == "writing" else 0
            result = after_work(stores, name)
            if lost or result != whole:
                differing[point] = {
                    "lost": lost,
                    **{part: result[part] for part in whole if result[part] != whole[part]},
                }
            stores.drop(name)
    print(json.dumps({"reached": reached, "differing": differing, "whole": whole}))


def acknowledged_lost(stores: Stores, name: str) -> int:
    """How many messages that were acknowledged are not there right after the end."""
    acknowledged, answer = stores.note(name, "ack"), stores.note(name, "count")
    requests = int(acknowledged.read_text(encoding="utf-8")) if acknowledged.exists() else 0

    def look() -> None:
        rt = opened(stores.uri(name))
        with rt.storage.read() as tx:
            answer.write_text(str(tx.rows.count(Message)), encoding="utf-8")
        rt.close()

    assert in_a_process(look) == 0
    return max(0, requests * len(FACTS) - int(answer.read_text(encoding="utf-8")))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    os.chdir(folder)
    if sys.argv[3] == "sqlite":
        main(Files(folder), sys.argv[2], int(sys.argv[4]))
    else:
        databases = Databases(folder)
        try:
            main(databases, sys.argv[2], int(sys.argv[4]))
        finally:
            databases.drop_all()
