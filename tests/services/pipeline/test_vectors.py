"""Vectors that are not for the request path: embedders that take their time, indexes outside the
storage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from memservice.domain.records import Document, Space
from memservice.services import conclusions, indexing
from memservice.services.conclusions import ConclusionDraft
from memservice.services.tasks import kinds, outbox
from memservice.spi.capabilities import Capability
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


def vectors(pipeline: Pipeline, kind: str = "conclusion") -> int:
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(Space)
        return sum(
            pipeline.rt.vectors.count(pipeline.rt.beside(tx), space)
            for space in rows
            if space.kind == kind
        )


def test_a_slow_embedder_is_called_by_a_task(open_pipeline: OpenPipeline) -> None:
    embedder = LengthEmbedder()
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."))
    report = pipeline.run(pipeline.unit())
    assert report.done == 1
    assert embedder.calls == []
    (task,) = pipeline.tasks(kinds.EMBED)
    (conclusion,) = pipeline.conclusions("alice")
    assert (task.state, task.payload["keys"]) == ("pending", [conclusion.key])
    assert vectors(pipeline) == 0
    pipeline.work()
    assert embedder.calls == [["I like tea."]]
    assert vectors(pipeline) == 1
    assert pipeline.tasks(kinds.EMBED)[0].outcome == {"embedded": 1}


def test_rows_without_vectors_are_found_by_text(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(LengthEmbedder(), EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    conclusions.create(
        pipeline.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft("Alice owns a boat.", "alice", "alice")]
    )
    pair = {"observer": "alice", "observed": "alice"}
    hits = conclusions.query(pipeline.rt, PRINCIPAL, WORKSPACE, "boat", 2, filters=pair)
    assert {c.content for c in hits} == {"I like tea.", "Alice owns a boat."}


def test_messages_get_vectors_only_from_a_semantic_embedder(open_pipeline: OpenPipeline) -> None:
    embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."), ("alice", " "), ("bob", "I own a boat."))
    pipeline.work()
    assert vectors(pipeline, "message") == 2
    assert ["I like tea.", "I own a boat."] in embedder.calls


def test_messages_get_no_vectors_if_that_is_switched_off(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(
        LengthEmbedder("lengths-1", Capability.SEMANTIC), EMBEDDER="lengths", EMBED_MESSAGES="false"
    )
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    assert (vectors(pipeline, "message"), vectors(pipeline)) == (0, 1)


def test_an_outside_index_is_written_after_commit_without_a_transaction(
    open_pipeline: OpenPipeline,
) -> None:
    index = ExternalIndex()
    pipeline = open_pipeline(index, VECTOR_STORE_TYPE="outside")
    pipeline.say("s", ("alice", "I like tea.\nI own a boat."))
    pipeline.run(pipeline.unit())
    assert index.rows == {}
    pipeline.work()
    indexed = {(row.key, row.uid, row.observer, row.observed) for row in index.rows.values()}
    assert indexed == {
        (c.key, c.uid, c.observer_key, c.observed_key) for c in pipeline.conclusions("alice")
    }
    pair = {"observer": "alice", "observed": "alice"}
    assert [
        c.content
        for c in conclusions.query(pipeline.rt, PRINCIPAL, WORKSPACE, "boats", 1, filters=pair)
    ] == ["I own a boat."]


def test_deleted_rows_are_removed_from_an_outside_index(open_pipeline: OpenPipeline) -> None:
    index = ExternalIndex()
    pipeline = open_pipeline(index, VECTOR_STORE_TYPE="outside")
    pipeline.say("s", ("alice", "I like tea.\nI own a boat."))
    pipeline.work()
    tea, boat = pipeline.conclusions("alice")
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, tea.uid)
    pipeline.work()
    assert {row.uid for row in index.rows.values()} == {boat.uid}


@pytest.mark.parametrize("index_state", ["holds the deleted row", "is away", "lacks the new row"])
def test_stale_vectors_do_not_hide_the_nearest_live_conclusion(
    open_pipeline: OpenPipeline, index_state: str
) -> None:
    index = ExternalIndex()
    pipeline = open_pipeline(index, VECTOR_STORE_TYPE="outside")
    pipeline.say("s", ("alice", "I sing.\nI dance in clubs.\nI own a boat."))
    if index_state == "lacks the new row":
        pipeline.run(pipeline.unit())
    else:
        pipeline.work()
    deleted, dance, boat = pipeline.conclusions("alice")
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, deleted.uid)
    index.away = index_state == "is away"

    pair = {"observer": "alice", "observed": "alice"}
    hits = conclusions.query(pipeline.rt, PRINCIPAL, WORKSPACE, "dancing clubbing", 2, filters=pair)
    assert [conclusion.uid for conclusion in hits] == [dance.uid, boat.uid]


def test_a_failing_embedder_is_retried_later(open_pipeline: OpenPipeline) -> None:
    embedder = LengthEmbedder()
    embedder.fails = 2
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    (task,) = pipeline.tasks(kinds.EMBED)
    assert (task.attempts, task.last_error) == (1, "ConnectionError: the embedder is away")
    assert pipeline.texts("alice") == ["I like tea."]
    for _ in range(2):
        pipeline.clock.advance(minutes=3)
        pipeline.work()
    (task,) = pipeline.tasks(kinds.EMBED)
    assert (task.state, task.attempts) == ("done", 2)
    assert vectors(pipeline) == 1


def test_embedding_again_changes_nothing(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(LengthEmbedder(), EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    (task,) = pipeline.tasks(kinds.EMBED)
    again = outbox.embed(
        pipeline.rt, task.payload["kind"], task.workspace_key or 0, task.payload["keys"]
    )
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([again]))
    pipeline.work()
    assert vectors(pipeline) == 1
    assert pipeline.tasks(kinds.EMBED)[1].state == "done"


def test_erased_rows_need_no_vectors(open_pipeline: OpenPipeline) -> None:
    embedder = LengthEmbedder()
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.run(pipeline.unit())
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, pipeline.conclusions("alice")[0].uid)
    pipeline.work()
    assert embedder.calls == []
    assert pipeline.tasks(kinds.EMBED)[0].outcome["skipped"]


def test_a_space_of_an_embedder_that_this_process_cannot_open_is_not_written_to(
    open_pipeline: OpenPipeline,
) -> None:
    pipeline = open_pipeline(LengthEmbedder(), EMBEDDER="lengths", WORKER_MAX_ATTEMPTS="1")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.run(pipeline.unit())
    key = pipeline.tasks()[0].workspace_key or 0
    other = Space(
        workspace_key=key,
        kind="conclusion",
        embedder="other-9",
        dimension=2,
        state="active",
        created_at=pipeline.clock(),
    )
    pipeline.rt.storage.write(lambda tx: tx.spaces.save(other))
    pipeline.work()
    (task,) = pipeline.tasks(kinds.EMBED)
    assert task.state == "failed"
    assert task.last_error is not None
    assert "other-9" in task.last_error
    assert "lengths-1" in task.last_error
    assert vectors(pipeline) == 0
    pair = {"observer": "alice", "observed": "alice"}
    assert len(conclusions.query(pipeline.rt, PRINCIPAL, WORKSPACE, "tea", 1, filters=pair)) == 1, (
        "text answers all the same"
    )


def test_document_vectors_of_another_dimension_are_left_to_a_task(
    open_pipeline: OpenPipeline,
) -> None:
    """An embedder may change its dimension and keep its name."""
    pipeline = open_pipeline(LengthEmbedder(), EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."))
    key = pipeline.tasks()[0].workspace_key or 0
    document = Document(
        key=1,
        uid="d",
        workspace_key=key,
        owner_key=1,
        collection_key=1,
        content="tea",
        created_at=pipeline.clock(),
    )
    vector = np.ones(pipeline.rt.embedder.dimension + 1, np.float32)
    (task,) = pipeline.rt.storage.write(
        lambda tx: indexing.index_documents(pipeline.rt, tx, key, [document], [vector])
    )
    assert (task.kind, task.payload["keys"]) == (kinds.EMBED, [1])
