"""Something of erased rows is planted in each place that an erasure searches, just before it is
searched: it is found, and the receipt is `done` only after it is gone.

On the storage without foreign keys: they prevent most of these rows elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec.structs import fields, replace

from memservice.domain import records as r
from memservice.domain.filters import TRUE, equals
from memservice.domain.ids import fingerprint, new_uid
from memservice.pipeline.deletion import checking
from memservice.services import deletion, dream_changes, indexing
from memservice.services.erasure import mentions, messages, peers, receipts, searches
from memservice.services.erasure.erased import Erased
from memservice.services.supersession import REASON
from memservice.services.tasks import kinds, outbox
from memservice.services.v1 import metamessages
from memservice.spi.capabilities import Capability
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction
from memservice.spi.text import TextRow
from memservice.spi.vectors import VectorRow
from services.pipeline.conftest import OpenPipeline
from support.pipeline.fakes import ExternalIndex, LengthEmbedder
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

TARGETS = {"message": r.Message, "peer": r.Peer, "session": r.Session, "workspace": r.Workspace}
"""Kind of erasure → the record that it erases."""
IN_BATCHES = {
    "lines of cards",
    "lines of cards in dreams",
    "reasons of supersession",
    "representations in metamessages",
    "sources of conclusions",
    "text index",
    "vector index",
    "vector index outside the storage",
}
"""Places that an erasure in batches searches after each batch."""


@pytest.fixture
def store_uri() -> str:
    return "memory://"


@dataclass
class Example:
    """What two peers said in two sessions, before one message, peer, session or workspace is
    erased."""

    pipeline: Pipeline
    kind: str
    message: r.Message
    conclusion: r.Conclusion
    tea: r.Conclusion

    def __post_init__(self) -> None:
        self.uids = {self.message.uid, self.conclusion.uid}

    @classmethod
    def stored(cls, pipeline: Pipeline, kind: str) -> Example:
        pipeline.say("kept", ("bob", "I paint boats."))
        tea, quokka = pipeline.say("s", ("alice", "I like tea."), ("alice", "I own a quokka."))
        pipeline.work()
        rows = {row.content: row for row in pipeline.conclusions("alice")}
        pipeline.clock.advance(hours=1)
        return cls(pipeline, kind, quokka, rows[quokka.content], rows[tea.content])

    def key(self) -> int:
        """Of what is erased."""
        message = self.message
        return {
            "message": message.key,
            "peer": message.author_key,
            "session": message.session_key,
            "workspace": message.workspace_key,
        }[self.kind]

    def erase(self) -> None:
        rt = self.pipeline.rt
        if self.kind == "message":
            messages.delete(rt, PRINCIPAL, WORKSPACE, "s", self.message.uid)
        elif self.kind == "peer":
            peers.erase(rt, PRINCIPAL, WORKSPACE, "alice")
        elif self.kind == "session":
            deletion.delete_session(rt, PRINCIPAL, WORKSPACE, "s")
        else:
            deletion.delete_workspace(rt, PRINCIPAL, WORKSPACE, with_sessions=True)

    def receipt(self) -> receipts.Receipt:
        with self.pipeline.rt.storage.read() as tx:
            (erasure,) = tx.erasures.page(equals(kind=self.kind))
            return receipts.receipt(tx, erasure)

    def work(self) -> None:
        """Until the erasure has ended."""
        for _ in range(20):
            self.pipeline.work()
            if self.receipt().state in (r.FINISHED, r.FAILED):
                return
            self.pipeline.clock.advance(hours=6)


Plant = Callable[[Example, Transaction], None]
Remains = Callable[[Example, Transaction], bool]


@contextmanager
def planted(example: Example, plant: Plant, name: str) -> Iterator[set[str]]:
    """Plant something when the erasure is about to search, once. Returns the names of the places
    in which a search found something."""
    names: set[str] = set()
    search, again, left_of_batch = checking.search, checking.again, searches.left_of_batch
    waiting = [plant]

    def grow(*arguments: Any) -> None:
        if waiting:
            example.pipeline.rt.storage.write(partial(waiting.pop(), example))

    def planting_search(*arguments: Any, **named: Any) -> Any:
        grow()
        return search(*arguments, **named)

    def planting_batch(rt: Any, erased: Erased) -> list[str]:
        if name in IN_BATCHES and example.uids & erased.uids:
            grow()
        return left_of_batch(rt, erased)

    def noting(task: r.Task, left: Sequence[str], *arguments: Any, **named: Any) -> Any:
        names.update(left)
        return again(task, left, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "search", planting_search)
        patch.setattr(checking, "again", noting)
        patch.setattr(searches, "left_of_batch", planting_batch)
        yield names
    assert not waiting, "nothing was planted"


def check(example: Example, plant: Plant, remains: Remains, name: str) -> None:
    with planted(example, plant, name) as names:
        example.erase()
        example.work()
    assert name in names
    receipt = example.receipt()
    with example.pipeline.rt.storage.read() as tx:
        is_left = remains(example, tx)
    if is_left:
        assert (receipt.state, receipt.finished_at) == (r.FAILED, None)
        assert name in str(receipt.reason)
    else:
        assert (receipt.state, receipt.reason) == (r.FINISHED, None)


def new_row(record: type[Any], now: datetime, **values: Any) -> Any:
    """A row with these values and any others."""
    hints = get_type_hints(record)
    samples: dict[Any, Callable[[], Any]] = {str: new_uid, int: int, datetime: lambda: now}
    for item in fields(record):
        if item.required and item.name not in values:
            values[item.name] = samples.get(hints[item.name], dict)()
    return record(**values)


REFERRING = [
    (kind, record, name)
    for kind, target in TARGETS.items()
    for record in searches.BY_TABLE
    if record is not r.Space  # a vector index does not know a planted one
    for name in sorted(
        field for field in record.__struct_fields__ if searches.REFERENCES.get(field) is target
    )
]
"""Kind of erasure, and a field that can name what it erases."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "record", "name"),
    REFERRING,
    ids=[f"{kind}-{BY_RECORD[record].name}-{name}" for kind, record, name in REFERRING],
)
def test_a_row_that_names_what_is_erased_is_found(
    pipeline: Pipeline, kind: str, record: type[Any], name: str
) -> None:
    example = Example.stored(pipeline, kind)
    columns = set(record.__struct_fields__)
    values: dict[str, Any] = {name: example.key()}
    if "workspace_key" in columns:
        values.setdefault("workspace_key", example.message.workspace_key)
    if record is r.Message:
        values.setdefault("session_key", example.message.session_key)
    elif record is r.Task:
        values |= {"kind": kinds.REPRESENTATION, "not_before": r.NEVER}

    def plant(example: Example, tx: Transaction) -> None:
        tx.rows.put([new_row(record, pipeline.clock(), **values)])

    def remains(example: Example, tx: Transaction) -> bool:
        return any(getattr(row, name) == example.key() for row in tx.rows.page(record, TRUE))

    check(example, plant, remains, BY_RECORD[record].name)


def kept_session(tx: Transaction) -> r.Session:
    (session,) = tx.rows.page(r.Session, equals(slug="kept"))
    return session


def idempotency_record(example: Example, tx: Transaction) -> None:
    of_message = example.kind == "message"
    session_key = example.message.session_key if of_message else kept_session(tx).key
    tx.rows.put(
        [
            new_row(
                r.IdempotencyKey,
                example.pipeline.clock(),
                workspace_key=example.message.workspace_key,
                session_key=session_key,
                message_keys=[example.message.key],
            )
        ]
    )


def in_idempotency_record(example: Example, tx: Transaction) -> bool:
    return any(example.message.key in row.message_keys for row in tx.rows.page(r.IdempotencyKey))


def card_line(example: Example, tx: Transaction) -> None:
    tx.rows.delete(r.Card, equals(target="alice"))
    tx.rows.put(
        [
            new_row(
                r.Card,
                example.tea.created_at,
                workspace_key=example.message.workspace_key,
                observer_key=example.message.author_key,
                target="alice",
                lines=["HOBBY: I own a quokka."],
            )
        ]
    )


def in_card(example: Example, tx: Transaction) -> bool:
    return any("quokka" in repr(card.lines) for card in tx.rows.page(r.Card))


QUOKKA = "HOBBY: I own a quokka."


def held_dream(example: Example, tx: Transaction) -> None:
    proposal = {"reads": [example.tea.uid], "card": [QUOKKA], "created": [], "superseded": []}
    dream(example, tx, r.HELD, {dream_changes.PROPOSAL: proposal})


def stored_dream(example: Example, tx: Transaction) -> None:
    card = {"before": [QUOKKA], "given": [], "after": ["HOBBY: I like tea."]}
    changes = {"created": [], "superseded": [], "card": card}
    dream(example, tx, r.DONE, {dream_changes.CHANGES: changes})


def dream(example: Example, tx: Transaction, state: str, payload: dict[str, Any]) -> None:
    at = example.tea.created_at
    tx.rows.put(
        [
            new_row(
                r.Task,
                at,
                kind=kinds.DREAM,
                workspace_key=example.message.workspace_key,
                observer_key=example.message.author_key,
                observed_key=example.message.author_key,
                payload={"type": "omni", "session": None, **payload},
                state=state,
                not_before=r.NEVER,
                finished_at=at,
            )
        ]
    )


def in_dream(example: Example, tx: Transaction) -> bool:
    dreams = tx.rows.page(r.Task, equals(kind=kinds.DREAM))
    assert dreams, "only the lines are removed"
    return any("quokka" in repr(task.payload) for task in dreams)


def reason(example: Example, tx: Transaction) -> None:
    """The reason why something else was superseded quotes the erased conclusion."""
    tx.rows.put(
        [
            replace(
                example.tea,
                key=0,
                uid=new_uid(),
                content="I like milk.",
                fingerprint=fingerprint("I like milk."),
                session_key=None,
                session=None,
                message_keys=[],
                state=r.SUPERSEDED,
                superseded_at=example.tea.created_at,
                internal={REASON: "who owns a quokka likes tea"},
            )
        ]
    )


def in_reason(example: Example, tx: Transaction) -> bool:
    (row,) = tx.rows.page(r.Conclusion, equals(content="I like milk."))
    return REASON in row.internal


def representation(example: Example, tx: Transaction) -> None:
    tx.rows.put(
        [
            new_row(
                r.Metamessage,
                example.tea.created_at,
                workspace_key=example.message.workspace_key,
                owner_key=example.message.author_key,
                label=metamessages.REPRESENTATION_LABEL,
            )
        ]
    )


def in_representation(example: Example, tx: Transaction) -> bool:
    return bool(tx.rows.count(r.Metamessage, TRUE))


def source_message(example: Example, tx: Transaction) -> None:
    (row,) = tx.rows.page(r.Conclusion, equals(content="I paint boats."))
    keys = [*row.message_keys, example.message.key]
    tx.rows.change(r.Conclusion, equals(key=row.key), message_keys=keys)


def source_conclusion(example: Example, tx: Transaction) -> None:
    (row,) = tx.rows.page(r.Conclusion, equals(content="I paint boats."))
    uids = [example.conclusion.uid]
    row = replace(row, key=0, uid=new_uid(), level=r.DEDUCTIVE, source_ids=uids, message_keys=[])
    tx.rows.put([row])


def in_sources(example: Example, tx: Transaction) -> bool:
    return any(
        example.message.key in row.message_keys or example.conclusion.uid in (row.source_ids or ())
        for row in tx.rows.page(r.Conclusion)
    )


def index_task(example: Example, tx: Transaction) -> None:
    message = example.message
    task = outbox.index(example.pipeline.rt, message.workspace_key, [message.key])
    tx.tasks.add([replace(task, not_before=r.NEVER, unit="index:held")])


def quoting_dream(example: Example, tx: Transaction) -> None:
    proposal = {"reads": [example.conclusion.uid], "card": None, "created": [], "superseded": []}
    dream(example, tx, r.HELD, {dream_changes.PROPOSAL: proposal})


def in_task(example: Example, tx: Transaction) -> bool:
    return any(
        example.message.key in task.payload.get("keys", ())
        or example.conclusion.uid in repr(task.payload)
        for task in tx.rows.page(r.Task)
        if task.kind != kinds.ERASE
    )


def names_in_erasure(example: Example, tx: Transaction) -> None:
    """In the task of the erasure itself, or in one of a peer of the erased workspace."""
    if example.kind == "workspace":
        task = replace(outbox.index(example.pipeline.rt, 0, []), kind=kinds.ERASE, unit="erase:x")
        payload = {"peer": example.message.author_key, "workspace": example.message.workspace_key}
        tx.tasks.add([replace(task, workspace_key=None, payload=payload, not_before=r.NEVER)])
        (erasure,) = tx.erasures.page()
        tx.rows.put([replace(erasure, key=0, uid=new_uid(), kind="peer", task_uid=task.uid)])
    (erasure, *_) = tx.erasures.page(equals(kind="peer"))
    (task,) = tx.rows.page(r.Task, equals(uid=erasure.task_uid))
    plan = {"names": ["Alice Example"], "through": mentions.newest(tx)}
    tx.rows.change(r.Task, equals(key=task.key), payload={**task.payload, outbox.REDACTION: plan})


def with_names(example: Example, tx: Transaction) -> bool:
    return any("Alice" in repr(task.payload) for task in tx.rows.page(r.Task))


BODY = '{"data": {"observed": "alice"}}'


def delivery(example: Example, tx: Transaction) -> None:
    values = {"workspace_key": example.message.workspace_key, "body": BODY}
    tx.rows.put([new_row(r.Delivery, example.tea.created_at, **values)])


def webhook_task(example: Example, tx: Transaction) -> None:
    task = outbox.index(example.pipeline.rt, example.message.workspace_key, [])
    payload = {"endpoint": 1, "body": BODY}
    task = replace(task, kind=kinds.WEBHOOK, payload=payload, unit="webhook:x")
    tx.tasks.add([replace(task, not_before=r.NEVER, created_at=example.tea.created_at)])


def in_event(example: Example, tx: Transaction) -> bool:
    return bool(
        tx.rows.count(r.Delivery, TRUE) or tx.rows.count(r.Task, equals(kind=kinds.WEBHOOK))
    )


def api_key(example: Example, tx: Transaction) -> None:
    (erasure,) = tx.erasures.page()
    values = {"workspace": WORKSPACE, f"{example.kind}_uid": erasure.target_uid}
    tx.rows.put([new_row(r.ApiKey, example.pipeline.clock(), **values)])


def valid_key(example: Example, tx: Transaction) -> bool:
    return any(row.revoked_at is None for row in tx.rows.page(r.ApiKey))


def text(example: Example, tx: Transaction) -> None:
    message, index = example.message, example.pipeline.rt.storage.text
    row = TextRow(message.key, ["quokka"], author=message.author_key, at=message.created_at)
    index.add(tx, indexing.MESSAGE, message.workspace_key, [row])


def in_text_index(example: Example, tx: Transaction) -> bool:
    message = example.message
    return bool(
        example.pipeline.rt.storage.text.indexed(
            tx, indexing.MESSAGE, message.workspace_key, [message.key]
        )
    )


def vector(example: Example, tx: Transaction) -> None:
    rt, row = example.pipeline.rt, example.conclusion
    spaces = tx.spaces.of_workspace(row.workspace_key)
    (space,) = [space for space in spaces if space.kind == indexing.CONCLUSION]
    (vector,) = rt.embedder.embed([row.content])
    rt.vectors.upsert(tx, space, [VectorRow(row.key, row.uid, vector)])


def in_vector_index(example: Example, tx: Transaction) -> bool:
    rt, row = example.pipeline.rt, example.conclusion
    return any(
        rt.vectors.fetch(tx, space, [row.key])
        for space in tx.spaces.of_workspace(row.workspace_key)
        if space.kind == indexing.CONCLUSION
    )


PLACES: Sequence[tuple[str, Plant, Remains, Sequence[str]]] = (
    (
        "messages of idempotency records",
        idempotency_record,
        in_idempotency_record,
        ("message", "peer", "session"),
    ),
    ("lines of cards", card_line, in_card, ("message", "session")),
    ("lines of cards in dreams", held_dream, in_dream, ("message", "session")),
    ("lines of cards in dreams", stored_dream, in_dream, ("message", "session")),
    ("reasons of supersession", reason, in_reason, ("message", "session")),
    (
        "representations in metamessages",
        representation,
        in_representation,
        ("message", "session"),
    ),
    ("sources of conclusions", source_message, in_sources, ("message", "peer", "session")),
    ("sources of conclusions", source_conclusion, in_sources, ("message", "peer", "session")),
    ("tasks", index_task, in_task, ("message", "peer", "session")),
    ("tasks", quoting_dream, in_task, ("message",)),
    ("names in tasks of erasures", names_in_erasure, with_names, ("peer", "workspace")),
    ("events for webhooks", delivery, in_event, ("peer",)),
    ("events for webhooks", webhook_task, in_event, ("peer",)),
    ("api_keys", api_key, valid_key, ("peer", "session", "workspace")),
    ("text index", text, in_text_index, tuple(TARGETS)),
    ("vector index", vector, in_vector_index, ("message", "peer", "session")),
)
"""The name of a place, how something is planted there, whether it is there, and the kinds of
erasure that search it by keys of their own. Cards, dreams, reasons and notes of an erased peer, and
everything of an erased workspace, are erased as rows."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "plant", "remains"),
    [
        pytest.param(kind, name, plant, remains, id=f"{kind}-{plant.__name__}")
        for name, plant, remains, erasures in PLACES
        for kind in erasures
    ],
)
def test_other_remains_are_found(
    pipeline: Pipeline, kind: str, name: str, plant: Plant, remains: Remains
) -> None:
    check(Example.stored(pipeline, kind), plant, remains, name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["message", "peer", "session"])
def test_vectors_in_an_outside_index_are_found(open_pipeline: OpenPipeline, kind: str) -> None:
    index = ExternalIndex()
    embedder = LengthEmbedder("lengths-1", Capability.SEMANTIC)
    pipeline = open_pipeline(embedder, index, EMBEDDER="lengths", VECTOR_STORE_TYPE="outside")
    example = Example.stored(pipeline, kind)
    key = example.message.key
    (position,) = [
        position
        for position in index.rows
        if position[1] == key and is_of_messages(pipeline, position[0])
    ]
    row = index.rows[position]

    def plant(example: Example, tx: Transaction) -> None:
        index.rows[position] = row

    check(example, plant, lambda *_: position in index.rows, "vector index outside the storage")


def is_of_messages(pipeline: Pipeline, space_key: int) -> bool:
    with pipeline.rt.storage.read() as tx:
        (space,) = tx.rows.page(r.Space, equals(key=space_key))
    return space.kind == indexing.MESSAGE


@pytest.mark.slow
@pytest.mark.parametrize("kind", TARGETS)
def test_traces_are_found(open_pipeline: OpenPipeline, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "traces.jsonl"
    pipeline = open_pipeline(REASONING_TRACES_FILE=str(path))
    example = Example.stored(pipeline, kind)
    at = example.tea.created_at.isoformat()
    trace = f'{{"time":"{at}","workspace":"{WORKSPACE}","duration_ms":1,"output":"a quokka"}}\n'

    def plant(example: Example, tx: Transaction) -> None:
        path.write_text(trace)

    check(example, plant, lambda *_: "quokka" in path.read_text(), "file of traces")


def test_every_place_is_tried() -> None:
    names = {name for name, *_ in PLACES} | {BY_RECORD[record].name for _, record, _ in REFERRING}
    others = {"vector index outside the storage", "file of traces", "workspaces", "spaces"}
    assert names | others == {search.name for search in searches.SEARCHES}
