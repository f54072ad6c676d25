"""The vector index and the rows are compared, and made to agree again; an index that is away costs
delay and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memservice.domain.filters import equals
from memservice.domain.records import Conclusion, Space, Task
from memservice.pipeline.indexing import reconcile
from memservice.services import conclusions
from memservice.services.conclusions import ConclusionDraft
from memservice.services.tasks import kinds, outbox
from memservice.spi.capabilities import Capability
from memservice.spi.storage import Pooled, PoolState
from memservice.spi.vectors import VectorHit, VectorRow
from memservice.telemetry.events import SyncVectorsCompleted
from memservice.worker.housekeeping import Housekeeping
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]
PAIR = {"observer": "alice", "observed": "alice"}
INTERVAL = 300.0


@pytest.fixture
def index() -> ExternalIndex:
    return ExternalIndex()


@pytest.fixture
def pipeline(open_pipeline: OpenPipeline, index: ExternalIndex) -> Pipeline:
    pipeline_opened = open_pipeline(index, VECTOR_STORE_TYPE="outside")
    pipeline_opened.say("s", ("alice", "I like tea.\nI own a boat.\nI live in Ghent."))
    pipeline_opened.work()
    assert len(index.rows) == 3
    return pipeline_opened


def sync_events(pipeline: Pipeline) -> list[SyncVectorsCompleted]:
    events: list[SyncVectorsCompleted] = []
    pipeline.rt.events.on_event(
        lambda event, at: events.append(event) if isinstance(event, SyncVectorsCompleted) else None
    )
    return events


def compare(pipeline: Pipeline) -> None:
    """A whole round, and the work that comes of it."""
    pipeline.clock.advance(seconds=INTERVAL)
    while reconcile.run(pipeline.rt) == 0.0:
        pass
    pipeline.work()


def keys(index: ExternalIndex) -> set[int]:
    return {key for _, key in index.rows}


def live(pipeline: Pipeline) -> set[int]:
    return {conclusion.key for conclusion in pipeline.conclusions("alice")}


def texts(pipeline: Pipeline, query: str) -> list[str]:
    return [
        conclusion.content
        for conclusion in conclusions.query(
            pipeline.rt, PRINCIPAL, WORKSPACE, query, 5, filters=PAIR
        )
    ]


def test_consistent_vectors_are_not_changed(pipeline: Pipeline, index: ExternalIndex) -> None:
    events = sync_events(pipeline)
    compare(pipeline)
    assert (pipeline.tasks(kinds.REPAIR), events) == ([], [])


def test_deleting_vectors_skips_live_rows(pipeline: Pipeline, index: ExternalIndex) -> None:
    conclusion = pipeline.conclusions("alice")[0]
    task = outbox.delete_vectors(
        pipeline.rt, "conclusion", conclusion.workspace_key, [conclusion.key]
    )
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([task]))
    pipeline.work()
    assert [task.state for task in pipeline.tasks(kinds.DELETE_VECTORS)] == ["done"]
    assert keys(index) == live(pipeline)


def test_missing_vectors_are_created_and_orphans_removed(
    pipeline: Pipeline, index: ExternalIndex
) -> None:
    events = sync_events(pipeline)
    (space, missing), (_, other), _ = sorted(index.rows)
    orphan = index.rows.pop((space, missing))
    index.rows.pop((space, other))
    index.rows[space, 9_999] = VectorRow(9_999, "x", orphan.vector)
    compare(pipeline)
    assert keys(index) == live(pipeline)
    (task,) = pipeline.tasks(kinds.REPAIR)
    assert (task.state, task.outcome["synced"], task.outcome["cleaned"]) == ("done", 2, 1)
    assert task.unit == pipeline.tasks(kinds.EMBED)[0].unit
    (event,) = events
    assert (event.documents_synced, event.documents_cleaned, event.documents_failed) == (2, 1, 0)
    assert (event.message_embeddings_synced, event.message_embeddings_failed) == (0, 0)
    assert event.total_duration_ms > 0
    compare(pipeline)
    assert len(pipeline.tasks(kinds.REPAIR)) == 1


def test_an_emptied_index_is_filled_again_in_batches(
    pipeline: Pipeline, index: ExternalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "BATCH_SIZE", 2)
    monkeypatch.setattr("memservice.pipeline.indexing.embed.MAX_ROWS", 1)
    index.rows.clear()
    compare(pipeline)
    assert keys(index) == live(pipeline)
    assert [len(task.payload["keys"]) for task in pipeline.tasks(kinds.REPAIR)] == [1, 1], (
        "what is left of them: the last step's"
    )
    assert pipeline.outcome("synced") == 3


def test_the_comparison_stops_at_the_lower_end_of_both_batches(
    pipeline: Pipeline, index: ExternalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Portions of both sides end at different keys where one side lacks some: beyond the lower end
    nothing is known."""
    monkeypatch.setattr(reconcile, "BATCH_SIZE", 2)
    (space_key, _), (_, second), (_, third) = sorted(index.rows)
    with pipeline.rt.storage.read() as tx:
        (space,) = [space for space in tx.rows.page(Space) if space.key == space_key]
    without = index.rows.pop((space_key, second))
    assert reconcile.compare(pipeline.rt, space, 0) == reconcile.Compared([second], [], second), (
        "the third has a row further on"
    )
    index.rows[space_key, second] = without
    pipeline.rt.storage.write(lambda tx: tx.rows.delete(Conclusion, equals(key=second)))
    assert reconcile.compare(pipeline.rt, space, 0) == reconcile.Compared([], [second], second), (
        "the third has a vector further on"
    )
    assert reconcile.compare(pipeline.rt, space, second) == reconcile.Compared([], [], None)
    assert third in keys(index)


def test_a_round_continues_where_it_stopped(
    pipeline: Pipeline, index: ExternalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "BATCH_SIZE", 1)
    monkeypatch.setattr(reconcile, "TIME_SLICE_SECONDS", 0.0)
    real, steps = reconcile._step, []

    def one_step(rt: Any, progress: Any) -> Any:
        steps.append((progress.space, progress.after))
        return real(rt, progress)

    monkeypatch.setattr(reconcile, "_step", one_step)
    index.rows.clear()
    pipeline.clock.advance(seconds=INTERVAL)
    assert reconcile.run(pipeline.rt) == 0.0
    assert len(steps) == 1
    with pipeline.rt.storage.read() as tx:
        position = json.loads(tx.facts.get(reconcile.FACT) or "")
    assert (position["ended"], position["after"]) == (None, min(live(pipeline)))
    while reconcile.run(pipeline.rt) == 0.0:
        pass
    assert len(set(steps)) == len(steps), "nothing is compared twice"


def test_only_one_process_compares(pipeline: Pipeline, index: ExternalIndex) -> None:
    index.rows.clear()
    pipeline.clock.advance(seconds=INTERVAL)
    lease = pipeline.rt.storage.write(
        lambda tx: tx.tasks.claim(reconcile.UNIT, "another", pipeline.clock(), 60)
    )
    assert lease is not None
    assert reconcile.run(pipeline.rt) == INTERVAL
    assert pipeline.tasks(kinds.REPAIR) == []
    pipeline.rt.storage.write(lambda tx: tx.tasks.release(lease))
    compare(pipeline)
    assert keys(index) == live(pipeline)


def test_nothing_is_compared_between_rounds(pipeline: Pipeline, index: ExternalIndex) -> None:
    compare(pipeline)
    calls = index.calls
    assert 0 < reconcile.run(pipeline.rt) <= INTERVAL
    housekeeping = Housekeeping(pipeline.rt)
    housekeeping.run_due()
    housekeeping.run_due()
    assert index.calls == calls


def test_rows_whose_task_is_pending_are_not_missing(
    pipeline: Pipeline, index: ExternalIndex
) -> None:
    index.away = True
    conclusions.create(
        pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft("Alice sings.", "alice", "alice")]
    )
    pipeline.work()
    assert pipeline.tasks(kinds.EMBED, state="pending")
    index.away = False
    pipeline.clock.advance(seconds=1)
    while reconcile.run(pipeline.rt) == 0.0:
        pass
    assert pipeline.tasks(kinds.REPAIR) == []


def test_a_restored_row_keeps_its_vector(pipeline: Pipeline, index: ExternalIndex) -> None:
    (space,) = {space for space, _ in index.rows}
    some = sorted(keys(index))
    task = outbox.repair(
        pipeline.rt, "conclusion", pipeline.tasks(kinds.EMBED)[0].workspace_key or 0, [], some
    )
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([task]))
    pipeline.work()
    assert sorted(keys(index)) == some
    assert {pipeline for pipeline, _ in index.rows} == {space}


def test_texts_without_a_vector_are_not_missing(pipeline: Pipeline, index: ExternalIndex) -> None:
    conclusions.create(
        pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft("!!!", "alice", "alice")]
    )
    pipeline.work()
    assert len(live(pipeline)) == 4
    assert len(index.rows) == 3
    compare(pipeline)
    assert pipeline.tasks(kinds.REPAIR) == []


@pytest.mark.slow
def test_missing_vectors_inside_the_storage_are_repaired(open_pipeline: OpenPipeline) -> None:
    embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
    pipeline = open_pipeline(embedder, EMBEDDER="lengths", WORKER_MAX_ATTEMPTS="1")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    embedder.fails = 10
    pipeline.say("s", ("alice", "I own a boat."))
    pipeline.work()
    assert {task.state for task in pipeline.tasks(kinds.EMBED)} == {"done", "failed"}
    events = sync_events(pipeline)
    embedder.fails = 0
    compare(pipeline)
    with pipeline.rt.storage.read() as tx:
        assert [pipeline.rt.vectors.count(tx, space) for space in tx.rows.page(Space)] == [2, 2]
    assert sorted(
        (event.documents_synced, event.message_embeddings_synced) for event in events
    ) == [(0, 1), (1, 0)]


def test_a_failed_repair_is_reported(open_pipeline: OpenPipeline, index: ExternalIndex) -> None:
    embedder = LengthEmbedder()
    pipeline = open_pipeline(
        embedder, index, EMBEDDER="lengths", VECTOR_STORE_TYPE="outside", WORKER_MAX_ATTEMPTS="1"
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    index.rows.clear()
    embedder.fails = 10
    events = sync_events(pipeline)
    compare(pipeline)
    assert [(event.documents_synced, event.documents_failed) for event in events] == [(0, 1)]


# An index that is away


@pytest.mark.slow
def test_writes_and_text_search_work_while_the_index_is_unreachable(
    pipeline: Pipeline, index: ExternalIndex
) -> None:
    index.away = True
    conclusions.create(
        pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft("Alice sings.", "alice", "alice")]
    )
    pipeline.say("s", ("alice", "I keep bees."))
    pipeline.work()
    assert "I keep bees." in pipeline.texts("alice")
    assert texts(pipeline, "bees")[0] == "I keep bees."
    pending = pipeline.tasks(kinds.EMBED, state="pending")
    assert pending
    assert pending[0].last_error == "IndexUnavailable: the index is away"
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, pipeline.conclusions("alice")[0].uid)
    pipeline.work()
    for _ in range(40):  # far longer than a task that fails by itself is tried
        pipeline.clock.advance(seconds=61)
        pipeline.work()
    assert {task.state for task in pipeline.tasks(kinds.EMBED)} == {"done", "pending"}, (
        "none of them rests"
    )
    index.away = False
    pipeline.clock.advance(seconds=73)
    pipeline.work()
    assert keys(index) == live(pipeline)
    assert {task.state for task in pipeline.tasks(None)} == {"done"}


def test_an_unreachable_index_is_not_called_by_every_search(
    pipeline: Pipeline, index: ExternalIndex
) -> None:
    index.away = True
    before = index.calls
    for _ in range(10):
        assert texts(pipeline, "tea")
    assert index.calls == before + 1
    index.away = False
    pipeline.rt.vector_calls.record_success("the vector index")
    texts(pipeline, "tea")
    assert index.calls > before + 1


def test_no_connection_is_open_during_a_call_of_the_index(open_pipeline: OpenPipeline) -> None:
    class Looks(ExternalIndex):
        pooled: Pooled
        pool_states: list[PoolState | None]

        def query(self, *args: Any, **options: Any) -> list[VectorHit]:
            self.pool_states.append(self.pooled.pool())
            return super().query(*args, **options)

    index = Looks()
    index.pool_states = []
    pipeline = open_pipeline(index, VECTOR_STORE_TYPE="outside")
    storage: object = pipeline.rt.storage
    if not isinstance(storage, Pooled):
        pytest.skip("this storage has no connections")
    index.pooled = storage
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    index.pool_states.clear()
    assert texts(pipeline, "tea") == ["I like tea."]
    assert [state.in_use for state in index.pool_states if state is not None] == [0]


def test_a_search_waits_for_a_hanging_index_within_the_timeout(open_pipeline: OpenPipeline) -> None:
    class Hangs(ExternalIndex):
        answers = threading.Event()
        waited_to_the_end = False

        def query(self, *args: Any, **options: Any) -> list[VectorHit]:
            self.waited_to_the_end |= not self.answers.wait(30)
            return super().query(*args, **options)

    index = Hangs()
    index.answers.set()
    pipeline = open_pipeline(
        index, VECTOR_STORE_TYPE="outside", VECTOR_STORE_QUERY_TIMEOUT_SECONDS="0.1"
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    index.answers.clear()
    assert texts(pipeline, "tea") == ["I like tea."]
    index.answers.set()
    assert not index.waited_to_the_end


def test_a_round_with_an_unreachable_index_is_retried_later(
    pipeline: Pipeline, index: ExternalIndex, caplog: pytest.LogCaptureFixture
) -> None:
    index.rows.clear()
    index.away = True
    compare(pipeline)
    assert "the index is away" in caplog.text
    assert pipeline.tasks(kinds.REPAIR) == []
    index.away = False
    compare(pipeline)
    assert keys(index) == live(pipeline)


def test_an_unreachable_index_causes_no_calls_of_the_embedder(
    open_pipeline: OpenPipeline, index: ExternalIndex
) -> None:
    embedder = LengthEmbedder()
    pipeline = open_pipeline(embedder, index, EMBEDDER="lengths", VECTOR_STORE_TYPE="outside")
    index.away = True
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    for _ in range(5):
        pipeline.clock.advance(seconds=75)
        pipeline.work()
    (task,) = pipeline.tasks(kinds.EMBED)
    assert (task.attempts, len(embedder.calls)) == (6, 1)
    assert isinstance(task, Task)
    index.away = False
    pipeline.clock.advance(seconds=75)
    pipeline.work()
    assert len(index.rows) == 1
    assert np.isfinite(next(iter(index.rows.values())).vector).all()
