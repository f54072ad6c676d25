"""Work whose transaction overlaps with that of an erasure: one of the two waits for the other, so
that nothing of what is erased is stored again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import TRUE, equals
from memservice.pipeline.indexing import embed
from memservice.pipeline.registry import HANDLERS
from memservice.services import cards, corrections, dream_changes, dreams, indexing
from memservice.services import peers as peer_service
from memservice.services.dreams import DreamRequest
from memservice.services.erasure import (
    mentions,
    message_rows,
    messages,
    peers,
    positions,
    redaction,
    work,
)
from memservice.services.tasks import kinds, outbox
from memservice.spi.index_filter import EVERYTHING
from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Statement
from memservice.spi.schema import TABLES
from memservice.worker import runner
from services.pipeline.conftest import OpenPipeline
from support.erasure.histories import Dreamer
from support.erasure.kills import commits
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

OVERLAP_SECONDS = 0.5
"""How long two transactions overlap, if neither waits for the other."""
END_SECONDS = 60.0
pytestmark = [pytest.mark.every_storage("postgres"), pytest.mark.slow]
NAME = "Alice Example"
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


def marked(pipeline: Pipeline, word: str = "quokka") -> list[str]:
    """The tables that have the word, in lower case."""
    with pipeline.rt.storage.read() as tx:
        return [
            spec.name
            for spec in TABLES
            if any(word in repr(row).casefold() for row in tx.rows.page(spec.record, TRUE))
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
    stored = pipeline.say("s", *((author, f"{author} arrives.") for author in "bbbbacb"))
    pipeline.work()
    for message in stored[:3]:
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


def test_a_message_that_is_added_before_another_is_erased_is_counted(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion has read the session, and has not changed a row."""
    pipeline = open_pipeline()
    first, _ = pipeline.say("s", ("alice", "One."), ("alice", "Two."))
    pipeline.work()  # no task of the session is locked by both
    erase, additions = message_rows.erase, ExitStack()

    def slow(*arguments: Any) -> Any:
        add = partial(pipeline.say, "s", ("alice", "Three."))
        additions.enter_context(in_thread(add)).join(OVERLAP_SECONDS)
        return erase(*arguments)

    monkeypatch.setattr(message_rows, "erase", slow)
    with additions:
        messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, "s", first.uid)
    with pipeline.rt.storage.read() as tx:
        (session,) = tx.rows.page(r.Session)
        rows = tx.messages.page(session.key, limit=10)
    assert [(row.content, row.seq) for row in rows] == [("Two.", 1), ("Three.", 2)]
    assert (session.message_count, session.free_positions) == (2, 0)


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


def said_of(pipeline: Pipeline, text: str) -> r.Message:
    with pipeline.rt.storage.read() as tx:
        (message,) = tx.rows.page(r.Message, equals(content=text))
    return message


def add_task(pipeline: Pipeline, task: r.Task) -> str:
    """Its unit."""
    pipeline.rt.storage.write(lambda tx: tx.tasks.add([task]))
    return task.unit


def remove_from_indexes(pipeline: Pipeline, kind: str, row: Any) -> None:
    """As if the task that indexes the row had not run yet."""
    pipeline.rt.storage.write(
        lambda tx: indexing.remove_from_storage(pipeline.rt, tx, kind, row.workspace_key, [row.key])
    )


@contextmanager
def erased_before_the_commit(pipeline: Pipeline) -> Iterator[None]:
    """The first work that is stored in this block overlaps with the erasure of the peer: with its
    batches, which are checked as they are erased."""
    commit, is_first = runner._commit, [True]

    def whole() -> None:
        peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "alice")
        pipeline.run(pipeline.unit(kinds.ERASE))

    def slow(*arguments: Any) -> Any:
        outcome = commit(*arguments)
        if is_first:
            is_first.clear()
            erasures.enter_context(in_thread(whole)).join(OVERLAP_SECONDS)
        return outcome

    with ExitStack() as erasures, commits(slow):
        yield


def test_the_text_of_a_message_that_is_erased_meanwhile_is_not_indexed(
    dreaming: Pipeline,
) -> None:
    message = said_of(dreaming, SAID[1])
    key, workspace_key = message.key, message.workspace_key
    remove_from_indexes(dreaming, indexing.MESSAGE, message)
    unit = add_task(dreaming, outbox.index(dreaming.rt, workspace_key, [key]))
    with erased_before_the_commit(dreaming):
        dreaming.run(unit)
    dreaming.work()
    with dreaming.rt.storage.read() as tx:
        assert dreaming.rt.storage.text.indexed(tx, indexing.MESSAGE, workspace_key, [key]) == []


def test_the_vector_of_a_row_that_is_erased_meanwhile_is_not_stored(dreaming: Pipeline) -> None:
    (row,) = [row for row in dreaming.conclusions("alice") if row.content == SAID[1]]
    kind = indexing.CONCLUSION
    remove_from_indexes(dreaming, kind, row)
    task = outbox.embed(dreaming.rt, kind, row.workspace_key, [row.key])
    unit = add_task(dreaming, task)
    with erased_before_the_commit(dreaming):
        dreaming.run(unit)
    dreaming.work()
    with dreaming.rt.storage.read() as tx:
        space = tx.spaces.active(row.workspace_key, kind)
        assert space is not None
        assert dreaming.rt.vectors.fetch(tx, space, [row.key]) == {}


def test_the_text_of_a_message_is_indexed_as_it_is_then(
    dreaming: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mentions of an erased peer are replaced after it was read."""
    message = said_of(dreaming, SAID[1])
    key, workspace_key = message.key, message.workspace_key
    unit = add_task(dreaming, outbox.index(dreaming.rt, workspace_key, [key]))
    analyse, is_first = indexing.message_terms, [True]

    def late(content: str) -> Any:
        if is_first:
            is_first.clear()
            changed = replace(message, content="I like some tea.")
            dreaming.rt.storage.write(lambda tx: tx.messages.save(changed))
        return analyse(content)

    monkeypatch.setattr(indexing, "message_terms", late)
    dreaming.run(unit)
    with dreaming.rt.storage.read() as tx:
        text = dreaming.rt.storage.text
        matches = text.search(tx, indexing.MESSAGE, workspace_key, ["quokka"], 9, EVERYTHING)
    assert list(matches.hits) == []


def test_progress_does_not_name_rows_that_were_erased_since_it_was_read(
    dreaming: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task with many steps, one of which was prepared before the erasure."""
    message = said_of(dreaming, SAID[1])
    other = said_of(dreaming, SAID[0])
    keys = [other.key] * embed.MAX_ROWS + [message.key, other.key]
    task = outbox.repair(dreaming.rt, indexing.MESSAGE, message.workspace_key, keys, [])
    unit = add_task(dreaming, task)
    handler, is_first = HANDLERS[kinds.REPAIR], [True]
    prepare = handler.prepare

    def slow(*arguments: Any) -> Any:
        prepared = prepare(*arguments)
        if is_first:
            is_first.clear()
            erase(dreaming)
            dreaming.run(dreaming.unit(kinds.ERASE))
        return prepared

    monkeypatch.setattr(handler, "prepare", slow)
    dreaming.run(unit)
    dreaming.work()
    (repair,) = dreaming.tasks(kinds.REPAIR)
    assert repair.state == "done"
    assert message.key not in repair.payload["keys"]


def finish_erasures(pipeline: Pipeline) -> None:
    """Run the tasks of erasures alone, until none is left."""
    for _ in range(20):  # on a busy machine, one run does not reach the end
        for task in pipeline.tasks(kinds.ERASE, state=r.PENDING):
            pipeline.run(task.unit)
    assert pipeline.tasks(kinds.ERASE, state=r.PENDING) == []


@pytest.fixture
def naming(dreaming: Pipeline) -> Pipeline:
    """The card of a peer has the name of another one, and dreams quote it in conclusions."""
    name = {"name": NAME}
    peer_service.get_or_create(dreaming.rt, PRINCIPAL, WORKSPACE, "al-1", name, None)
    dreaming.say("s", ("al-1", "Hello."))
    dreaming.work()
    cards.put(dreaming.rt, PRINCIPAL, WORKSPACE, "alice", None, [f"Friend of {NAME}"])
    return dreaming


def quoting(request: ConsolidateRequest) -> Consolidated:
    """Concludes the lines of the card, and adds another one."""
    sources = tuple(row.uid for row in request.known)
    created = [Statement(line, (), r.DEDUCTIVE, sources) for line in request.card]
    return Consolidated(created, card=[*request.card, "ATTRIBUTE: tall"])


@pytest.mark.parametrize("begins", ["before", "during"])
def test_a_dream_does_not_bring_back_a_name_from_a_card(
    naming: Pipeline, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    """It reads the card before the name is replaced, or while that is not committed, and ends after
    the erasure."""
    unit, is_first = due_dream(naming), [True]
    has_read, may_end = threading.Event(), threading.Event()
    redact, dream = redaction.redact, ExitStack()

    def slow(request: ConsolidateRequest) -> Consolidated:
        has_read.set()
        assert may_end.wait(END_SECONDS)
        return quoting(request)

    def begin() -> None:
        if is_first:
            is_first.clear()
            dream.enter_context(in_thread(lambda: naming.run(unit)))
            has_read.wait(END_SECONDS if begins == "before" else OVERLAP_SECONDS)

    def redacting(rt: Any, tx: Any, workspace_key: int, table: str, *others: Any) -> Any:
        result = redact(rt, tx, workspace_key, table, *others)
        if table == "cards":
            begin()
        return result

    monkeypatch.setattr(naming.reasoner, "consolidate", slow)
    monkeypatch.setattr(redaction, "redact", redacting)
    with dream:
        if begins == "before":
            begin()
        peers.erase(naming.rt, PRINCIPAL, WORKSPACE, "al-1", mentions.REDACT)
        finish_erasures(naming)
        may_end.set()
    naming.work()
    assert "Friend of [erased]" in naming.texts("alice")
    assert marked(naming, NAME.casefold()) == []


def add_dream(pipeline: Pipeline, state: str, payload: dict[str, Any]) -> str:
    """Store a dream of a peer about itself; its uid."""
    with pipeline.rt.storage.read() as tx:
        (peer,) = tx.rows.page(r.Peer, equals(slug="alice"))
    dream = replace(
        outbox.index(pipeline.rt, peer.workspace_key, []),
        kind=kinds.DREAM,
        unit=f"{kinds.DREAM}:{peer.workspace_key}:{peer.key}:{peer.key}",
        state=state,
        observer_key=peer.key,
        observed_key=peer.key,
        payload=payload,
    )
    add_task(pipeline, dream)
    return dream.uid


PROPOSED = {
    "reason": f"{NAME} left",
    "created": [],
    "superseded": [],
    "card": [f"ATTRIBUTE: friend of {NAME}"],
    "model": None,
    "reads": [],
    "given": [],
}
CHANGED = {
    "created": [],
    "superseded": [],
    "card": {"before": [], "given": [], "after": [f"ATTRIBUTE: friend of {NAME}"]},
}


def correct(pipeline: Pipeline) -> None:
    (row,) = [row for row in pipeline.conclusions("alice") if row.content == SAID[0]]
    corrections.correct(pipeline.rt, PRINCIPAL, WORKSPACE, row.uid, "I like green tea.")


@contextmanager
def before_a_payload_changes(pipeline: Pipeline, act: Callable[[], object]) -> Iterator[None]:
    """Begin something after a transaction in this block has read a task, and before it changes its
    payload. It ends before this block does; its error is raised there."""
    with pipeline.rt.storage.read() as tx:
        rows = type(tx.rows)
    change, is_first, acts = rows.change, [True], ExitStack()

    def late(self: Any, record: type[Any], *arguments: Any, **values: Any) -> int:
        if record is r.Task and "payload" in values and is_first:
            is_first.clear()
            acts.enter_context(in_thread(act)).join(OVERLAP_SECONDS)
        number: int = change(self, record, *arguments, **values)
        return number

    with acts, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "change", late)
        yield
    assert not is_first


@pytest.mark.parametrize("command", ["apply", "correct", "undo"])
def test_a_change_of_a_dream_does_not_bring_back_a_name(naming: Pipeline, command: str) -> None:
    """The names in it are replaced between the moments when a caller's command reads and changes
    it."""
    is_undo = command == "undo"
    uid = (
        add_dream(naming, r.DONE, {"type": dreams.OMNI, "changes": CHANGED})
        if is_undo
        else add_dream(naming, r.HELD, {"type": dreams.OMNI, "proposal": PROPOSED})
    )
    peers.erase(naming.rt, PRINCIPAL, WORKSPACE, "al-1", mentions.REDACT)
    with before_a_payload_changes(naming, lambda: finish_erasures(naming)):
        if command == "correct":
            correct(naming)
        else:
            getattr(dream_changes, command)(naming.rt, PRINCIPAL, WORKSPACE, uid)
    naming.work()
    assert marked(naming, NAME.casefold()) == []


@pytest.mark.parametrize("second", [dream_changes.apply, dream_changes.discard])
def test_of_two_decisions_at_the_same_time_one_is_a_conflict(
    naming: Pipeline, second: Callable[..., None]
) -> None:
    uid = add_dream(naming, r.HELD, {"type": dreams.OMNI, "proposal": PROPOSED})
    decision = partial(second, naming.rt, PRINCIPAL, WORKSPACE, uid)
    with pytest.raises(Conflict, match="not held"), before_a_payload_changes(naming, decision):
        dream_changes.discard(naming.rt, PRINCIPAL, WORKSPACE, uid)
    (dream,) = naming.tasks(kinds.DREAM, uid=uid)
    assert (dream.state, dream.payload) == (r.DONE, {"type": dreams.OMNI, "ended": "discarded"})
