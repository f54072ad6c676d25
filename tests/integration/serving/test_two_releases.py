"""Two releases on one store: after a newer one has migrated it, processes of this release stop
writing, say so once, and count as failed; reads are answered."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from memservice_sql.schema_version import HEAD
from support.clients.server import Server
from support.processes.processes import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MESSAGES = "/v3/workspaces/w/sessions/s/messages"
BEES, BOAT = "I keep bees behind the house.", "I repaired the old boat in May."
STOPPED = "stops working: The database "


class Service:
    """`memservice serve` with its worker, and the file of its store."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "memservice.db"
        self.server = Server(folder, "--workers", "1")
        self.http = httpx.Client(base_url=self.server.url, timeout=30)

    def say(self, text: str) -> int:
        body = {"messages": [{"peer_id": "ann", "content": text}]}
        return self.http.post(MESSAGES, json=body).status_code

    def conclusions(self) -> list[str]:
        answer = self.http.post("/v3/workspaces/w/conclusions/list", json={})
        return sorted(item["content"] for item in answer.json()["items"])

    def ready(self) -> tuple[int, set[str]]:
        """The status, and the parts that have failed."""
        answer = self.http.get("/health/ready")
        checks = answer.json()["checks"]
        return answer.status_code, {c["name"] for c in checks if c["state"] == "failed"}

    def run(self, *statements: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.file, timeout=30)) as connection, connection:
            for statement in statements:
                rows = connection.execute(statement).fetchall()
            return rows

    def migrate(self) -> None:
        """As a newer release does: a column that its code fills, and its version."""
        self.run(
            "BEGIN IMMEDIATE",
            "ALTER TABLE messages ADD COLUMN later TEXT NOT NULL DEFAULT 'not filled'",
            "UPDATE alembic_version SET version_num = '9999'",
        )

    def restore(self) -> None:
        self.run(
            "BEGIN IMMEDIATE",
            "ALTER TABLE messages DROP COLUMN later",
            f"UPDATE alembic_version SET version_num = '{HEAD}'",
        )

    def messages(self) -> int:
        ((number,),) = self.run("SELECT count(*) FROM messages")
        assert isinstance(number, int)
        return number


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    started = Service(tmp_path)
    yield started
    started.http.close()
    started.server.stop()


def test_an_older_release_stops_writing_and_goes_on_after_a_downgrade(service: Service) -> None:
    assert service.say(BEES) == 201
    eventually(lambda: service.conclusions() == [BEES], what="the worker derives")
    service.migrate()
    eventually(lambda: service.say(BOAT) == 503, what="writes are refused")
    refused_at = service.messages()
    assert service.say(BOAT) == 503
    answer = service.http.post(MESSAGES, json={"messages": [{"peer_id": "a", "content": "x"}]})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    eventually(lambda: service.ready() == (503, {"storage"}), what="readiness fails")
    assert BEES in service.conclusions(), "reads are answered as long as they can be"
    eventually(lambda: STOPPED in service.server.log, what="the worker says that it stops")
    assert "has schema 9999 of a newer release of memservice" in service.server.log
    assert service.messages() == refused_at, "nothing was written since"
    assert "Traceback" not in service.server.log
    service.restore()
    eventually(lambda: service.say("I sing in a choir.") == 201, what="writes are accepted again")
    eventually(lambda: "I sing in a choir." in service.conclusions(), what="the worker works again")
    assert service.server.log.count(STOPPED) == 1
    assert "this worker works again" in service.server.log
