"""Deletion of a message: gone at once, with what rests on it alone, and nothing comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import NotFound
from memservice.domain.filters import TRUE, equals
from memservice.domain.ids import fingerprint, new_uid
from memservice.pipeline.derive import store
from memservice.services import conclusions, corrections, sessions, supersession
from memservice.services import messages as message_service
from memservice.services.erasure import messages, positions, remains
from memservice.services.erasure.receipts import Receipt
from memservice.services.paging import Paging
from memservice.services.tasks import kinds, outbox
from memservice.spi.capabilities import Capability
from memservice.spi.schema import TABLES
from memservice.spi.storage import Transaction
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

OpenPipeline = Callable[..., Pipeline]


def delete(pipeline: Pipeline, message: r.Message) -> Receipt:
    return messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, message.session, message.uid)


def stored(pipeline: Pipeline, session: str = "s") -> list[r.Message]:
    with pipeline.rt.storage.read() as tx:
        (session_row,) = tx.rows.page(r.Session, equals(slug=session))
        rows = tx.messages.page(session_row.key, limit=10_000)
    return rows


def the_session(pipeline: Pipeline, session: str = "s") -> r.Session:
    with pipeline.rt.storage.read() as tx:
        (row,) = tx.rows.page(r.Session, equals(slug=session))
    return row


def assert_dense(pipeline: Pipeline, session: str = "s") -> None:
    rows, session_row = stored(pipeline, session), the_session(pipeline, session)
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    total = 0
    for row in rows:
        total += row.tokens
        assert row.tokens_through == total
    assert (session_row.message_count, session_row.token_total) == (len(rows), total)


def everything(pipeline: Pipeline) -> str:
    """All rows of all tables, as text."""
    with pipeline.rt.storage.read() as tx:
        return "\n".join(repr(row) for spec in TABLES for row in tx.rows.page(spec.record, TRUE))


def receipt(pipeline: Pipeline, erasure: Receipt) -> r.Erasure:
    with pipeline.rt.storage.read() as tx:
        erasure_row = tx.erasures.by_uid(erasure.uid)
    assert erasure_row is not None
    return erasure_row


def test_a_message_is_gone_at_once_with_what_rests_on_it_alone(pipeline: Pipeline) -> None:
    first, second, third = pipeline.say(
        "s", ("alice", "I like tea."), ("alice", "I own a quokka."), ("alice", "I paint boats.")
    )
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea.", "I own a quokka.", "I paint boats."]
    erasure = delete(pipeline, second)
    assert [row.key for row in stored(pipeline)] == [first.key, third.key]
    assert_dense(pipeline)
    page = message_service.page(pipeline.rt, PRINCIPAL, WORKSPACE, "s", None, Paging(1, 50))
    assert (page.total, [row.uid for row in page.items]) == (2, [first.uid, third.uid])
    assert pipeline.texts("alice") == ["I like tea.", "I paint boats."]
    assert pipeline.counted("alice") == 2
    with pytest.raises(NotFound):
        message_service.get(pipeline.rt, PRINCIPAL, WORKSPACE, "s", second.uid)
    with pytest.raises(NotFound):
        delete(pipeline, second)
    assert receipt(pipeline, erasure).state == r.ACCEPTED
    pipeline.work()
    done = receipt(pipeline, erasure)
    assert (done.state, done.counts["messages"], done.counts["conclusions"]) == (r.FINISHED, 1, 1)
    assert "quokka" not in everything(pipeline)


def test_a_conclusion_with_another_source_loses_one(pipeline: Pipeline) -> None:
    first, second = pipeline.say("s", ("alice", "I like tea."), ("alice", "I like tea."))
    pipeline.work()
    (conclusion,) = pipeline.conclusions("alice")
    assert conclusion.message_keys == [first.key, second.key]
    delete(pipeline, first)
    (left,) = pipeline.conclusions("alice")
    assert left == replace(
        conclusion,
        message_keys=[second.key],
        metadata=left.metadata,
        times_derived=left.times_derived,
    )
    assert left.metadata == {"message_id": second.uid}
    delete(pipeline, second)
    assert pipeline.conclusions("alice") == []


def test_a_repetition_keeps_a_conclusion(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_SOURCES", 2)
    rows = []
    for _ in range(3):
        rows += pipeline.say("s", ("alice", "I like tea."))
        pipeline.work()
    (conclusion,) = pipeline.conclusions("alice")
    assert (conclusion.times_derived, conclusion.message_keys) == (3, [rows[1].key, rows[2].key])
    assert conclusion.said_at == rows[0].created_at
    delete(pipeline, rows[1])
    (left,) = pipeline.conclusions("alice")
    assert (left.uid, left.message_keys) == (conclusion.uid, [rows[2].key])
    delete(pipeline, rows[2])
    assert pipeline.conclusions("alice") == []


def conclude(
    pipeline: Pipeline, content: str, sources: Sequence[r.Conclusion], **values: Any
) -> r.Conclusion:
    row = replace(
        sources[0],
        key=0,
        uid=new_uid(),
        content=content,
        fingerprint=fingerprint(content),
        level=r.DEDUCTIVE,
        source_ids=[source.uid for source in sources],
        internal={"premises": [source.content for source in sources]},
        metadata={},
        **values,
    )
    return pipeline.rt.storage.write(lambda tx: tx.conclusions.put([row]))[0]


def test_deductions_go_with_their_last_source(pipeline: Pipeline) -> None:
    first, second = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))
    pipeline.work()
    tea, quokka = pipeline.conclusions("alice")
    both = conclude(pipeline, "a tea drinker with a pet", [tea, quokka], message_keys=[second.key])
    only = conclude(pipeline, "a pet owner", [quokka], message_keys=[second.key])
    deeper = conclude(pipeline, "has somebody to feed", [only], message_keys=[])
    deleted = conclude(pipeline, "gone", [quokka], state=r.DELETED, deleted_at=pipeline.clock())
    delete(pipeline, second)
    left = {row.uid: row for row in pipeline.conclusions("alice")}
    assert left.keys() == {tea.uid, both.uid}
    assert left[both.uid].source_ids == [tea.uid]
    assert left[both.uid].message_keys == []
    assert left[both.uid].internal == {"premises": ["I like tea."]}
    with pipeline.rt.storage.read() as tx:
        for row in (only, deeper, deleted, quokka):
            assert tx.conclusions.by_uid(row.workspace_key, row.uid) is None
    assert first.key == tea.message_keys[0]


def test_a_superseded_conclusion_is_live_again(pipeline: Pipeline) -> None:
    _, second = pipeline.say("s", ("alice", "I like tea."), ("alice", "I like coffee."))
    pipeline.work()
    tea, coffee = pipeline.conclusions("alice")
    pipeline.rt.storage.write(
        lambda tx: tx.rows.change(
            r.Conclusion, equals(key=tea.key), state=r.SUPERSEDED, superseded_by=coffee.key
        )
    )
    delete(pipeline, second)
    assert pipeline.texts("alice") == ["I like tea."]


def supersede(pipeline: Pipeline, old: r.Conclusion, new: r.Conclusion, reason: str) -> None:
    steps = [supersession.Supersession(old, new.key, reason)]
    pipeline.rt.storage.write(
        lambda tx: supersession.supersede(pipeline.rt, tx, old.workspace_key, steps)
    )


def reasons(pipeline: Pipeline) -> dict[str, str | None]:
    """Of the superseded conclusions of Alice, by text."""
    with pipeline.rt.storage.read() as tx:
        rows = tx.rows.page(r.Conclusion, equals(observed="alice", state=r.SUPERSEDED))
    return {row.content: row.internal.get(supersession.REASON) for row in rows}


def test_a_reason_goes_with_the_conclusion_that_it_quotes(pipeline: Pipeline) -> None:
    _, second, _ = pipeline.say(
        "s", ("alice", "I like tea."), ("alice", "I like quokkas."), ("alice", "I like milk.")
    )
    pipeline.work()
    tea, quokkas, milk = pipeline.conclusions("alice")
    supersede(pipeline, tea, quokkas, "from tea to quokkas")
    supersede(pipeline, quokkas, milk, "from quokkas to milk")
    delete(pipeline, second)
    assert reasons(pipeline) == {"I like tea.": None}
    assert "quokka" not in everything(pipeline)


def test_a_reason_goes_if_a_live_conclusion_has_the_same_text(pipeline: Pipeline) -> None:
    _, second = pipeline.say("s", ("alice", "I like tea."), ("alice", "I like quokkas."))
    pipeline.work()
    tea, quokkas = pipeline.conclusions("alice")
    supersede(pipeline, tea, quokkas, "from tea to quokkas")
    pipeline.say("other", ("alice", "I like tea."))
    pipeline.work()
    delete(pipeline, second)
    assert reasons(pipeline) == {"I like tea.": None}
    assert pipeline.texts("alice") == ["I like tea."]
    assert "quokka" not in everything(pipeline)


def test_a_reason_goes_when_its_conclusion_loses_a_source(pipeline: Pipeline) -> None:
    first, _ = pipeline.say("s", ("alice", "I like tea."), ("alice", "I like milk."))
    pipeline.work()
    _, milk = pipeline.conclusions("alice")
    pipeline.rt.storage.write(
        lambda tx: tx.conclusions.put([replace(milk, message_keys=[first.key, *milk.message_keys])])
    )
    again = conclude(pipeline, "I like water.", [milk], message_keys=milk.message_keys)
    supersede(pipeline, again, milk, "no water since the quokka")
    delete(pipeline, first)
    assert reasons(pipeline) == {"I like water.": None}


def test_a_reason_that_is_older_or_that_no_model_wrote_stays(pipeline: Pipeline) -> None:
    pipeline.say("s", *[("alice", f"I like {what}.") for what in ("tea", "milk", "cola", "rum")])
    pipeline.work()
    tea, milk, cola, rum = pipeline.conclusions("alice")
    supersede(pipeline, tea, rum, "rum is better")
    pipeline.clock.advance(minutes=1)
    (late,) = pipeline.say("s", ("alice", "I like quokkas."))
    pipeline.work()
    pipeline.clock.advance(minutes=1)
    supersede(pipeline, milk, rum, "no milk beside a quokka")
    supersede(pipeline, cola, rum, supersession.SAID_AGAIN)
    corrections.invalidate(pipeline.rt, PRINCIPAL, WORKSPACE, rum.uid, "a joke")
    delete(pipeline, late)
    assert reasons(pipeline) == {
        "I like tea.": "rum is better",
        "I like milk.": None,
        "I like cola.": supersession.SAID_AGAIN,
        "I like rum.": "a joke",
    }
    assert "quokka" not in everything(pipeline)


def test_a_reason_goes_with_the_conclusion_that_a_caller_deletes(pipeline: Pipeline) -> None:
    pipeline.say("s", ("alice", "I like tea."), ("alice", "I like quokkas."))
    pipeline.work()
    tea, quokkas = pipeline.conclusions("alice")
    supersede(pipeline, tea, quokkas, "from tea to quokkas")
    conclusions.delete(pipeline.rt, PRINCIPAL, WORKSPACE, quokkas.uid)
    assert reasons(pipeline) == {"I like tea.": None}


@pytest.mark.slow
def test_a_summary_is_made_again_without_the_message(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(SUMMARY_MESSAGES_PER_SHORT_SUMMARY="10")
    rows = pipeline.say("s", *((("alice", f"I like thing {n}.")) for n in range(12)))
    pipeline.work()
    assert pipeline.summaries("s")["short"].message_key == rows[9].key
    delete(pipeline, rows[10])
    assert pipeline.summaries("s").keys() == {"short"}, "it covers earlier messages"
    delete(pipeline, rows[9])
    assert pipeline.summaries("s") == {}
    pipeline.work()
    assert pipeline.summaries("s")["short"].message_key == rows[8].key
    delete(pipeline, rows[0])

    def erase_meanwhile(request: object) -> None:
        pipeline.reasoner.act_on_summary = None
        delete(pipeline, rows[3])

    pipeline.reasoner.act_on_summary = erase_meanwhile
    pipeline.work()
    written = pipeline.summaries("s")["short"]
    assert written.message_key == rows[8].key
    read = {message.uid for message in pipeline.reasoner.summaries[-1].messages}
    assert read == {message.uid for n, message in enumerate(rows) if n in (1, 2, 4, 5, 6, 7, 8)}


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2, 1_000])
def test_positions_sums_and_marks_are_dense_again(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(positions, "BATCH_SIZE", limit)
    message_rows = pipeline.say(
        "s", *(("alice", f"I like thing {n} " + "x " * n) for n in range(5))
    )
    pipeline.join("s", bob=sessions.MemberConfig())
    message_rows += pipeline.say("s", *(("alice", f"I own thing {n}.") for n in range(5)))
    sessions.remove_peers(pipeline.rt, PRINCIPAL, WORKSPACE, "s", ["bob"])
    message_rows += pipeline.say("s", *(("alice", f"I see thing {n}.") for n in range(3)))
    key = message_rows[0].session_key

    def marks() -> tuple[int, int | None]:
        with pipeline.rt.storage.read() as tx:
            (bob,) = tx.rows.page(r.Member, equals(session_key=key, peer="bob"))
        return bob.joined_seq, bob.left_seq

    assert marks() == (5, 10)
    for number in (4, 9, 0, 12):
        delete(pipeline, message_rows[number])
    pipeline.work()
    assert_dense(pipeline)
    assert marks() == (3, 7)
    assert [row.key for row in stored(pipeline)] == [
        message.key for n, message in enumerate(message_rows) if n not in (4, 9, 0, 12)
    ]
    assert all(task.state == "done" for task in pipeline.tasks(kinds.REPACK))
    assert bool(pipeline.tasks(kinds.REPACK)) == (limit == 2)


@pytest.mark.slow
def test_a_message_after_leaving_is_never_before_it_while_positions_change(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "BATCH_SIZE", 2)
    message_rows = pipeline.say("s", *(("alice", f"I like thing {n}.") for n in range(6)))
    pipeline.join("s", bob=sessions.MemberConfig())
    message_rows += pipeline.say("s", *(("alice", f"I own thing {n}.") for n in range(5)))
    sessions.remove_peers(pipeline.rt, PRINCIPAL, WORKSPACE, "s", ["bob"])
    message_rows += pipeline.say("s", *(("alice", f"I see thing {n}.") for n in range(6)))
    before = {message.key for message in message_rows[:6]}
    after = {message.key for message in message_rows[11:]}
    step = positions.step
    checked = 0

    def checking(tx: Transaction, session: r.Session, *arguments: Any) -> Any:
        nonlocal checked
        following = step(tx, session, *arguments)
        (bob,) = tx.rows.page(r.Member, equals(session_key=session.key, peer="bob"))
        for message in tx.messages.page(session.key, limit=100):
            present = bob.joined_seq < message.seq <= (bob.left_seq or 0)
            assert present == (message.key not in before | after)
        checked += 1
        return following

    monkeypatch.setattr(positions, "step", checking)
    for number in (2, 7, 13):
        delete(pipeline, message_rows[number])
    pipeline.work()
    assert checked > 9
    assert_dense(pipeline)


@pytest.mark.slow
def test_messages_are_appended_while_positions_change(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "BATCH_SIZE", 2)
    message_rows = pipeline.say("s", *(("alice", f"I like thing {n}.") for n in range(9)))
    delete(pipeline, message_rows[0])
    step, number = positions.step, 0

    def saying(*arguments: Any) -> Any:
        nonlocal number
        number += 1
        return step(*arguments)

    monkeypatch.setattr(positions, "step", saying)
    unit = f"repack:{message_rows[0].workspace_key}:{message_rows[0].session_key}"
    monkeypatch.setattr("memservice.worker.runner.TIME_SLICE_SECONDS", 0.0)
    while number < 3:
        pipeline.run(unit)
        pipeline.say("s", ("alice", f"I said {number} more."))
        delete(pipeline, stored(pipeline)[-2])
    pipeline.work()
    assert_dense(pipeline)
    assert len(stored(pipeline)) == 8


def test_work_in_progress_stores_nothing_from_an_erased_message(pipeline: Pipeline) -> None:
    message_rows = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))

    def erase_meanwhile(request: object) -> None:
        pipeline.reasoner.act = None
        delete(pipeline, message_rows[1])

    pipeline.reasoner.act = erase_meanwhile
    pipeline.run(pipeline.unit())
    assert pipeline.texts("alice") == []
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    assert "quokka" not in everything(pipeline)
    assert all(task.attempts == 0 for task in pipeline.tasks())


def test_a_batch_whose_lease_began_during_the_deletion_stores_nothing(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_rows = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))
    monkeypatch.setattr("memservice.services.erasure.work.interrupt_session", lambda *_: None)

    def erase_meanwhile(request: object) -> None:
        pipeline.reasoner.act = None
        delete(pipeline, message_rows[1])

    pipeline.reasoner.act = erase_meanwhile
    pipeline.work()
    assert pipeline.texts("alice") == ["I like tea."]
    assert "quokka" not in everything(pipeline)


def test_a_repeated_request_does_not_store_the_message_again(pipeline: Pipeline) -> None:
    drafts = [message_service.Draft(text, "alice") for text in ("I like tea.", "I own a quokka.")]
    message_rows = message_service.create(pipeline.rt, PRINCIPAL, WORKSPACE, "s", drafts, "once")
    delete(pipeline, message_rows[1])
    pipeline.work()
    with pipeline.rt.storage.read() as tx:
        (row,) = tx.rows.page(r.IdempotencyKey)
    assert row.message_keys == [message_rows[0].key]
    again = message_service.create(pipeline.rt, PRINCIPAL, WORKSPACE, "s", drafts, "once")
    assert [message.uid for message in again] == [message_rows[0].uid]


def test_vectors_in_an_outside_index_are_removed(open_pipeline: OpenPipeline) -> None:
    index = ExternalIndex()
    pipeline = open_pipeline(
        LengthEmbedder("lengths-1", Capability.SEMANTIC),
        index,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )
    message_rows = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))
    pipeline.work()
    assert len(index.rows) == 4
    erasure = delete(pipeline, message_rows[1])
    pipeline.work()
    assert len(index.rows) == 2
    assert receipt(pipeline, erasure).state == r.FINISHED


def test_it_is_not_done_while_something_is_left(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_rows = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))
    pipeline.work()
    erasure = delete(pipeline, message_rows[1])
    monkeypatch.setattr(type(pipeline.rt.storage.text), "indexed", lambda *_: [message_rows[1].key])
    pipeline.work()
    (task,) = pipeline.tasks(kinds.ERASE)
    assert "text index" in (task.last_error or "")
    assert receipt(pipeline, erasure).state == r.ERASING
    monkeypatch.undo()
    pipeline.clock.advance(hours=1)
    pipeline.work()
    assert receipt(pipeline, erasure).state == r.FINISHED


def test_a_task_that_lists_the_message_loses_it(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "BATCH_SIZE", 1)
    message_rows = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))
    keys = [message.key for message in message_rows]
    waiting = [
        replace(task, not_before=r.NEVER, unit=f"{task.unit}:held")
        for task in (
            outbox.index(pipeline.rt, message_rows[0].workspace_key, keys),
            outbox.index(pipeline.rt, message_rows[0].workspace_key, keys[1:]),
            outbox.embed(pipeline.rt, "message", message_rows[0].workspace_key, keys, keys[::-1]),
            outbox.embed(pipeline.rt, "document", message_rows[0].workspace_key, keys),
        )
    ]
    pipeline.rt.storage.write(lambda tx: tx.tasks.add(waiting))
    delete(pipeline, message_rows[1])
    pipeline.work()
    left = [task.payload for task in pipeline.tasks(kinds.INDEX) + pipeline.tasks(kinds.EMBED)]
    first = message_rows[0].key
    assert left == [
        {"keys": [first]},
        {"kind": "message", "keys": [first], "like": [first]},
        {"kind": "document", "keys": keys},
    ]


def test_an_idempotency_record_that_is_erased_meanwhile_is_no_failure(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = [message_service.Draft("I like tea.", "alice")]
    (message,) = message_service.create(pipeline.rt, PRINCIPAL, WORKSPACE, "s", drafts, "a key")
    read = remains.next_idempotency_keys

    def read_and_erase(tx: Transaction, *arguments: Any) -> Any:
        rows = read(tx, *arguments)
        tx.rows.delete(r.IdempotencyKey, TRUE)
        monkeypatch.setattr(remains, "next_idempotency_keys", read)
        return rows

    erasure = delete(pipeline, message)
    monkeypatch.setattr(remains, "next_idempotency_keys", read_and_erase)
    pipeline.work()
    assert receipt(pipeline, erasure).state == r.FINISHED
