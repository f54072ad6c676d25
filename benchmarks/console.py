"""What a page of the console costs: `python -m benchmarks.console --db sqlite:////tmp/console.db`.

A table of CPU milliseconds (median), statements and bytes for each page, in one process, through
WSGI without a server, with 1,000 sessions of 100 messages. The store must be empty. CPU time of a
database server is not included.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import event

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.records import AuditEntry, Delivery, Erasure, WebhookEndpoint
from memservice.runtime import Runtime
from memservice.services import conclusions, messages
from memservice.services.auth import api_keys
from memservice.services.auth.api_keys import KeyRequest
from memservice.services.auth.permissions import ALL
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.members import links, sign_ins
from memservice.services.members.visitors import Browser
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.spi.storage import Transaction

OPERATOR = Principal(admin=True, permissions=ALL)
BROWSER = Browser("127.0.0.1", "benchmark")
AUTH_ON = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}
PASSWORD = "correct horse battery"  # of a member of this benchmark
WORKSPACE, LARGE, PEER, ENDPOINT = "bench", "session0", "peer0", "endpoint"
WORDS = [f"word{number}" for number in range(3000)]
WEIGHTS = [1 / (number + 5) for number in range(3000)]
BATCH_SIZE = 100
MAX_CPU_MS = 50.0
MAX_STATEMENTS = 20
REPETITIONS = 7
TRANSACTION = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")

_PLACE = f"/console/workspaces/{WORKSPACE}"
QUERY = "word40 word300 word900"
PAGES = {
    "home": "/console",
    "instance": "/console/instance",
    "workspaces": "/console/workspaces",
    "workspace": _PLACE,
    "search": f"{_PLACE}/search?query={QUERY}",
    "peer": f"{_PLACE}/peers/{PEER}",
    "session": f"{_PLACE}/sessions/{LARGE}",
    "session, earlier messages": f"{_PLACE}/sessions/{LARGE}?before=60",
    "context": f"{_PLACE}/sessions/{LARGE}/context?target={PEER}",
    "erasures": f"{_PLACE}/erasures",
    "webhooks": f"{_PLACE}/webhooks",
    "webhook": f"{_PLACE}/webhooks/{ENDPOINT}",
    "jobs": "/console/jobs",
    "jobs of a workspace": f"/console/jobs?workspace={WORKSPACE}&state=pending",
    "usage": "/console/usage",
    "keys": "/console/keys",
    "settings": "/console/settings",
    "members": "/console/members",
    "audit log": "/console/audit",
    "account": "/console/account",
}


@dataclass(frozen=True)
class Size:
    sessions: int
    messages: int
    """In each session."""
    rows: int
    """Of everything else: peers, conclusions about a peer, keys, attempts of a webhook, entries of
    the audit log."""


FULL = Size(sessions=1_000, messages=100, rows=1_000)


def fill(rt: Runtime, size: Size) -> None:
    """Store made-up data through the services."""
    dice = random.Random(7)

    def text() -> str:
        return " ".join(dice.choices(WORDS, WEIGHTS, k=15))

    peers = [f"peer{number}" for number in range(size.rows)]
    for number in range(size.sessions):
        authors = [PEER, dice.choice(peers)]
        drafts = [Draft(text(), dice.choice(authors)) for _ in range(size.messages)]
        messages.create(rt, OPERATOR, WORKSPACE, f"session{number}", drafts)
    for start in range(0, len(peers), BATCH_SIZE):
        names = peers[start : start + BATCH_SIZE]
        drafts = [Draft(text(), name) for name in names]
        messages.create(rt, OPERATOR, WORKSPACE, "everyone", drafts)
        conclusion_drafts = [ConclusionDraft(text(), PEER, PEER, LARGE) for _ in names]
        conclusion_drafts += [ConclusionDraft(text(), name, PEER) for name in names]
        conclusions.create(rt, OPERATOR, WORKSPACE, conclusion_drafts)
    for number in range(size.rows):
        api_keys.mint(rt, OPERATOR, KeyRequest(workspace_id=WORKSPACE), label=f"key {number}")
    rt.storage.write(lambda tx: _add_records(rt, tx, size.rows))


def _add_records(rt: Runtime, tx: Transaction, count: int) -> None:
    workspace = tx.workspaces.by_slug(WORKSPACE)
    if workspace is None:
        raise RuntimeError(f"{WORKSPACE} does not exist")
    now = rt.clock()
    url = "http://127.0.0.1:9/hook"
    endpoint = tx.webhooks.save(
        WebhookEndpoint(
            uid=ENDPOINT, workspace_key=workspace.key, url=url, secret="whsec_x", created_at=now
        )
    )
    for number in range(count):
        entry = AuditEntry(
            uid=f"entry{number}",
            created_at=now,
            actor="olga",
            actor_uid=None,
            action="card.change",
            target=PEER,
            workspace=WORKSPACE,
            address="127.0.0.1",
            detail={},
        )
        tx.audit_log.add(entry)
        tx.erasures.add(
            Erasure(
                uid=f"erasure{number}",
                kind="message",
                workspace_key=workspace.key,
                workspace=workspace.slug,
                workspace_uid=workspace.uid,
                target=f"message{number}",
                requested_by="member olga",
                task_uid=f"task{number}",
                created_at=now,
            )
        )
        delivery = Delivery(
            uid=f"delivery{number}",
            workspace_key=workspace.key,
            endpoint_key=endpoint.key,
            event_uid=f"event{number}",
            event="queue.empty",
            body="{}",
            attempt=1,
            status=204,
            duration_ms=5,
            created_at=now,
        )
        tx.webhooks.record(delivery)


def signed_in(app: Flask, rt: Runtime) -> FlaskClient:
    """The browser of a new owner."""
    member = links.accept(rt, BROWSER, links.set_up(rt, OPERATOR).token, "olga", PASSWORD)
    client = app.test_client()
    client.set_cookie("memservice_session", sign_ins.after_link(rt, BROWSER, member).session_id)
    return client


def trace(rt: Runtime) -> list[str]:
    """The list to which the drivers of all connections of the store add their statements from now
    on. Most statements do not go through SQLAlchemy's execution."""
    texts: list[str] = []

    def note(text: str) -> None:
        # SQLite reports the statements inside its own indexes as comments.
        if not text.startswith(("--", *TRANSACTION)):
            texts.append(text)

    def observe(driver: Any, record: object) -> None:
        if hasattr(driver, "set_trace_callback"):
            driver.set_trace_callback(note)
            return

        class Noting(driver.cursor_factory):  # type: ignore[misc]
            def execute(self, query: Any, *values: Any, **options: Any) -> Any:
                note(str(query))
                return super().execute(query, *values, **options)

        driver.cursor_factory = Noting

    engine = rt.storage.engine  # type: ignore[attr-defined]
    event.listen(engine, "connect", observe)
    engine.dispose()
    return texts


@dataclass(frozen=True)
class Cost:
    cpu_ms: float
    """Median."""
    statements: Sequence[str]
    size: int
    """Bytes of the page."""


def cost(client: FlaskClient, path: str, traced: list[str], repetitions: int = REPETITIONS) -> Cost:
    """`traced`: the list of `trace`. Raises `RuntimeError` if the page does not answer 200."""
    client.get(path, headers={"Accept": "text/html"})  # connects, and fills caches
    traced.clear()
    answer = client.get(path, headers={"Accept": "text/html"})
    texts = list(traced)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code}")
    times = []
    for _ in range(repetitions):
        began = time.process_time()
        client.get(path, headers={"Accept": "text/html"})
        times.append(1000 * (time.process_time() - began))
    return Cost(statistics.median(times) if times else 0.0, texts, len(answer.data))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", required=True, help="the store, which must be empty")
    parser.add_argument("--sessions", type=int, default=FULL.sessions)
    arguments = parser.parse_args()
    environ = {"DB_CONNECTION_URI": arguments.db, "LOG_LEVEL": "warning", **AUTH_ON}
    settings = load_settings(environ=environ, cwd=Path("/"))
    rt = open_runtime(settings, "api")
    rt.storage.migrate()
    fill(rt, Size(arguments.sessions, FULL.messages, FULL.rows))
    client = signed_in(create_app(settings, rt), rt)
    traced = trace(rt)
    print(f"{'page':30}{'CPU ms':>9}{'statements':>12}{'bytes':>9}")
    over = []
    for name, path in PAGES.items():
        spent = cost(client, path, traced)
        if spent.cpu_ms > MAX_CPU_MS or len(spent.statements) > MAX_STATEMENTS:
            over.append(name)
        print(f"{name:30}{spent.cpu_ms:9.1f}{len(spent.statements):12}{spent.size:9,}")
    rt.close()
    if over:
        raise SystemExit(
            f"over {MAX_CPU_MS:.0f} ms or {MAX_STATEMENTS} statements: {', '.join(over)}"
        )


if __name__ == "__main__":
    main()
