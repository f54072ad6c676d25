"""What cloning a session leaves for the worker: texts of long sessions, and vectors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memservice.services import cloning, erasure, outbox, recall
from memservice.spi.capabilities import Capability
from memservice.spi.where import EVERYTHING
from pipeline.everything import indexed
from pipeline.fakes import Lengths
from pipeline.place import WHO, WORKSPACE, Place

Start = Callable[..., Place]


def documents(place: Place) -> int:
    with place.rt.storage.read() as view:
        return place.rt.storage.text.search(view, "message", 1, ["x"], 1, EVERYTHING).documents


def test_a_short_session_is_indexed_at_once(place: Place) -> None:
    place.say("s", *(("alice", f"I own {n} apples.") for n in range(20)))
    place.work()
    cloning.clone(place.rt, WHO, WORKSPACE, "s")
    assert documents(place) == 40
    assert place.ready() == []


def test_a_long_session_is_indexed_from_its_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloning, "INDEXED_AT_ONCE", 4)
    place.say("s", ("alice", "There are axolotls."), *(("alice", f"I own {n} apples.") for n in range(9)), ("bob", "We met pangolins."))
    place.work()
    copy = cloning.clone(place.rt, WHO, WORKSPACE, "s")

    def best(query: str) -> list[str]:
        found = recall.search(place.rt, WHO, WORKSPACE, query, session=copy.slug)
        return [message.content for message in found if query in message.content]

    assert documents(place) == 11 + 4
    assert (best("pangolins"), best("axolotls")) == (["We met pangolins."], [])
    place.work()
    assert documents(place) == 22
    assert best("axolotls") == ["There are axolotls."]
    assert {task.kind for task in place.tasks(None) if task.outcome.get("indexed") == 7} == {outbox.INDEX}


def test_a_clone_that_is_erased_before_it_is_indexed_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloning, "INDEXED_AT_ONCE", 4)
    place.say("s", *(("alice", f"I own {n} apples.") for n in range(9)))
    place.work()
    copy = cloning.clone(place.rt, WHO, WORKSPACE, "s")
    erasure.delete_session(place.rt, WHO, WORKSPACE, copy.slug)
    place.run(f"erase:session:{copy.key}")
    place.work()
    assert documents(place) == 9
    assert place.tasks(outbox.INDEX)[0].outcome == {"skipped": "the messages are gone"}


def test_vectors_of_a_clone_are_copied_not_made(start: Start) -> None:
    embedder = Lengths("lengths-1", Capability.SEMANTIC)
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", *(("alice", f"I like tea number {n}.") for n in range(150)), ("alice", " "))
    place.work()
    asked = len(embedder.asked)
    copy = cloning.clone(place.rt, WHO, WORKSPACE, "s")
    place.work()
    assert len(embedder.asked) == asked
    with place.rt.storage.read() as view:
        space = view.spaces.active(1, "message")
        assert space is not None
        assert place.rt.vectors.count(view, space) == 300
        old, new = view.messages.run(1, 1, 151), view.messages.run(copy.key, 1, 151)
        found = place.rt.vectors.fetch(view, space, [message.key for message in (*old, *new)])
    for before, after in zip(old[:150], new[:150], strict=True):
        assert list(found[before.key]) == list(found[after.key])


def test_vectors_of_a_clone_are_made_where_the_original_is_gone(start: Start) -> None:
    embedder = Lengths("lengths-1", Capability.SEMANTIC)
    place = start(embedder, EMBEDDER="lengths")
    place.say("s", ("alice", "I like tea."))
    place.work()
    cloning.clone(place.rt, WHO, WORKSPACE, "s")
    erasure.delete_session(place.rt, WHO, WORKSPACE, "s")
    place.run("erase:session:1")
    place.work()
    assert embedder.asked.count(["I like tea."]) >= 2
    assert indexed(place, 1)[1] == 1
