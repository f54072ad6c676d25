"""What cloning a session leaves for the worker: texts of long sessions, and vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from memservice.domain.errors import Unavailable
from memservice.domain.filters import TRUE, equals
from memservice.domain.records import ACTIVE, DELETING, Message, Session
from memservice.services import cloning, deletion, sessions
from memservice.services.erasure import messages, peers, positions
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import kinds
from memservice.spi.capabilities import Capability
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.storage import Transaction
from support.pipeline.all_tables import indexed
from support.pipeline.fakes import LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


def documents(pipeline: Pipeline) -> int:
    with pipeline.rt.storage.read() as tx:
        return pipeline.rt.storage.text.search(tx, "message", 1, ["x"], 1, EVERYTHING).documents


def test_a_short_session_is_indexed_at_once(pipeline: Pipeline) -> None:
    pipeline.say("s", *(("alice", f"I own {n} apples.") for n in range(20)))
    pipeline.work()
    cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    assert documents(pipeline) == 40
    assert pipeline.ready() == []


@pytest.mark.slow
def test_a_long_session_is_indexed_from_its_end(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloning, "INDEX_BATCH_SIZE", 4)
    pipeline.say(
        "s",
        ("alice", "There are axolotls."),
        *(("alice", f"I own {n} apples.") for n in range(9)),
        ("bob", "We met pangolins."),
    )
    pipeline.work()
    copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")

    def best(query: str) -> list[str]:
        hits = search.search(
            pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions(query), session_id=copy.slug
        )
        return [message.content for message in hits if query in message.content]

    assert documents(pipeline) == 11 + 4
    assert (best("pangolins"), best("axolotls")) == (["We met pangolins."], [])
    pipeline.work()
    assert documents(pipeline) == 22
    assert best("axolotls") == ["There are axolotls."]
    assert {task.kind for task in pipeline.tasks(None) if task.outcome.get("indexed") == 7} == {
        kinds.INDEX
    }


@pytest.mark.slow
@pytest.mark.parametrize("writes", [0, 2])
@pytest.mark.parametrize("whole", [False, True])
def test_a_copy_does_not_bring_back_what_is_erased_meanwhile(
    stored_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, writes: int, whole: bool
) -> None:
    """After this number of the copy's writes, of which the first stores the hidden session."""
    pipeline, storage = stored_pipeline, stored_pipeline.rt.storage
    monkeypatch.setattr(cloning, "COPY_BATCH_SIZE", 2)
    own = pipeline.say("s", *(("alice", f"I own {n} quokkas.") for n in range(5)))
    pipeline.work()
    with storage.read() as tx:
        (session,) = tx.rows.page(Session, equals(slug="s"))
        original = cloning.original_of(tx, session)
    write, calls = storage.write, itertools.count()

    def writing(change: Any) -> Any:
        if next(calls) == writes:
            monkeypatch.setattr(storage, "write", write)
            if whole:
                peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "alice")
            else:
                messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", own[1].uid)
        return write(change)

    monkeypatch.setattr(storage, "write", writing)
    with pytest.raises(Unavailable, match="try again"):
        cloning.copy(pipeline.rt, original)
    pipeline.work()
    with storage.read() as tx:
        assert [row.slug for row in tx.rows.page(Session)] == ["s"]
        texts = [row.content for row in tx.rows.page(Message)]
    remaining = [] if whole else [row.content for n, row in enumerate(own) if n != 1]
    assert texts == remaining


def test_a_copy_of_a_session_of_an_erased_peer_is_erased_with_it(
    stored_pipeline: Pipeline,
) -> None:
    pipeline, storage = stored_pipeline, stored_pipeline.rt.storage
    pipeline.say("s", ("alice", "I own a quokka."), ("bob", "I like tea."))
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "alice")
    copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    with storage.read() as tx:
        (session,) = tx.rows.page(Session, equals(slug="s"))
        original = cloning.original_of(tx, session)
    pipeline.work()
    with storage.read() as tx:
        texts = [row.content for row in tx.rows.page(Message, equals(session_key=copy.key))]
    assert texts == ["I like tea."]
    with pytest.raises(Unavailable, match="try again"):
        cloning.copy(pipeline.rt, original)


@pytest.mark.slow
def test_a_copy_has_no_gaps_where_the_original_still_has_them(
    stored_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task closes those of the original, since many messages follow the erased one."""
    monkeypatch.setattr(positions, "BATCH_SIZE", 2)
    pipeline = stored_pipeline
    message_rows = pipeline.say(
        "s", *((name, f"I like {name}'s tea.") for name in ("alice", "bob") * 3)
    )
    pipeline.say("s", ("carol", "I have just come."))
    sessions.remove_peers(pipeline.rt, PRINCIPAL, WORKSPACE, "s", ["bob"])
    pipeline.say("s", ("alice", "Bob has left."))
    messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", message_rows[1].uid)
    copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    shorter = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s", message_rows[3].uid)
    pipeline.say(copy.slug, ("alice", "Here too."))
    pipeline.work()
    assert shape(pipeline, "s") == (
        [1, 2, 3, 4, 5, 6, 7],
        {"alice": (0, None), "bob": (0, 6), "carol": (5, None)},
    )
    assert shape(pipeline, copy.slug) == ([1, 2, 3, 4, 5, 6, 7, 8], shape(pipeline, "s")[1])
    assert shape(pipeline, shorter.slug) == (
        [1, 2, 3],
        {"alice": (0, None), "bob": (0, 3), "carol": (3, None)},
    )


def shape(pipeline: Pipeline, slug: str) -> tuple[list[int], dict[str, tuple[int, int | None]]]:
    """Positions of a session's messages, and the marks of its members. Sums of tokens and counts
    fit the messages."""
    with pipeline.rt.storage.read() as tx:
        (session,) = tx.rows.page(Session, equals(slug=slug))
        rows = tx.messages.page(session.key, limit=100)
        members = tx.members.of_session(session.key, active=False)
    assert [row.tokens_through for row in rows] == list(
        itertools.accumulate(row.tokens for row in rows)
    )
    assert (session.message_count, session.token_total) == (len(rows), rows[-1].tokens_through)
    marks = {member.peer: (member.joined_seq, member.left_seq) for member in members}
    return [row.seq for row in rows], marks


@pytest.mark.slow
def test_a_session_is_not_cloned_while_mentions_are_replaced(stored_pipeline: Pipeline) -> None:
    pipeline = stored_pipeline
    pipeline.say("s", ("alice", "I own a quokka."), ("bob", "I like alice."))
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", "redact")
    with pytest.raises(Unavailable, match="with its mentions"):
        cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    with pipeline.rt.storage.read() as tx:
        texts = [row.content for row in tx.rows.page(Message, equals(session_key=copy.key))]
    assert texts == ["I like [erased]."]


def test_a_clone_erased_before_indexing_leaves_no_rows(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloning, "INDEX_BATCH_SIZE", 4)
    pipeline.say("s", *(("alice", f"I own {n} apples.") for n in range(9)))
    pipeline.work()
    copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, copy.slug)
    pipeline.run(f"erase:session:{copy.key}")
    pipeline.work()
    assert documents(pipeline) == 9
    assert pipeline.tasks(kinds.INDEX) == []


@pytest.mark.slow
def test_vectors_of_a_clone_are_copied(open_pipeline: OpenPipeline) -> None:
    embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    pipeline.say("s", *(("alice", f"I like tea number {n}.") for n in range(150)), ("alice", " "))
    pipeline.work()
    calls = len(embedder.calls)
    copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.work()
    assert len(embedder.calls) == calls
    with pipeline.rt.storage.read() as tx:
        space = tx.spaces.active(1, "message")
        assert space is not None
        assert pipeline.rt.vectors.count(tx, space) == 300
        old, new = tx.messages.run(1, 1, 151), tx.messages.run(copy.key, 1, 151)
        vectors = pipeline.rt.vectors.fetch(tx, space, [message.key for message in (*old, *new)])
    for before, after in zip(old[:150], new[:150], strict=True):
        assert list(vectors[before.key]) == list(vectors[after.key])


def test_vectors_of_a_clone_are_computed_if_the_original_is_erased(
    open_pipeline: OpenPipeline,
) -> None:
    embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
    pipeline = open_pipeline(embedder, EMBEDDER="lengths")
    pipeline.say("s", ("alice", "I like tea."))
    pipeline.work()
    cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    pipeline.run("erase:session:1")
    pipeline.work()
    assert embedder.calls.count(["I like tea."]) >= 2
    assert indexed(pipeline, 1)[1] == 1


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloning, "COPY_BATCH_SIZE", 4)


def test_a_long_session_is_copied_in_batches_and_visible_when_complete(
    pipeline: Pipeline, portions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", *(("alice", f"I own {n} apples.") for n in range(10)))
    pipeline.work()
    calls: list[tuple[int, int]] = []
    write = pipeline.rt.storage.write

    def looked(change: Callable[[Transaction], Any]) -> Any:
        result = write(change)
        with pipeline.rt.storage.read() as tx:
            visible = tx.rows.count(Session, equals(state=ACTIVE))
            calls.append((tx.rows.count(Message) - 10, visible))
        hits = search.search(pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions("apples", 100))
        assert len({message.session for message in hits}) == visible, (
            "neither listed nor found by search before it is whole"
        )
        return result

    monkeypatch.setattr(pipeline.rt.storage, "write", looked)
    copy = cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    assert calls == [(0, 1), (4, 1), (8, 1), (10, 2)]
    monkeypatch.undo()
    with pipeline.rt.storage.read() as tx:
        original, copied = (
            list(tx.messages.run(tx.sessions.by_slug(1, slug).key, 1, 10))  # type: ignore[union-attr]
            for slug in ("s", copy.slug)
        )
    assert [(m.seq, m.content, m.tokens_through) for m in copied] == [
        (m.seq, m.content, m.tokens_through) for m in original
    ]
    pipeline.work()
    assert documents(pipeline) == 20
    assert pipeline.tasks(kinds.ERASE) == []


def test_an_interrupted_clone_is_hidden_and_erased(
    pipeline: Pipeline, portions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", *(("alice", f"I own {n} apples.") for n in range(10)))
    pipeline.work()
    write, writes = pipeline.rt.storage.write, iter(range(3))

    def breaks_off(change: Callable[[Transaction], Any]) -> Any:
        if next(writes, None) is None:
            raise Unavailable("the process was killed")
        return write(change)

    with monkeypatch.context() as broken, pytest.raises(Unavailable):
        broken.setattr(pipeline.rt.storage, "write", breaks_off)
        cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    with pipeline.rt.storage.read() as tx:
        assert (tx.rows.count(Message), tx.rows.count(Session, equals(state=ACTIVE))) == (18, 1)
    (task,) = pipeline.tasks(kinds.ERASE)
    assert task.not_before - task.created_at == cloning.ABANDONED_AFTER
    pipeline.run(task.unit)
    with pipeline.rt.storage.read() as tx:
        assert tx.rows.count(Message) == 18, "it may still be under way"
    pipeline.clock.advance(hours=1)
    pipeline.run(task.unit)
    with pipeline.rt.storage.read() as tx:
        assert (tx.rows.count(Message), tx.rows.count(Session)) == (10, 1)


def test_an_abandoned_clone_is_not_shown_in_part(
    pipeline: Pipeline, portions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.say("s", *(("alice", f"I own {n} apples.") for n in range(10)))
    pipeline.work()
    write, writes = pipeline.rt.storage.write, iter(range(3))

    def erased(change: Callable[[Transaction], Any]) -> Any:
        if next(writes, None) is None:
            with pipeline.rt.storage.read() as tx:
                (hidden,) = tx.rows.page(Session, equals(state=DELETING))
            write(lambda tx: tx.rows.delete(Message, equals(session_key=hidden.key, seq=1)))
        return write(change)

    with monkeypatch.context() as late, pytest.raises(Unavailable, match="took too long"):
        late.setattr(pipeline.rt.storage, "write", erased)
        cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    with pipeline.rt.storage.read() as tx:
        assert tx.rows.count(Session, equals(state=ACTIVE)) == 1


@pytest.mark.slow
def test_other_writers_wait_for_one_batch_of_a_long_clone_only(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No write stores more than a batch of messages."""
    monkeypatch.setattr(cloning, "COPY_BATCH_SIZE", 60)
    for _ in range(3):
        pipeline.say(
            "s",
            *(
                ("alice", f"I own {n} apples and the orchard that they grow in.")
                for n in range(100)
            ),
        )
    batches, write = [], pipeline.rt.storage.write

    def stored() -> int:
        with pipeline.rt.storage.read() as tx:
            return tx.rows.count(Message, TRUE)

    def counted(change: Callable[[Transaction], Any]) -> Any:
        before = stored()
        try:
            return write(change)
        finally:
            batches.append(stored() - before)

    pipeline.rt.storage.write = counted  # type: ignore[method-assign,assignment]
    cloning.clone(pipeline.rt, PRINCIPAL, WORKSPACE, "s")
    assert sum(batches) == 300
    assert max(batches) <= 60
