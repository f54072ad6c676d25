"""What cloning a session leaves for the worker: texts of long sessions, and vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain.errors import Unavailable
from memservice.domain.filters import TRUE, equals
from memservice.domain.records import ACTIVE, DELETING, Message, Session
from memservice.services import cloning, deletion
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.storage import Transaction
from support.pipeline.everything import indexed
from support.pipeline.fakes import Lengths
from support.pipeline.place import PRINCIPAL, WORKSPACE, Place

Start = Callable[..., Place]


def documents(place: Place) -> int:
    with place.rt.storage.read() as tx:
        return place.rt.storage.text.search(tx, "message", 1, ["x"], 1, EVERYTHING).documents


def test_a_short_session_is_indexed_at_once(place: Place) -> None:
    place.say("s", *(("alice", f"I own {n} apples.") for n in range(20)))
    place.work()
    cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    assert documents(place) == 40
    assert place.ready() == []


def test_a_long_session_is_indexed_from_its_end(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloning, "INDEX_BATCH_SIZE", 4)
    place.say(
        "s",
        ("alice", "There are axolotls."),
        *(("alice", f"I own {n} apples.") for n in range(9)),
        ("bob", "We met pangolins."),
    )
    place.work()
    copy = cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")

    def best(query: str) -> list[str]:
        found = search.search(
            place.rt, PRINCIPAL, WORKSPACE, SearchOptions(query), session_id=copy.slug
        )
        return [message.content for message in found if query in message.content]

    assert documents(place) == 11 + 4
    assert (best("pangolins"), best("axolotls")) == (["We met pangolins."], [])
    place.work()
    assert documents(place) == 22
    assert best("axolotls") == ["There are axolotls."]
    assert {task.kind for task in place.tasks(None) if task.outcome.get("indexed") == 7} == {
        kinds.INDEX
    }


def test_a_clone_erased_before_indexing_leaves_no_rows(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloning, "INDEX_BATCH_SIZE", 4)
    place.say("s", *(("alice", f"I own {n} apples.") for n in range(9)))
    place.work()
    copy = cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, copy.slug)
    place.run(f"erase:session:{copy.key}")
    place.work()
    assert documents(place) == 9
    assert place.tasks(kinds.INDEX)[0].outcome == {"skipped": "the messages no longer exist"}


def test_vectors_of_a_clone_are_copied(start: Start) -> None:
    embedder = Lengths("lengths-1", Capability.SEMANTIC)
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", *(("alice", f"I like tea number {n}.") for n in range(150)), ("alice", " "))
    place.work()
    asked = len(embedder.asked)
    copy = cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    place.work()
    assert len(embedder.asked) == asked
    with place.rt.storage.read() as tx:
        space = tx.spaces.active(1, "message")
        assert space is not None
        assert place.rt.vectors.count(tx, space) == 300
        old, new = tx.messages.run(1, 1, 151), tx.messages.run(copy.key, 1, 151)
        found = place.rt.vectors.fetch(tx, space, [message.key for message in (*old, *new)])
    for before, after in zip(old[:150], new[:150], strict=True):
        assert list(found[before.key]) == list(found[after.key])


def test_vectors_of_a_clone_are_computed_if_the_original_is_erased(start: Start) -> None:
    embedder = Lengths("lengths-1", Capability.SEMANTIC)
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."))
    place.work()
    cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    deletion.delete_session(place.rt, PRINCIPAL, WORKSPACE, "s")
    place.run("erase:session:1")
    place.work()
    assert embedder.asked.count(["I like tea."]) >= 2
    assert indexed(place, 1)[1] == 1


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloning, "COPY_BATCH_SIZE", 4)


def test_a_long_session_is_copied_in_batches_and_visible_when_complete(
    place: Place, portions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.say("s", *(("alice", f"I own {n} apples.") for n in range(10)))
    place.work()
    seen: list[tuple[int, int]] = []
    write = place.rt.storage.write

    def looked(change: Callable[[Transaction], Any]) -> Any:
        result = write(change)
        with place.rt.storage.read() as tx:
            visible = tx.rows.count(Session, equals(state=ACTIVE))
            seen.append((tx.rows.count(Message) - 10, visible))
        found = search.search(place.rt, PRINCIPAL, WORKSPACE, SearchOptions("apples"))
        assert len({message.session for message in found}) == visible, (
            "neither listed nor found by search before it is whole"
        )
        return result

    monkeypatch.setattr(place.rt.storage, "write", looked)
    copy = cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    assert seen == [(0, 1), (4, 1), (8, 1), (10, 2)]
    monkeypatch.undo()
    with place.rt.storage.read() as tx:
        original, copied = (
            list(tx.messages.run(tx.sessions.by_slug(1, slug).key, 1, 10))  # type: ignore[union-attr]
            for slug in ("s", copy.slug)
        )
    assert [(m.seq, m.content, m.tokens_through) for m in copied] == [
        (m.seq, m.content, m.tokens_through) for m in original
    ]
    place.work()
    assert documents(place) == 20
    assert place.tasks(kinds.ERASE) == []


def test_an_interrupted_clone_is_hidden_and_erased(
    place: Place, portions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.say("s", *(("alice", f"I own {n} apples.") for n in range(10)))
    place.work()
    write, writes = place.rt.storage.write, iter(range(3))

    def breaks_off(change: Callable[[Transaction], Any]) -> Any:
        if next(writes, None) is None:
            raise Unavailable("the process was killed")
        return write(change)

    with monkeypatch.context() as broken, pytest.raises(Unavailable):
        broken.setattr(place.rt.storage, "write", breaks_off)
        cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    with place.rt.storage.read() as tx:
        assert (tx.rows.count(Message), tx.rows.count(Session, equals(state=ACTIVE))) == (18, 1)
    (task,) = place.tasks(kinds.ERASE)
    assert task.not_before - task.created_at == cloning.ABANDONED_AFTER
    place.run(task.unit)
    with place.rt.storage.read() as tx:
        assert tx.rows.count(Message) == 18, "it may still be under way"
    place.clock.advance(hours=1)
    place.run(task.unit)
    with place.rt.storage.read() as tx:
        assert (tx.rows.count(Message), tx.rows.count(Session)) == (10, 1)


def test_an_abandoned_clone_is_not_shown_in_part(
    place: Place, portions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.say("s", *(("alice", f"I own {n} apples.") for n in range(10)))
    place.work()
    write, writes = place.rt.storage.write, iter(range(3))

    def erased(change: Callable[[Transaction], Any]) -> Any:
        if next(writes, None) is None:
            with place.rt.storage.read() as tx:
                (hidden,) = tx.rows.page(Session, equals(state=DELETING))
            write(lambda tx: tx.rows.delete(Message, equals(session_key=hidden.key, seq=1)))
        return write(change)

    with monkeypatch.context() as late, pytest.raises(Unavailable, match="took too long"):
        late.setattr(place.rt.storage, "write", erased)
        cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    with place.rt.storage.read() as tx:
        assert tx.rows.count(Session, equals(state=ACTIVE)) == 1


@pytest.mark.slow
def test_other_writers_wait_for_one_batch_of_a_long_clone_only(place: Place) -> None:
    """5,000 messages: no write stores more than a batch of them."""
    for _ in range(50):
        place.say(
            "s",
            *(
                ("alice", f"I own {n} apples and the orchard that they grow in.")
                for n in range(100)
            ),
        )
    batches, write = [], place.rt.storage.write

    def stored() -> int:
        with place.rt.storage.read() as tx:
            return tx.rows.count(Message, TRUE)

    def counted(change: Callable[[Transaction], Any]) -> Any:
        before = stored()
        try:
            return write(change)
        finally:
            batches.append(stored() - before)

    place.rt.storage.write = counted  # type: ignore[method-assign,assignment]
    cloning.clone(place.rt, PRINCIPAL, WORKSPACE, "s")
    assert sum(batches) == 5_000
    assert max(batches) <= cloning.COPY_BATCH_SIZE
