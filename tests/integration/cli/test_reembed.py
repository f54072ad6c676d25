"""`memservice reembed` beside a server that is written to and read from: nothing fails, nothing is
lost, whatever happens to it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from integration.cli.conftest import Run
from memservice.compose import open_runtime
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import PENDING, Conclusion, Message, Space, Task
from memservice.runtime import Runtime
from memservice.settings import load_settings
from support.clients.server import Server, serving
from support.processes import preloaded
from support.processes.command import environment
from support.stores.stores import store_of

Install = Callable[[str, str], str]

TWO_EMBEDDERS = """
import os, re, time, zlib

import numpy as np
from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import EmbedderProvider

BOTH = frozenset({Capability.INLINE, Capability.SEMANTIC})


class Words:
    duplicate_distance = None
    capabilities = BOTH

    def __init__(self, name, dimension):
        self.id, self.dimension = f"{name}-1", dimension

    def embed(self, texts, purpose="document"):
        # The command alone is slow, so that there is something to interrupt.
        time.sleep(float(os.environ.get("SLOW_EMBEDDER", "0")))
        return [self._vector(text) for text in texts]

    def _vector(self, text):
        # Texts that name an item are alike if it is the same one, and nothing else is alike.
        vector = np.zeros(self.dimension, np.float32)
        named = re.search(r"item([0-9]+)x", text)
        vector[(int(named[1]) if named else 500 + zlib.crc32(text.encode())) % self.dimension] = 1
        return vector


@hookimpl
def memservice_embedders():
    for name, dimension in (("first", 1_500), ("second", 2_000)):
        yield EmbedderProvider(name=name, open=lambda s, c, n=name, d=dimension: Words(n, d), \
capabilities=BOTH)
"""
MESSAGES = 400


class Load:
    """Writers and readers that run until they are stopped, and their errors."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.failed: list[str] = []
        self.wrong: list[str] = []
        self.done = {"write": 0, "read": 0}
        self.stop = threading.Event()
        self._threads = [
            *(
                threading.Thread(target=self._run, args=("write", self._write, number))
                for number in range(2)
            ),
            *(
                threading.Thread(target=self._run, args=("read", self._read, number))
                for number in range(2)
            ),
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(
        self, name: str, act: Callable[[httpx.Client, int, int], httpx.Response], number: int
    ) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as client:
            turn = 0
            while not self.stop.wait(0.05):
                turn += 1
                try:
                    answer = act(client, number, turn)
                except httpx.HTTPError as error:
                    self.failed.append(f"{name}: {error!r}")
                    continue
                if answer.is_error:
                    self.failed.append(f"{name}: {answer.status_code} {answer.text}")
                self.done[name] += 1

    def _write(self, client: httpx.Client, number: int, turn: int) -> httpx.Response:
        messages = [
            {"peer_id": f"peer{number}", "content": f"I counted live{number}x{turn} herons."}
        ]
        if turn % 5 == 0:
            drafts = [
                {
                    "content": f"Has seen fact{number}x{turn}.",
                    "observer_id": f"peer{number}",
                    "observed_id": f"peer{number}",
                }
            ]
            client.post(
                "/v3/workspaces/w/conclusions", json={"conclusions": drafts}
            ).raise_for_status()
        return client.post(
            f"/v3/workspaces/w/sessions/live{number}/messages", json={"messages": messages}
        )

    def _read(self, client: httpx.Client, number: int, turn: int) -> httpx.Response:
        position = (turn * 7 + number) % MESSAGES
        answer = client.post(
            "/v3/workspaces/w/search", json={"query": f"item{position}x bees", "limit": 3}
        )
        if answer.is_success and f"item{position}x" not in answer.json()[0]["content"]:
            self.wrong.append(f"item{position}x: {answer.json()[0]['content']}")
        if turn % 3 == 0:
            pair = {"observer": "ann", "observed": "ann"}
            return client.post(
                "/v3/workspaces/w/conclusions/query",
                json={"query": "bees", "top_k": 3, "filters": pair},
            )
        return answer


def fill(url: str, workspace: str = "w", number: int = MESSAGES) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        client.post("/v3/workspaces", json={"id": workspace}).raise_for_status()
        for start in range(0, number, 100):
            messages = [
                {"peer_id": "ann", "content": f"I keep item{number}x bees."}
                for number in range(start, min(start + 100, number))
            ]
            client.post(
                f"/v3/workspaces/{workspace}/sessions/s/messages", json={"messages": messages}
            ).raise_for_status()


@contextmanager
def store(
    folder: Path, uri: str, plugins: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runtime]:
    with monkeypatch.context() as path:
        path.syspath_prepend(plugins)
        settings = load_settings(environ={"DB_CONNECTION_URI": uri}, cwd=folder)
        runtime = open_runtime(settings)
        try:
            yield runtime
        finally:
            runtime.close()


def waiting(rt: Runtime) -> int:
    """Tasks that are due and not done, leased or not."""
    with rt.storage.read() as tx:
        return tx.rows.count(
            Task, all_of(equals(state=PENDING), Compare("not_before", "lte", rt.clock()))
        )


def states(rt: Runtime) -> set[tuple[str, str, str]]:
    with rt.storage.read() as tx:
        return {(space.kind, space.embedder, space.state) for space in tx.rows.page(Space)}


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


def begin(folder: Path, **settings: str) -> preloaded.Process:
    return preloaded.start(["reembed", "--to", "second"], folder, environment(**settings))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("storage", ["sqlite", pytest.param("postgres", marks=pytest.mark.heavy)])
def test_reembedding_survives_load_a_kill_and_a_second_process(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    with store_of(storage, tmp_path) as uri:
        under_load(tmp_path, uri, install("two_embedders", TWO_EMBEDDERS), monkeypatch)


def under_load(tmp_path: Path, uri: str, plugins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "PYTHONPATH": plugins,
        "EMBEDDER": "first",
        "DB_SYNCHRONOUS": "normal",
        "DB_CONNECTION_URI": uri,
    }
    with (
        serving(tmp_path, "--workers", "2", **settings) as server,
        store(tmp_path, uri, plugins, monkeypatch) as rt,
    ):
        fill(server.url)
        until(lambda: waiting(rt) == 0)
        assert states(rt) == {("message", "first-1", "active"), ("conclusion", "first-1", "active")}
        with Load(server.url) as load:
            first = begin(tmp_path, SLOW_EMBEDDER="0.5", **settings)
            until(lambda: ("message", "second-1", "building") in states(rt))
            time.sleep(0.7)
            first.kill()
            first.communicate(timeout=20)
            assert ("message", "first-1", "active") in states(rt), (
                "answered from the old ones as if nothing had been begun"
            )
            both = [begin(tmp_path, SLOW_EMBEDDER="0.1", **settings) for _ in range(2)]
            outputs = [process.communicate(timeout=120) for process in both]
            time.sleep(0.5)
        assert [process.returncode for process in both] == [0, 0], outputs
        assert sum("waiting for another process" in errors for _, errors in outputs) >= 1, outputs
        assert (load.failed[:3], load.wrong[:3]) == ([], [])
        assert min(load.done.values()) > 20, load.done
        until(lambda: waiting(rt) == 0)
        assert states(rt) == {
            ("message", "second-1", "active"),
            ("conclusion", "second-1", "active"),
        }
        with rt.storage.read() as tx:
            records: dict[str, type[Any]] = {"message": Message, "conclusion": Conclusion}
            for kind, record in records.items():
                space = tx.spaces.active(1, kind)
                assert space is not None
                inside: set[int] = set()
                while keys := rt.vectors.keys(tx, space, max(inside, default=0)):
                    inside.update(keys)
                live = {
                    row.key
                    for row in tx.rows.page(record)
                    if getattr(row, "state", "live") == "live"
                }
                assert live - inside == set(), (
                    f"{len(live - inside)} of {len(live)} rows of kind {kind} have no vector"
                )
        assert (
            "some vectors come from the embedder second-1, which remains in use for them; the "
            "configured embedder is first-1" in server.log
        )


def _begun(folder: Path, plugins: str, workspaces: tuple[str, ...] = ("w", "v")) -> None:
    """A store with some messages, begun with the first embedder, and no server any more."""
    with serving(folder, PYTHONPATH=plugins, EMBEDDER="first") as server:
        for workspace in workspaces:
            fill(server.url, workspace, 5)
        _worked_off(server)


def _worked_off(server: Server) -> None:
    """Including vectors, which the queue status does not count."""
    pending = "SELECT count(*) FROM tasks WHERE state = 'pending' AND kind != 'dream_timer'"

    def done() -> bool:
        with closing(
            sqlite3.connect(
                f"file:{server.uri.removeprefix('sqlite:///')}?mode=ro", uri=True, timeout=30
            )
        ) as connection:
            return bool(connection.execute(pending).fetchone() == (0,))

    until(done)


def test_one_workspace_can_be_moved_before_the_others(
    memservice: Run, tmp_path: Path, install: Install
) -> None:
    plugins = install("two_embedders", TWO_EMBEDDERS)
    settings = {"PYTHONPATH": plugins, "EMBEDDER": "first"}
    _begun(tmp_path, plugins)
    one = memservice("reembed", "--to", "second", "-w", "v", **settings)
    assert (one.returncode, one.stdout.splitlines()[-1]) == (
        0,
        "1 workspaces checked, 1 moved to second-1",
    ), one.stderr
    assert "v: 5 vectors of kind message created by second-1, was first-1" in one.stdout
    assert "w:" not in one.stdout
    assert "set EMBEDDER=second" in one.stderr
    rest = memservice("reembed", "--to", "second", PYTHONPATH=plugins, EMBEDDER="second")
    assert (rest.returncode, rest.stdout.splitlines()[-1]) == (
        0,
        "2 workspaces checked, 1 moved to second-1",
    ), rest.stderr
    assert "set EMBEDDER" not in rest.stderr
    again = memservice("reembed", "--to", "second", PYTHONPATH=plugins, EMBEDDER="second")
    assert again.stdout == "2 workspaces checked, 0 moved to second-1\n"


def test_unknown_workspaces_and_embedders_are_reported(memservice: Run) -> None:
    memservice("db", "upgrade")
    none = memservice("reembed", "--to", "hashd")
    assert none.returncode == 1
    assert "no plugin offers an embedder called 'hashd'" in none.stderr
    assert "did you mean hashed?" in none.stderr
    nowhere = memservice("reembed", "--to", "hashed", "-w", "nowhere")
    assert (nowhere.returncode, "nowhere" in nowhere.stderr) == (1, True)
    assert memservice("reembed", "--to", "hashed", DB_CONNECTION_URI="memory://").returncode == 1
