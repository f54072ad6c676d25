"""PostgreSQL is stopped and started under a served process: refused while it is away, and nothing
that was acknowledged is lost."""

from __future__ import annotations

import getpass
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from sqlalchemy.engine import make_url

from support.clients.server import serving
from support.processes.processes import eventually
from support.stores.postgres_server import OwnServer

pytestmark = pytest.mark.e2e

WRITERS = 4
AWAY_SECONDS = 2.0
RECOVERY_SECONDS = 5.0
"""After the start, no request that begins later than this may fail."""
SESSION = "/v3/workspaces/w/sessions"


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.end()


@dataclass
class Load:
    """What came of the requests of all threads. Appending to a list is safe for threads."""

    url: str
    acknowledged: dict[int, list[str]] = field(
        default_factory=lambda: {me: [] for me in range(WRITERS)}
    )
    dropped: dict[int, set[str]] = field(
        default_factory=lambda: {me: set() for me in range(WRITERS)}
    )
    """Refused and not tried again: these are not there."""
    refused: list[tuple[float, httpx.Response]] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def written(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def write(self, me: int) -> None:
        """A session of its own; writers of even numbers try again under the same key until it is
        stored."""
        keyed = me % 2 == 0
        with httpx.Client(base_url=self.url, timeout=20) as http:
            number = 0
            while not self.over.is_set():
                text = f"{me}-{number}"
                headers = {"Idempotency-Key": text} if keyed else {}
                began = time.monotonic()
                answer = http.post(
                    f"{SESSION}/s{me}/messages",
                    json={"messages": [{"content": text, "peer_id": "alice"}]},
                    headers=headers,
                )
                if answer.status_code == 201:
                    self.acknowledged[me].append(text)
                    number += 1
                    continue
                self.refused.append((began, answer))
                if not keyed:
                    self.dropped[me].add(text)
                    number += 1
                time.sleep(0.05)

    def read(self) -> None:
        with httpx.Client(base_url=self.url, timeout=20) as http:
            while not self.over.is_set():
                began = time.monotonic()
                answer = http.post(f"{SESSION}/s0/messages/list", json={})
                if answer.status_code == 200:
                    self.reads.append(answer.json()["total"])
                else:
                    self.refused.append((began, answer))
                time.sleep(0.05)

    def stored(self, me: int) -> list[str]:
        """The contents of a writer's session, in its order."""
        contents: list[str] = []
        with httpx.Client(base_url=self.url, timeout=20) as http:
            while True:
                page = http.post(
                    f"{SESSION}/s{me}/messages/list",
                    params={"page": len(contents) // 100 + 1, "size": 100},
                    json={},
                ).json()
                contents += [message["content"] for message in page["items"]]
                if page["page"] >= page["pages"]:
                    return contents


@pytest.mark.heavy
def test_a_postgres_stopped_and_started_under_load_loses_nothing(
    own_server: OwnServer, tmp_path: Path
) -> None:
    with serving(tmp_path, DB_CONNECTION_URI=own_server.uri, DB_POOL_TIMEOUT="2") as server:
        load = Load(server.url)
        with httpx.Client(base_url=server.url, timeout=20) as http:
            http.post("/v3/workspaces", json={"id": "w"}).raise_for_status()
            for me in range(WRITERS):
                http.post(SESSION, json={"id": f"s{me}", "peers": {"alice": {}}}).raise_for_status()
        with ThreadPoolExecutor(WRITERS + 2) as pool:
            running = [
                *(pool.submit(load.write, me) for me in range(WRITERS)),
                *(pool.submit(load.read) for _ in range(2)),
            ]
            try:
                eventually(lambda: load.written >= 40, what="it is written")
                own_server.stop()
                stopped_at = time.monotonic()
                ready = httpx.get(f"{server.url}/health/ready", timeout=20)
                time.sleep(max(0.0, AWAY_SECONDS - (time.monotonic() - stopped_at)))
                eventually(lambda: len(load.refused) >= 8, what="it is refused")
                own_server.start()
                back = time.monotonic()
                before, reads = load.written, len(load.reads)
                eventually(
                    lambda: time.monotonic() > back + RECOVERY_SECONDS + 1, what="there was time"
                )
                assert load.written > before + 40
                assert len(load.reads) > reads
            finally:
                load.over.set()
            for each in running:
                each.result(30)
        assert ready.status_code == 503
        answers = [ready.text, *(answer.text for _, answer in load.refused)]
        url = make_url(own_server.uri)
        named = {
            str(url.query["host"]),
            str(url.username or getpass.getuser()),
            "socket",
            "127.0.0.1",
            "localhost",
            "/tmp",
        }
        assert [(name, text) for name in named for text in answers if name in text] == []
        assert {answer.status_code for _, answer in load.refused} == {503}, server.log
        assert all(int(answer.headers["Retry-After"]) >= 1 for _, answer in load.refused)
        assert [began - back for began, _ in load.refused if began > back + RECOVERY_SECONDS] == []
        for me in range(WRITERS):
            assert load.stored(me) == load.acknowledged[me], (
                "each once, in order, and nothing that was refused"
            )
            assert not load.dropped[me] & set(load.acknowledged[me])
        assert "cannot be reached" in server.log, "the log tells where the body does not"
