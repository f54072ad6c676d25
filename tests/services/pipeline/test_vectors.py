"""Vectors that are not for the request path: embedders that take their time, indexes outside the
storage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memservice.domain.records import Space
from memservice.services import conclusions
from memservice.services.conclusions import ConclusionDraft
from memservice.services.tasks import kinds, outbox
from memservice.spi.capabilities import Capability
from support.pipeline.fakes import Lengths, Outside
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

Start = Callable[..., Place]


def vectors(place: Place, kind: str = "conclusion") -> int:
    with place.rt.storage.read() as tx:
        found = tx.rows.page(Space)
        return sum(
            place.rt.vectors.count(place.rt.beside(tx), space)
            for space in found
            if space.kind == kind
        )


def test_a_slow_embedder_is_called_by_a_task(start: Start) -> None:
    embedder = Lengths()
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."))
    report = place.run(place.unit())
    assert report.done == 1
    assert embedder.asked == []
    (task,) = place.tasks(kinds.EMBED)
    (found,) = place.conclusions("alice")
    assert (task.state, task.payload["keys"]) == ("pending", [found.key])
    assert vectors(place) == 0
    place.work()
    assert embedder.asked == [["I like tea."]]
    assert vectors(place) == 1
    assert place.tasks(kinds.EMBED)[0].outcome == {"embedded": 1}


def test_rows_without_vectors_are_found_by_text(start: Start) -> None:
    place = start(Lengths(), EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."))
    place.work()
    conclusions.create(
        place.rt, PRINCIPAL, WORKSPACE, [ConclusionDraft("Alice owns a boat.", "alice", "alice")]
    )
    pair = {"observer": "alice", "observed": "alice"}
    found = conclusions.query(place.rt, PRINCIPAL, WORKSPACE, "boat", 2, filters=pair)
    assert {c.content for c in found} == {"I like tea.", "Alice owns a boat."}


def test_messages_get_vectors_only_from_a_semantic_embedder(start: Start) -> None:
    embedder = Lengths("lengths-1", Capability.SEMANTIC)
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."), ("alice", " "), ("bob", "I own a boat."))
    place.work()
    assert vectors(place, "message") == 2
    assert ["I like tea.", "I own a boat."] in embedder.asked


def test_messages_get_no_vectors_if_that_is_switched_off(start: Start) -> None:
    place = start(
        Lengths("lengths-1", Capability.SEMANTIC), EMBEDDER="lengths", EMBED_MESSAGES="false"
    )
    place.say("s", ("alice", "I like tea."))
    place.work()
    assert (vectors(place, "message"), vectors(place)) == (0, 1)


def test_an_outside_index_is_written_after_commit_without_a_transaction(start: Start) -> None:
    index = Outside()
    place = start(index, VECTOR_STORE_TYPE="outside")
    place.say("s", ("alice", "I like tea.\nI own a boat."))
    place.run(place.unit())
    assert index.rows == {}
    place.work()
    held = {(row.key, row.uid, row.observer, row.observed) for row in index.rows.values()}
    assert held == {
        (c.key, c.uid, c.observer_key, c.observed_key) for c in place.conclusions("alice")
    }
    pair = {"observer": "alice", "observed": "alice"}
    assert [
        c.content
        for c in conclusions.query(place.rt, PRINCIPAL, WORKSPACE, "boats", 1, filters=pair)
    ] == ["I own a boat."]


def test_deleted_rows_are_removed_from_an_outside_index(start: Start) -> None:
    index = Outside()
    place = start(index, VECTOR_STORE_TYPE="outside")
    place.say("s", ("alice", "I like tea.\nI own a boat."))
    place.work()
    tea, boat = place.conclusions("alice")
    conclusions.delete(place.rt, PRINCIPAL, WORKSPACE, tea.uid)
    place.work()
    assert {row.uid for row in index.rows.values()} == {boat.uid}


@pytest.mark.parametrize("index_state", ["holds the deleted row", "is away", "lacks the new row"])
def test_stale_vectors_do_not_hide_the_nearest_live_conclusion(
    start: Start, index_state: str
) -> None:
    index = Outside()
    place = start(index, VECTOR_STORE_TYPE="outside")
    place.say("s", ("alice", "I sing.\nI dance in clubs.\nI own a boat."))
    if index_state == "lacks the new row":
        place.run(place.unit())
    else:
        place.work()
    deleted, dance, boat = place.conclusions("alice")
    conclusions.delete(place.rt, PRINCIPAL, WORKSPACE, deleted.uid)
    index.away = index_state == "is away"

    pair = {"observer": "alice", "observed": "alice"}
    found = conclusions.query(place.rt, PRINCIPAL, WORKSPACE, "dancing clubbing", 2, filters=pair)
    assert [conclusion.uid for conclusion in found] == [dance.uid, boat.uid]


def test_a_failing_embedder_is_retried_later(start: Start) -> None:
    embedder = Lengths()
    embedder.fails = 2
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."))
    place.work()
    (task,) = place.tasks(kinds.EMBED)
    assert (task.attempts, task.last_error) == (1, "ConnectionError: the embedder is away")
    assert place.texts("alice") == ["I like tea."]
    for _ in range(2):
        place.clock.advance(minutes=3)
        place.work()
    (task,) = place.tasks(kinds.EMBED)
    assert (task.state, task.attempts) == ("done", 2)
    assert vectors(place) == 1


def test_embedding_again_changes_nothing(start: Start) -> None:
    place = start(Lengths(), EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."))
    place.work()
    (task,) = place.tasks(kinds.EMBED)
    again = outbox.embed(
        place.rt, task.payload["kind"], task.workspace_key or 0, task.payload["keys"]
    )
    place.rt.storage.write(lambda tx: tx.tasks.add([again]))
    place.work()
    assert vectors(place) == 1
    assert place.tasks(kinds.EMBED)[1].state == "done"


def test_erased_rows_need_no_vectors(start: Start) -> None:
    embedder = Lengths()
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."))
    place.run(place.unit())
    conclusions.delete(place.rt, PRINCIPAL, WORKSPACE, place.conclusions("alice")[0].uid)
    place.work()
    assert embedder.asked == []
    assert place.tasks(kinds.EMBED)[0].outcome["skipped"]


def test_a_space_of_an_embedder_that_this_process_cannot_open_is_not_written_to(
    start: Start,
) -> None:
    place = start(Lengths(), EMBEDDER="lengths", WORKER_MAX_ATTEMPTS="1")
    place.say("s", ("alice", "I like tea."))
    place.run(place.unit())
    key = place.tasks()[0].workspace_key or 0
    other = Space(
        workspace_key=key,
        kind="conclusion",
        embedder="other-9",
        dimension=2,
        state="active",
        created_at=place.clock(),
    )
    place.rt.storage.write(lambda tx: tx.spaces.save(other))
    place.work()
    (task,) = place.tasks(kinds.EMBED)
    assert task.state == "failed"
    assert task.last_error is not None
    assert "other-9" in task.last_error
    assert "lengths-1" in task.last_error
    assert vectors(place) == 0
    pair = {"observer": "alice", "observed": "alice"}
    assert len(conclusions.query(place.rt, PRINCIPAL, WORKSPACE, "tea", 1, filters=pair)) == 1, (
        "text answers all the same"
    )
