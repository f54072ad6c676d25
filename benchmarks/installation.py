"""An installation in this process whose language model is a server on loopback."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.filters import equals
from memservice.domain.records import Conclusion, Task
from memservice.runtime import Runtime
from memservice.services import dreams, messages
from memservice.services.auth.principal import Principal
from memservice.services.dreams import DreamRequest
from memservice.services.messages import Draft
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.worker.polling import Worker

PRINCIPAL = Principal(admin=True)
WORKSPACE = "w"
PATIENCE_SECONDS = 60.0
"""After this time a scenario fails."""
STEP_SECONDS = 0.02


class Clock:
    """Moves only when a scenario moves it."""

    def __init__(self) -> None:
        self.now = datetime(2024, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Installation:
    """A store in memory, and short ways to use it."""

    def __init__(self, rt: Runtime, clock: Clock) -> None:
        self.rt = rt
        self.clock = clock

    def say(self, session: str, author: str, *contents: str) -> None:
        drafts = [Draft(content, author) for content in contents]
        messages.create(self.rt, PRINCIPAL, WORKSPACE, session, drafts)

    def work(self) -> None:
        """Process tasks until none is ready."""
        Worker(self.rt).run_until_idle(PATIENCE_SECONDS)

    def dream(self, peer: str) -> Task:
        """Schedule and process a dream of a peer about itself."""
        dreams.schedule(self.rt, PRINCIPAL, WORKSPACE, DreamRequest(peer, dreams.OMNI))
        self.work()
        return self.tasks(kinds.DREAM)[-1]

    def live(self, peer: str) -> list[str]:
        """The live conclusions of a peer about itself."""
        condition = equals(observer=peer, observed=peer, state="live")
        with self.rt.storage.read() as tx:
            return [row.content for row in tx.rows.page(Conclusion, condition)]

    def tasks(self, kind: str) -> list[Task]:
        with self.rt.storage.read() as tx:
            return tx.rows.page(Task, equals(kind=kind))

    def client(self) -> FlaskClient:
        return create_app(runtime=self.rt).test_client()

    @contextmanager
    def worker(self) -> Iterator[None]:
        """A worker in a thread, until the block ends."""
        stop = threading.Event()
        thread = threading.Thread(target=Worker(self.rt).run, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE_SECONDS)


@contextmanager
def installation(
    base_url: str, config: Path | None = None, **settings: str
) -> Iterator[Installation]:
    """An installation whose tasks ask the model at this URL, until the block ends."""
    environ = {
        "DB_CONNECTION_URI": "memory://",
        "LLM_OPENAI_BASE_URL": base_url,
        "LLM_RETRY_PAUSE_SECONDS": "0.01",
        "DERIVER_FLUSH_ENABLED": "true",
        **({} if config else {"LLM_MODEL": "model-1"}),
        **settings,
    }
    clock = Clock()
    rt = open_runtime(load_settings(config, environ, Path(__file__).parent), clock=clock)
    try:
        rt.storage.migrate()
        yield Installation(rt, clock)
    finally:
        rt.close()


def seconds_until(condition: Callable[[], Any]) -> float:
    """Raises TimeoutError after PATIENCE_SECONDS."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise TimeoutError
        time.sleep(STEP_SECONDS)
    return time.monotonic() - began


def documented(root: Path, title: str) -> str:
    """A configuration file of docs/models.md."""
    page = (root / "docs" / "models.md").read_text(encoding="utf-8")
    match = re.search(rf"^```toml title={re.escape(title)}\n(.*?)^```$", page, re.DOTALL | re.M)
    if match is None:
        raise LookupError(f"docs/models.md has no block {title}")
    return match[1]
