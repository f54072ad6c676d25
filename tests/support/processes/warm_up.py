"""What a process does once for its forks: find plugins, and compile the usual SQL statements."""

from __future__ import annotations

import pytest
from flask import Flask

from memservice.runtime import Runtime
from memservice.services import messages
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.worker import retention
from memservice.worker.polling import Worker
from support import sharing

WORKSPACE, SESSION = "w", "s"
MESSAGES_EACH = 10
"""Of two speakers: enough for a summary."""
SECONDS = 60.0


def share() -> None:
    """Let all stores of this process and its forks share what they compile, to its end."""
    patch = pytest.MonkeyPatch()
    sharing.list_plugins_once(patch)
    sharing.share_statements(patch)
    sharing.share_metadata(patch)


def use(runtime: Runtime) -> None:
    """Store messages in a migrated store, and do the work that follows from them."""
    for author in ("ada", "bot"):
        drafts = [Draft(f"I keep {number} bees.", author) for number in range(MESSAGES_EACH)]
        messages.create(runtime, Principal(admin=True), WORKSPACE, SESSION, drafts, author)
    retention.free_abandoned(runtime)
    retention.sweep(runtime)
    Worker(runtime).run_until_idle(SECONDS)


def ask(app: Flask) -> None:
    """Send the usual requests about them."""
    client = app.test_client()
    session = f"/v3/workspaces/{WORKSPACE}/sessions/{SESSION}"
    for path, body in (
        ("/health", None),
        (f"{session}/context", None),
        (f"{session}/messages/list", {}),
        (f"/v3/workspaces/{WORKSPACE}/search", {"query": "bees"}),
        (f"/v3/workspaces/{WORKSPACE}/conclusions/list", {}),
        (f"/v3/workspaces/{WORKSPACE}/queue/status", None),
        (f"/v3/workspaces/{WORKSPACE}/peers/ada/chat", {"query": "What does ada keep?"}),
    ):
        method = "GET" if body is None else "POST"
        answer = client.open(path, method=method, json=body)
        assert answer.status_code == 200, (path, answer.text)
