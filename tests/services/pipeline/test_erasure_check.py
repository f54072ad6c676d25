"""An erasure is `done` only after every place was searched and nothing was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.services import cards as card_service
from memservice.services import deletion
from memservice.services.erasure import (
    cards,
    messages,
    notes,
    peers,
    receipts,
    remains,
    retention,
    searches,
)
from memservice.services.tasks import kinds, outbox
from memservice.services.v1 import metamessages
from memservice.spi.capabilities import Capability
from memservice.spi.schema import BY_RECORD, TABLES
from memservice.spi.storage import Transaction
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline
from support.pipeline.store_uri import store_uri  # noqa: F401 - used by the fixture `pipeline`

OpenPipeline = Callable[..., Pipeline]

NAMES = {
    "uid", "unit", "slug", "v1_name", "v1_role", "kind", "state", "session", "author", "peer",
    "observer", "observed", "target", "message_uid", "reasoner", "model", "level", "fingerprint",
    "source_ids", "digest", "request", "token", "label", "embedder", "url", "secret", "event_uid",
    "event", "error", "workspace", "workspace_uid", "peer_uid", "session_uid", "request_id", "name",
    "last_error", "outcome",
}  # fmt: skip
"""Fields with ids, names and states."""

TEXTS: dict[type[Any], set[str]] = {
    r.Workspace: {"metadata", "configuration"},
    r.Peer: {"metadata", "configuration"},
    r.Session: {"metadata", "configuration"},
    r.Message: {"content", "metadata", "internal"},
    r.Summary: {"content"},
    r.Card: {"lines", "given"},
    r.Conclusion: {"content", "internal", "metadata"},
    r.NamedCollection: {"metadata"},
    r.Document: {"content", "metadata"},
    r.Metamessage: {"content", "metadata"},
    r.Task: {"payload"},
    r.Delivery: {"body"},
}
"""Fields with texts of callers or models: each goes with its row, or is searched in `places`."""


def _holds_text(kind: Any) -> bool:
    return kind is str or kind in (r.JsonObject, list[str]) or any(map(_holds_text, get_args(kind)))


def test_every_table_is_searched_or_has_a_reason_not_to_be() -> None:
    records = {spec.record for spec in TABLES}
    assert searches.BY_TABLE.keys() | searches.WITHOUT.keys() == records
    assert not searches.BY_TABLE.keys() & searches.WITHOUT.keys()
    names = {search.name for search in searches.SEARCHES}
    assert {BY_RECORD[record].name for record in searches.BY_TABLE} <= names
    assert {"text index", "vector index", "file of traces"} <= names


@pytest.mark.parametrize("record", searches.BY_TABLE, ids=lambda record: BY_RECORD[record].name)
def test_every_field_of_a_searched_table_is_known(record: type[Any]) -> None:
    hints = get_type_hints(record)
    for name in record.__struct_fields__:
        if name.endswith(("_key", "_keys")):
            assert name in searches.REFERENCES.keys() | searches.OTHER_REFERENCES, name
        elif _holds_text(hints[name]) and name not in NAMES:
            assert name in TEXTS.get(record, ()), (
                f"does {record.__name__}.{name} hold text of erased rows? "
                "See memservice/services/erasure/searches.py"
            )


def task_of(pipeline: Pipeline) -> r.Task:
    (task,) = pipeline.tasks(kinds.ERASE)
    return task


def receipt(pipeline: Pipeline) -> receipts.Receipt:
    with pipeline.rt.storage.read() as tx:
        (erasure,) = tx.erasures.page()
        return receipts.receipt(tx, erasure)


Plant = Callable[[Pipeline, Transaction, r.Message], None]


def index_task(pipeline: Pipeline, tx: Transaction, message: r.Message) -> None:
    task = outbox.index(pipeline.rt, message.workspace_key, [message.key])
    tx.tasks.add([replace(task, not_before=r.NEVER, unit="index:held")])


def idempotency_key(pipeline: Pipeline, tx: Transaction, message: r.Message) -> None:
    tx.rows.put(
        [
            r.IdempotencyKey(
                workspace_key=message.workspace_key,
                session_key=kept_session(tx),
                digest=new_uid(),
                request=new_uid(),
                message_keys=[message.key],
                created_at=pipeline.clock(),
            )
        ]
    )


def kept_session(tx: Transaction) -> int:
    (session,) = tx.rows.page(r.Session, equals(slug="kept"))
    return session.key


def delivery(pipeline: Pipeline, tx: Transaction, message: r.Message) -> None:
    tx.rows.put(
        [
            r.Delivery(
                uid=new_uid(),
                workspace_key=message.workspace_key,
                endpoint_key=1,
                event_uid=new_uid(),
                event="queue.empty",
                body='{"data": {"observed": "alice"}}',
                attempt=1,
                created_at=pipeline.clock(),
            )
        ]
    )


def webhook_task(pipeline: Pipeline, tx: Transaction, message: r.Message) -> None:
    payload = {"endpoint": 1, "body": '{"data": {"observed": "alice"}}'}
    task = outbox.index(pipeline.rt, message.workspace_key, [])
    waiting = replace(
        task, kind=kinds.WEBHOOK, payload=payload, not_before=r.NEVER, unit="webhook:x"
    )
    tx.tasks.add([waiting])


def erase_message(pipeline: Pipeline, message: r.Message) -> None:
    messages.delete(pipeline.rt, PRINCIPAL, WORKSPACE, message.session, message.uid)


def erase_peer(pipeline: Pipeline, message: r.Message) -> None:
    peers.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "alice")


def erase_session(pipeline: Pipeline, message: r.Message) -> None:
    deletion.delete_session(pipeline.rt, PRINCIPAL, WORKSPACE, message.session)


def erase_old(pipeline: Pipeline, message: r.Message) -> None:
    with pipeline.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
    assert workspace is not None
    days = {"retention": {"messages_days": 1}}
    pipeline.rt.storage.write(lambda tx: tx.workspaces.save(replace(workspace, configuration=days)))
    pipeline.clock.advance(hours=48)
    retention.erase_messages(pipeline.rt, message.session_key, pipeline.clock())


TASKS, RECORDS, EVENTS = "clean_tasks", "clean_idempotency_keys", "clean_events"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("erase", "plant", "cleaning", "reason"),
    [
        (erase_message, index_task, TASKS, "tasks"),
        (erase_old, index_task, TASKS, "tasks"),
        (erase_peer, index_task, TASKS, "tasks"),
        (erase_session, index_task, TASKS, "tasks"),
        (erase_peer, idempotency_key, RECORDS, "messages of idempotency records"),
        (erase_session, idempotency_key, RECORDS, "messages of idempotency records"),
        (erase_peer, delivery, EVENTS, "events for webhooks"),
        (erase_peer, webhook_task, EVENTS, "events for webhooks"),
    ],
)
def test_a_remainder_is_found_and_the_retry_removes_it(
    pipeline: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    erase: Callable[[Pipeline, r.Message], None],
    plant: Plant,
    cleaning: str,
    reason: str,
) -> None:
    message_rows = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))
    pipeline.say("kept", ("bob", "I like tea."))
    pipeline.work()
    pipeline.rt.storage.write(lambda tx: plant(pipeline, tx, message_rows[1]))
    erase(pipeline, message_rows[1])
    with monkeypatch.context() as patched:
        patched.setattr(remains, cleaning, lambda *_: None)
        for _ in range(20):
            pipeline.work()
            pipeline.clock.advance(hours=6)
    erasure = receipt(pipeline)
    assert (erasure.state, erasure.finished_at) == (r.FAILED, None)
    assert erasure.reason == f"still left of erased rows: {reason}"
    failed = task_of(pipeline)
    pipeline.rt.storage.write(
        lambda tx: tx.rows.change(
            r.Task, equals(key=failed.key), state=r.PENDING, attempts=0, not_before=r.IMMEDIATELY
        )
    )
    pipeline.work()
    erasure = receipt(pipeline)
    assert (erasure.state, erasure.reason) == (r.FINISHED, None)


@pytest.mark.slow
@pytest.mark.parametrize("erase", [erase_message, erase_session])
def test_a_line_of_a_card_and_a_representation_are_found(
    open_pipeline: OpenPipeline,
    monkeypatch: pytest.MonkeyPatch,
    erase: Callable[[Pipeline, r.Message], None],
) -> None:
    """A line of a card without a prefix, and a note of generation 1 in other words."""
    pipeline = open_pipeline(DREAM_ENABLED="false")  # a dream would write the card again
    message_rows = pipeline.say("s", ("alice", "I own a quokka."))
    pipeline.say("kept", ("alice", "I like tea."))
    pipeline.work()

    def plant(tx: Transaction) -> None:
        lines = ["I own a quokka.", "HOBBY: I like tea.", "keeps a marsupial"]
        alice = message_rows[0].author_key
        tx.cards.save(
            r.Card(
                workspace_key=message_rows[0].workspace_key,
                observer_key=alice,
                target="alice",
                lines=lines,
                updated_at=pipeline.clock(),
            )
        )
        note = r.Metamessage(
            uid=new_uid(),
            workspace_key=message_rows[0].workspace_key,
            owner_key=alice,
            label=metamessages.REPRESENTATION_LABEL,
            content="They keep a marsupial.",
            created_at=pipeline.clock(),
        )
        tx.rows.put([note, replace(note, uid=new_uid(), label="mine", content="a note")])

    pipeline.rt.storage.write(plant)
    pipeline.clock.advance(hours=1)
    with monkeypatch.context() as patched:
        patched.setattr(cards, "remove_lines", lambda *_: None)
        patched.setattr(cards, "remove_unquoted", lambda *_: None)
        patched.setattr(notes, "remove_representations", lambda *_: None)
        erase(pipeline, message_rows[0])
        pipeline.work()
    left = "still left of erased rows: lines of cards, representations in metamessages"
    assert left in (task_of(pipeline).last_error or "")
    assert receipt(pipeline).state == r.ERASING
    pipeline.clock.advance(hours=1)
    pipeline.work()
    assert receipt(pipeline).state == r.FINISHED
    assert card_service.get(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None) == [
        "HOBBY: I like tea."
    ]
    with pipeline.rt.storage.read() as tx:
        assert [note.content for note in tx.rows.page(r.Metamessage)] == ["a note"]


def opened(open_pipeline: OpenPipeline, index: ExternalIndex) -> Pipeline:
    return open_pipeline(
        LengthEmbedder("lengths-1", Capability.SEMANTIC),
        index,
        EMBEDDER="lengths",
        VECTOR_STORE_TYPE="outside",
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["message", "peer", "session", "workspace"])
def test_vectors_that_stay_in_an_outside_index_are_found(
    open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    index = ExternalIndex()
    pipeline = opened(open_pipeline, index)
    message_rows = pipeline.say("s", ("alice", "I own a quokka."))
    pipeline.work()
    with monkeypatch.context() as patched:
        patched.setattr(index, "delete", lambda *_: None)
        patched.setattr(index, "drop", lambda *_: None)
        if kind == "workspace":
            deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE, with_sessions=True)
        else:
            {"message": erase_message, "peer": erase_peer, "session": erase_session}[kind](
                pipeline, message_rows[0]
            )
        pipeline.work()
        assert receipt(pipeline).state in (r.ACCEPTED, r.ERASING)
        assert "vector" in (task_of(pipeline).last_error or "")
    pipeline.clock.advance(hours=1)
    pipeline.work()
    assert receipt(pipeline).state == r.FINISHED
    assert index.rows == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["message", "peer", "session", "workspace"])
def test_traces_of_the_workspace_are_removed_from_the_file(
    open_pipeline: OpenPipeline, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "traces.jsonl"
    pipeline = open_pipeline(REASONING_TRACES_FILE=str(path))
    message_rows = pipeline.say("s", ("alice", "I own a quokka."))
    pipeline.work()

    def line(workspace: str, text: str, minutes: int) -> str:
        pipeline.clock.advance(minutes=minutes)
        time = pipeline.clock().isoformat()
        return (
            f'{{"time":"{time}","workspace":"{workspace}","duration_ms":60000,"output":"{text}"}}\n'
        )

    path.write_text(line(WORKSPACE, "a quokka", 0) + line("other", "tea", 0) + '{"time": "a quo')
    pipeline.clock.advance(minutes=1)
    if kind == "workspace":
        deletion.delete_workspace(pipeline.rt, PRINCIPAL, WORKSPACE, with_sessions=True)
    else:
        {"message": erase_message, "peer": erase_peer, "session": erase_session}[kind](
            pipeline, message_rows[0]
        )
    with path.open("a") as file:
        file.write("\n" + line(WORKSPACE, "began later", 2))
    path.chmod(0o640)
    pipeline.work()
    assert receipt(pipeline).state == r.FINISHED
    text = path.read_text()
    assert "quo" not in text
    assert ("tea" in text, "began later" in text) == (True, True)
    assert path.stat().st_mode & 0o777 == 0o640
