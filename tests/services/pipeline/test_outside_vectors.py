"""Vectors that work in progress adds to an index outside the storage while their rows are erased:
none is left when the receipt is `done`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.services import deletion
from memservice.services.erasure import mentions, messages, peers
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorRow
from memservice.worker import runner
from support.erasure.kills import Crash
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

pytestmark = pytest.mark.every_storage("sqlite")

OpenPipeline = Callable[..., Pipeline]
SECONDS = 20.0


class PausingIndex(ExternalIndex):
    """Its next `upsert` waits, and may be the last act of its process."""

    def __init__(self) -> None:
        super().__init__()
        self.crashes = False
        self.pauses = False
        self.paused, self.resumed = threading.Event(), threading.Event()
        self.deleted = self.dropped = False

    def upsert(self, tx: Transaction | None, space: r.Space, rows: Sequence[VectorRow]) -> None:
        if not self.pauses:
            return super().upsert(tx, space, rows)
        self.pauses = False
        self.paused.set()
        assert self.resumed.wait(SECONDS)
        super().upsert(tx, space, rows)
        if self.crashes:
            raise Crash

    def delete(self, tx: Transaction | None, space: r.Space, keys: Sequence[int]) -> None:
        super().delete(tx, space, keys)
        self.deleted = True

    def drop(self, tx: Transaction | None, space: r.Space) -> None:
        super().drop(tx, space)
        self.dropped = True


class Embedding:
    """Work that adds vectors, in a thread of its own, paused just before it does."""

    def __init__(self, pipeline: Pipeline, index: PausingIndex) -> None:
        index.pauses = True
        self.index = index
        unit = pipeline.unit(kinds.EMBED)
        self._thread = threading.Thread(target=self._run, args=(pipeline, unit))
        self._thread.start()
        assert index.paused.wait(SECONDS)

    def _run(self, pipeline: Pipeline, unit: str) -> None:
        try:
            pipeline.run(unit)
        except Crash:
            return

    def finish(self) -> None:
        self.index.resumed.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def opened(open_pipeline: OpenPipeline, index: ExternalIndex) -> Pipeline:
    embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
    return open_pipeline(embedder, index, EMBEDDER="lengths", VECTOR_STORE_TYPE="outside")


def erase(pipeline: Pipeline, what: str, message: r.Message) -> str:
    """The uid of the receipt."""
    rt = pipeline.rt
    if what == "message":
        return messages.delete(rt, PRINCIPAL, WORKSPACE, "s", message.uid).uid
    if what == "peer":
        return peers.erase(rt, PRINCIPAL, WORKSPACE, "alice").uid
    if what == "session":
        deletion.delete_session(rt, PRINCIPAL, WORKSPACE, "s")
    else:
        deletion.delete_session(rt, PRINCIPAL, WORKSPACE, "s")
        deletion.delete_session(rt, PRINCIPAL, WORKSPACE, "kept")
        deletion.delete_workspace(rt, PRINCIPAL, WORKSPACE)
    with rt.storage.read() as tx:
        return tx.rows.page(r.Erasure)[-1].uid


def state(pipeline: Pipeline, uid: str) -> str:
    with pipeline.rt.storage.read() as tx:
        row = tx.erasures.by_uid(uid)
    assert row is not None
    return row.state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "crashes"),
    [
        pytest.param(
            what, crashes, marks=() if crashes == is_tried_with_crash else pytest.mark.heavy
        )
        for what, is_tried_with_crash in (
            ("message", True),
            ("peer", False),
            ("session", True),
            ("workspace", False),
        )
        for crashes in (False, True)
    ],
)
def test_work_in_progress_leaves_no_vector(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch, what: str, crashes: bool
) -> None:
    index = PausingIndex()
    pipeline = opened(open_pipeline, index)
    pipeline.say("kept", ("bob", "I like tea."))
    pipeline.work()
    (message_row,) = [row for row in index.rows.values() if row.author is not None]
    (message,) = pipeline.say("s", ("alice", "I own a quokka."))
    index.crashes, index.deleted = crashes, False
    embedding = Embedding(pipeline, index)
    uid = erase(pipeline, what, message)
    prepare = runner._prepare

    def preparing(rt: Any, handler: Any, tasks: Any) -> Any:
        prepared = prepare(rt, handler, tasks)
        is_removed = index.dropped if what == "workspace" else index.deleted
        if is_removed and handler.kind == kinds.ERASE:
            embedding.finish()  # between the removal of vectors and that of rows
        return prepared

    with monkeypatch.context() as patched:
        patched.setattr(runner, "_prepare", preparing)
        for unit in pipeline.ready():
            if unit.startswith(f"erase:{'workspace' if what == 'workspace' else ''}"):
                pipeline.run(unit)
    embedding.finish()
    pipeline.clock.advance(hours=1)
    pipeline.work()
    assert state(pipeline, uid) == r.FINISHED, [
        task.last_error for task in pipeline.tasks(kinds.ERASE)
    ]
    left = {row.uid for row in index.rows.values() if row.author is not None}
    assert left == (set() if what == "workspace" else {message_row.uid})
    with pipeline.rt.storage.read() as tx:
        assert not tx.rows.page(r.Lease)
        spaces = {space.key for space in tx.rows.page(r.Space)}
    assert {space for space, _ in index.rows} <= spaces


@pytest.mark.slow
@pytest.mark.parametrize("what", ["message", "peer", "session", "workspace"])
def test_a_receipt_waits_for_work_in_progress(open_pipeline: OpenPipeline, what: str) -> None:
    index = PausingIndex()
    pipeline = opened(open_pipeline, index)
    pipeline.say("kept", ("bob", "I like tea."))
    pipeline.work()
    (message,) = pipeline.say("s", ("alice", "I own a quokka."))
    embedding = Embedding(pipeline, index)
    try:
        uid = erase(pipeline, what, message)
        for unit in pipeline.ready():
            if unit.startswith("erase:"):
                pipeline.run(unit)
        assert state(pipeline, uid) != r.FINISHED
    finally:
        embedding.finish()
    pipeline.work()
    assert state(pipeline, uid) == r.FINISHED


@pytest.mark.slow
def test_a_vector_of_a_text_with_mentions_is_not_left(open_pipeline: OpenPipeline) -> None:
    index = PausingIndex()
    pipeline = opened(open_pipeline, index)
    pipeline.say("s", ("alice", "Hi."))
    pipeline.work()
    (message,) = pipeline.say("s", ("bob", "I met Alice there, and it rained all day."))
    embedding = Embedding(pipeline, index)
    erasure = peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", mentions.REDACT)
    (unit,) = [unit for unit in pipeline.ready() if unit.startswith("erase:")]
    pipeline.run(unit)
    embedding.finish()
    pipeline.work()
    assert state(pipeline, erasure.uid) == r.FINISHED
    with pipeline.rt.storage.read() as tx:
        (stored,) = tx.rows.page(r.Message, equals(key=message.key))
    assert stored.content == "I met [erased] there, and it rained all day."
    (vector,) = [row.vector for row in index.rows.values() if row.uid == message.uid]
    (expected,) = LengthEmbedder().embed([stored.content])
    assert (vector == expected).all()
