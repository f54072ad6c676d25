"""Work whose transaction overlaps with that of an erasure: one of the two waits for the other, so
that nothing of what is erased is stored again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.filters import TRUE, equals
from memservice.services import corrections, dreams, indexing
from memservice.services.dreams import DreamRequest
from memservice.services.erasure import messages, peers, positions, work
from memservice.services.tasks import kinds
from memservice.spi.schema import TABLES
from memservice.worker import runner
from services.pipeline.conftest import OpenPipeline
from support.erasure.histories import Dreamer
from support.erasure.kills import commits
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

OVERLAP_SECONDS = 1.0
"""How long two transactions overlap, if neither waits for the other."""
END_SECONDS = 60.0
pytestmark = pytest.mark.every_storage
SAID = ("I like tea.", "I like quokka tea.")


@pytest.fixture
def dreaming(open_pipeline: OpenPipeline) -> Pipeline:
    """What one peer said. Only dreams write its card."""
    pipeline = open_pipeline(
        reasoner=Dreamer(), DREAM_MIN_HOURS_BETWEEN_DREAMS="0", PEER_CARD_REFRESH="false"
    )
    pipeline.say("s", *(("alice", text) for text in SAID))
    pipeline.work()
    return pipeline


def due_dream(pipeline: Pipeline, kind: Any = dreams.OMNI) -> str:
    """The unit of a dream about the peer, which is due."""
    dreams.schedule(pipeline.rt, PRINCIPAL, WORKSPACE, DreamRequest("alice", kind))
    return pipeline.unit(kinds.DREAM)


def erase(pipeline: Pipeline) -> None:
    """Delete the message that names the quokka."""
    with pipeline.rt.storage.read() as tx:
        (message,) = tx.rows.page(r.Message, equals(content=SAID[1]))
    messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", message.uid)


def marked(pipeline: Pipeline) -> list[str]:
    """The tables that name the quokka."""
    with pipeline.rt.storage.read() as tx:
        return [
            spec.name
            for spec in TABLES
            if any("quokka" in repr(row).casefold() for row in tx.rows.page(spec.record, TRUE))
        ]


@contextmanager
def in_thread(function: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run a function in a thread, and wait for its end; its error is raised here."""
    errors: list[BaseException] = []

    def target() -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    yield thread
    thread.join(END_SECONDS)
    assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_a_dream_that_is_being_stored_is_erased_too(dreaming: Pipeline) -> None:
    """The erasure begins before the dream is committed, and ends after it."""
    unit = due_dream(dreaming)
    commit, is_first = runner._commit, [True]
    erasures = ExitStack()

    def slow(*arguments: Any) -> Any:
        outcome = commit(*arguments)
        if is_first:
            is_first.clear()
            erasures.enter_context(in_thread(lambda: erase(dreaming))).join(OVERLAP_SECONDS)
        return outcome

    with erasures, commits(slow):
        dreaming.run(unit)
    dreaming.work()
    assert marked(dreaming) == []
    (dream, *_) = dreaming.tasks(kinds.DREAM, state="done")
    assert "changes" in dream.payload


@pytest.mark.parametrize("kind", [dreams.OMNI, dreams.CARD_REFRESH])
def test_a_dream_that_begins_during_an_erasure_starts_again(
    dreaming: Pipeline, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The dream is claimed, and read, before the erasure is committed."""
    unit = due_dream(dreaming, kind)
    is_erased, may_commit = threading.Event(), threading.Event()
    repack = positions.repack

    def slow(*arguments: Any) -> None:
        repack(*arguments)
        is_erased.set()
        assert may_commit.wait(END_SECONDS)

    monkeypatch.setattr(positions, "repack", slow)
    with in_thread(lambda: erase(dreaming)):
        assert is_erased.wait(END_SECONDS)
        with in_thread(lambda: dreaming.run(unit)) as dream:
            dream.join(OVERLAP_SECONDS)
            may_commit.set()
    dreaming.work()
    assert marked(dreaming) == []


def test_positions_that_change_while_a_peer_is_erased_become_dense(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gaps of deleted messages are closed after the erasure read the positions of its messages,
    and before it locks their session."""
    monkeypatch.setattr(positions, "BATCH_SIZE", 1)
    pipeline = open_pipeline()
    message_rows = pipeline.say("s", *((author, f"{author} arrives.") for author in "bbbbacb"))
    pipeline.work()
    for message in message_rows[:3]:
        messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", message.uid)
    repack = pipeline.unit(kinds.REPACK)
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "a")
    (task,) = [task for task in pipeline.tasks(kinds.ERASE) if "peer" in task.payload]
    interrupt, repacks = work.interrupt_session, ExitStack()

    def late(*arguments: Any) -> None:
        if is_first:
            is_first.clear()
            thread = repacks.enter_context(in_thread(lambda: pipeline.run(repack)))
            thread.join(OVERLAP_SECONDS)
        interrupt(*arguments)

    is_first = [True]
    monkeypatch.setattr(work, "interrupt_session", late)
    with repacks:
        pipeline.run(task.unit)
    pipeline.work()
    with pipeline.rt.storage.read() as tx:
        (session,) = tx.rows.page(r.Session)
        rows = tx.messages.page(session.key, limit=10)
    assert [(row.author, row.seq) for row in rows] == [("b", 1), ("c", 2), ("b", 3)]
    assert session.message_count == 3
    assert session.token_total == rows[-1].tokens_through == sum(row.tokens for row in rows)


def test_a_dream_starts_again_if_a_message_that_it_read_is_erased(dreaming: Pipeline) -> None:
    """Also one that no conclusion rests on: its words can be in the result."""
    (extra,) = dreaming.say("s", ("bob", "Alice owns a quokka."))
    reasoner = dreaming.reasoner
    assert isinstance(reasoner, Dreamer)
    consolidate, reads = reasoner.consolidate, []

    def reading(request: Any) -> Any:
        request.tools.containing("owns", 1)
        reads.append({read.content for read in request.tools.messages_read.values()})
        if len(reads) == 1:
            messages.delete(dreaming.rt, PRINCIPAL, WORKSPACE, "s", extra.uid)
        return consolidate(request)

    reasoner.consolidate = reading  # type: ignore[method-assign]
    dreaming.run(due_dream(dreaming))
    assert [extra.content in read for read in reads] == [True, False]


def test_a_correction_has_the_sources_of_the_row_that_it_replaces(
    dreaming: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source is erased after the correction was asked for, and before it is stored."""
    dreaming.say("s", ("alice", SAID[1]))
    dreaming.work()
    (row,) = [row for row in dreaming.conclusions("alice") if row.content == SAID[1]]
    with dreaming.rt.storage.read() as tx:
        first, second = tx.rows.page(r.Message, equals(content=SAID[1]))
    embed = indexing.embed_inline

    def late(*arguments: Any) -> Any:
        messages.delete(dreaming.rt, PRINCIPAL, WORKSPACE, "s", second.uid)
        return embed(*arguments)

    monkeypatch.setattr(indexing, "embed_inline", late)
    corrected = corrections.correct(dreaming.rt, PRINCIPAL, WORKSPACE, row.uid, "I like green tea.")
    assert corrected.message_keys == [first.key]
