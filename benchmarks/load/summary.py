"""A summary of the short session, which only background work or the store can add."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.load.data import MEDIUM, SHORT
from memservice.compose import open_runtime
from memservice.domain import records
from memservice.settings import load_settings
from memservice.spi.storage import Transaction

TEXT = "They spoke about the plans for the week and what was left of the last one. " * 4


def add(db: str, options: Mapping[str, str]) -> None:
    """Cover the session up to the message before its last one, unless it has a summary."""
    settings = load_settings(environ={"DB_CONNECTION_URI": db, **options}, cwd=Path("/"))
    runtime = open_runtime(settings, "api")

    def write(tx: Transaction) -> None:
        located = tx.workspaces.locate(MEDIUM, SHORT)
        if located.workspace is None or located.session is None:
            raise RuntimeError(f"{MEDIUM} has no session {SHORT}")
        session = located.session
        if tx.summaries.of_session(session.key):
            return
        covered = tx.messages.run(session.key, session.message_count - 1, session.message_count)[0]
        tx.summaries.save(
            records.Summary(
                workspace_key=located.workspace.key,
                session_key=session.key,
                kind=records.LONG,
                content=TEXT,
                message_key=covered.key,
                message_uid=covered.uid,
                tokens=70,
                reasoner="benchmark",
                created_at=runtime.clock(),
            )
        )

    try:
        runtime.storage.write(write)
    finally:
        runtime.close()
