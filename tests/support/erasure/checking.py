"""Performs a plan on a real store and checks what is left: nothing of what was erased, and of
everything else what a store has in which it was never said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from redis import Redis

from memservice.compose import open_runtime
from memservice.domain.records import PENDING
from memservice.pipeline.deletion import erase
from memservice.pipeline.deletion import peers as peer_erasure
from memservice.pipeline.dream import rules
from memservice.plugins import load_plugins
from memservice.services.erasure import mentions, positions, retention
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.spi.capabilities import Capability
from support.erasure import states, stored_bytes
from support.erasure.histories import Dreamer, History
from support.erasure.kills import Kills
from support.erasure.plans import Plan
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import Clock, Pipeline
from support.receiver import LOOPBACK, Receiver
from support.stores import redis_vectors
from support.stores.stores import store_of
from support.stores.vector_stores import local_qdrant, redis_store

INDEXES = ("fake", "qdrant", "redis")
"""Vector indexes outside the storage."""
KILLS = 8
RETRIES = 3
LIMITS = {
    (erase, "BATCH_SIZE"): 7,
    (peer_erasure, "BATCH_SIZE"): 3,
    (peer_erasure, "MAX_SESSIONS"): 2,
    (positions, "BATCH_SIZE"): 4,
    (mentions, "BATCH_SIZE"): 2,
    (mentions, "PAGE_SIZE"): 3,
    (mentions, "MAX_READ"): 6,
    (retention, "BATCH_SIZE"): 3,
    (rules, "ALLOWED_WITHOUT_SUCCESSOR"): -1,
}
"""So that an erasure takes many steps, between which it can be interrupted; and each dream of a
model is held for review."""
SETTINGS = {
    "REASONER": "scripted",
    "DREAM_MIN_HOURS_BETWEEN_DREAMS": "0",
    "WEBHOOK_ALLOW_NETWORKS": f'["{LOOPBACK}"]',
}


@contextmanager
def opened(uri: str, folder: Path, *plugins: object, **settings: str) -> Iterator[Pipeline]:
    reasoner, clock = Dreamer(), Clock()
    environment = {"DB_CONNECTION_URI": uri, **SETTINGS, **settings}
    loaded = load_settings(environ=environment, cwd=folder)
    plugin_set = load_plugins(loaded, extra=[reasoner, *plugins])
    runtime = open_runtime(loaded, "command", plugins=plugin_set, clock=clock)
    runtime.storage.migrate()
    try:
        yield Pipeline(runtime, clock, reasoner)
    finally:
        runtime.close()


class Check:
    """One history on one store. `index`: one of `INDEXES`, or "" for the storage's own. `jobs`: the
    URL of a Redis for RQ jobs."""

    def __init__(
        self,
        folder: Path,
        storage: str,
        index: str = "",
        jobs: str | None = None,
        receiver: Receiver | None = None,
    ) -> None:
        self.folder, self.storage, self.index = folder, storage, index
        self.jobs, self.receiver = jobs, receiver
        self._outside: list[stored_bytes.Contents] = []
        self._fake = ExternalIndex()
        self._redis: Redis | None = None

    def run(self, plan: Plan, seed: int) -> None:
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            for (module, name), size in LIMITS.items():
                patch.setattr(module, name, size)
            logs = stack.enter_context(stored_bytes.captured_logs())
            uri = stack.enter_context(store_of(self.storage, self.folder))
            settings, plugins = self._open_index(stack)
            if self.jobs is not None:
                settings |= {"REDIS_URL": self.jobs, "NAMESPACE": redis_vectors.namespace()}
                self._redis = stack.enter_context(Redis.from_url(self.jobs))
            pipeline = stack.enter_context(opened(uri, self.folder, *plugins, **settings))
            webhook = None if self.receiver is None else self.receiver.url("/hook")
            history = History(pipeline, plan, kills=Kills(seed, KILLS), webhook=webhook)
            history.perform()
            self._retry(history)
            tasks = pipeline.tasks(kinds.ERASE)
            assert {task.state for task in tasks} <= {"done"}, [task.last_error for task in tasks]
            contents = self._contents(pipeline, uri) | {"log": "\n".join(logs.lines).encode()}
            check_erased(plan, pipeline, contents)
            self._check_remainder(history)

    def _retry(self, history: History) -> None:
        """Let tasks continue that failed because another one worked on the same rows."""
        for _ in range(RETRIES):
            pending = history.pipeline.tasks(None, state=PENDING)
            if any(task.attempts or task.kind == kinds.ERASE for task in pending):
                history.pipeline.clock.advance(hours=1)
                history.work()

    def _open_index(self, stack: ExitStack) -> tuple[dict[str, str], Sequence[object]]:
        if not self.index:
            return {}, ()
        embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
        plugins: Sequence[object]
        if self.index == "fake":
            settings, plugins = {"VECTOR_STORE_TYPE": "outside"}, (self._fake,)
        elif self.index == "qdrant":
            settings, plugins = stack.enter_context(local_qdrant(self.folder / "qdrant"))
        else:
            plugins = ()
            settings, self._redis = stack.enter_context(redis_store())
        return settings | {"EMBEDDER": "lengths"}, (embedder, *plugins)

    def _contents(self, pipeline: Pipeline, uri: str) -> stored_bytes.Contents:
        contents = stored_bytes.of_rows(pipeline) | stored_bytes.of_export(pipeline)
        contents |= {"fake index": repr(self._fake.rows).encode()}
        if self._redis is not None:
            contents |= stored_bytes.of_redis(self._redis)
        if self.storage == "postgres":
            contents |= stored_bytes.of_postgres(uri)
        if self.receiver is not None:
            assert self.receiver.requests
            bodies = [request.body for request in self.receiver.requests]
            contents |= {"deliveries": b"\n".join(bodies)}
        return contents | stored_bytes.of_files(self.folder)

    def _check_remainder(self, history: History) -> None:
        folder = self.folder / "other"
        folder.mkdir()
        with opened("memory://", folder) as pipeline:
            other = History(pipeline, history.plan, whole=False, waits=history.waits)
            other.perform()
            assert states.state_of(history) == states.state_of(other)


def check_erased(plan: Plan, pipeline: Pipeline, contents: stored_bytes.Contents) -> None:
    erased_markers, other_markers = plan.erased_markers(), plan.kept_markers()
    left = stored_bytes.occurrences(erased_markers, contents)
    assert not left, left
    assert not [marker for marker in erased_markers if states.searched(pipeline, marker)]
    assert [marker for marker in other_markers if not states.searched(pipeline, marker)] == []
    if other_markers:
        assert stored_bytes.occurrences(other_markers[:1], contents), (
            "the search finds what is there"
        )
    assert states.index_differences(pipeline) == []
    assert states.unfounded(pipeline) == []
    assert states.open_erasures(pipeline) == []
