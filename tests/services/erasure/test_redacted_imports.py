"""Imports of exports that are older than an erasure with `mentions=redact`: the names of the erased
peer do not come back in what others said."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.filters import TRUE, equals
from memservice.domain.ids import new_uid
from memservice.domain.text.mentions import MARK
from memservice.services import cards, dream_changes, peers
from memservice.services.erasure import peers as erasure
from memservice.services.tasks import kinds
from memservice.services.transfer import importing
from memservice.services.transfer.erased import ErasedRows
from memservice.services.transfer.lines import Line, format_line
from memservice.services.transfer.record_formats import RecordFormat
from memservice.services.v1 import metamessages
from memservice.spi.storage import Transaction
from support.erasure.imports import Open, comparable, everything, exported, load
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

NAME = "Roberta Quokka"
SECONDS = 0.5
"""How long an import's transaction stays open while an erasure is requested."""


@pytest.fixture
def pipeline(open_pipeline: Open) -> Pipeline:
    """Alice and Carol speak of Bob, whose name is Roberta Quokka: in `talk` he is a member, in
    `other` he is not."""
    pipeline = open_pipeline()
    pipeline.say("talk", ("alice", "I like tea."), ("bob", "I sing."))
    peers.update(pipeline.rt, PRINCIPAL, WORKSPACE, "bob", {"name": NAME}, None)
    drafts = [("alice", f"I have {n} boats with {NAME}.") for n in range(6)]
    pipeline.say("talk", *drafts, ("carol", "I know Bob."), ("bob", "I row."), ("carol", "I row."))
    pipeline.say("talk", *[("carol", f"I see {n} whales.") for n in range(14)])
    pipeline.say("other", ("carol", f"I know another {NAME}."), ("alice", "I sleep."))
    pipeline.work()
    card = [f"Rows with {NAME}", "Called Al"]
    cards.put(pipeline.rt, PRINCIPAL, WORKSPACE, "alice", None, card)
    pipeline.rt.storage.write(lambda tx: add_other_texts(pipeline, tx))
    return pipeline


def add_other_texts(pipeline: Pipeline, tx: Transaction) -> None:
    """Of generation 1, a summary, and the premises of a conclusion."""
    assert tx.rows.change(r.Summary, TRUE, content=f"Alice rows with {NAME}.")
    (alice,) = tx.rows.page(r.Peer, equals(slug="alice"))
    talk, other = (tx.rows.page(r.Session, equals(slug=slug))[0].key for slug in ("talk", "other"))
    labels = ("note", metamessages.SUMMARY_LABEL + r.SHORT)
    tx.rows.put(
        [
            r.Metamessage(
                uid=new_uid(),
                label=label,
                content=f"Rows with {NAME}.",
                workspace_key=alice.workspace_key,
                owner_key=alice.key,
                session_key=session,
                created_at=pipeline.clock(),
            )
            for label, session in ((labels[0], None), (labels[0], other), (labels[1], talk))
        ]
    )
    row = next(row for row in tx.rows.page(r.Conclusion) if "boats" in row.content)
    internal = {**row.internal, "premises": [f"{NAME} rows."]}
    tx.rows.change(r.Conclusion, equals(key=row.key), internal=internal)


def erase(pipeline: Pipeline, choice: str = "redact") -> None:
    erasure.erase(pipeline.rt, PRINCIPAL, WORKSPACE, "bob", choice)
    pipeline.work()


def vectors(pipeline: Pipeline, workspace: str) -> Counter[tuple[str, str]]:
    """Number of vectors, by kind and vector."""
    rows = map(json.loads, exported(pipeline, workspace))
    return Counter(
        (row["space"]["kind"], json.dumps(row["vector"]))
        for row in rows
        if row["type"] == "vectors"
    )


def summaries(pipeline: Pipeline, workspace: str) -> dict[str, str]:
    """Contents by kind, of `talk`."""
    with pipeline.rt.storage.read() as tx:
        (session,) = (
            row
            for row in tx.rows.page(r.Session, equals(slug="talk"))
            if (owner := tx.workspaces.by_key(row.workspace_key)) and owner.slug == workspace
        )
        return {kind: row.content for kind, row in tx.summaries.of_session(session.key).items()}


def without_marks(pipeline: Pipeline, workspace: str) -> list[Any]:
    """`comparable` without the positions at which members joined: those of members that were stored
    before messages were left out stay as they are in the file."""
    rows = comparable(pipeline, workspace)
    for row in rows:
        row.pop("joined_seq", None)
    return rows


@pytest.mark.every_storage("postgres")
@pytest.mark.slow
def test_names_do_not_come_back_under_another_name(pipeline: Pipeline) -> None:
    lines = exported(pipeline)
    erase(pipeline)
    left = comparable(pipeline)
    assert MARK in json.dumps(left)
    load(pipeline, lines, "copy")
    pipeline.work()
    assert comparable(pipeline, "copy") == left
    assert vectors(pipeline, "copy") == vectors(pipeline, WORKSPACE)
    assert summaries(pipeline, "copy").keys() == summaries(pipeline, WORKSPACE).keys() != set()
    assert NAME not in json.dumps(summaries(pipeline, "copy"))
    assert not any(load(pipeline, lines, "copy").stored.values())
    pipeline.work()
    assert comparable(pipeline, "copy") == left


@pytest.mark.slow
def test_only_sessions_without_the_erased_peer_name_another_of_the_same_name(
    pipeline: Pipeline,
) -> None:
    lines = exported(pipeline)
    erase(pipeline)
    load(pipeline, lines, "copy")
    pipeline.work()
    rows = [row for row in comparable(pipeline, "copy") if NAME in json.dumps(row)]
    assert rows
    assert {row["session"] for row in rows if row["type"] == "messages"} == {"other"}
    assert {row["type"] for row in rows} <= {"messages", "conclusions", "metamessages"}


@pytest.mark.slow
def test_names_come_back_if_they_were_kept(pipeline: Pipeline) -> None:
    lines = exported(pipeline)
    erase(pipeline, "keep")
    load(pipeline, lines, "copy")
    assert f"boats with {NAME}" in everything(pipeline)
    assert MARK not in everything(pipeline)


@pytest.mark.slow
def test_what_dreams_proposed_from_names_does_not_come_back(pipeline: Pipeline) -> None:
    with pipeline.rt.storage.read() as tx:
        row = next(row for row in tx.rows.page(r.Conclusion) if "boats" in row.content)
    pair = {"observer_key": row.observer_key, "observed_key": row.observed_key}
    proposal: dict[str, Any] = {
        "reason": f"{NAME} rows",
        "created": [],
        "superseded": [],
        "card": None,
    }
    values: dict[str, Any] = {
        "workspace_key": row.workspace_key,
        "kind": kinds.DREAM,
        "unit": "",
        "state": r.FAILED,
        "created_at": pipeline.clock(),
        "not_before": pipeline.clock(),
        **pair,
    }
    tasks = [
        r.Task(
            uid=new_uid(), payload={dream_changes.PROPOSAL: {**proposal, "reads": reads}}, **values
        )
        for reads in ([], [row.uid])
    ]
    pipeline.rt.storage.write(lambda tx: tx.rows.put(tasks))
    lines = exported(pipeline)
    erase(pipeline)
    report = load(pipeline, lines, "copy")
    assert report.left_out["tasks"] == 1
    remaining = [json.loads(line) for line in exported(pipeline, "copy")]
    (task,) = [
        line for line in remaining if line["type"] == "tasks" and line["kind"] == kinds.DREAM
    ]
    assert task["payload"][dream_changes.PROPOSAL]["reason"] == f"{MARK} rows"


@pytest.mark.slow
@pytest.mark.parametrize("workspace", [WORKSPACE, "copy"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [("messages", f"I have 0 boats with {NAME}."), ("conclusions", ""), ("vectors", "")],
)
def test_a_peer_is_erased_while_its_file_is_imported(
    pipeline: Pipeline, kind: str, text: str, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its own line, and before a line of another peer, which names it."""
    lines = exported(pipeline)
    filtered = ErasedRows.remaining
    first = next(
        line for line in lines if f'"type":"{kind}"'.encode() in line and text.encode() in line
    )
    erasures: list[Any] = []

    def with_erasure(self: ErasedRows, batches: Any) -> Iterator[Any]:
        for batch_kind, batch in filtered(self, batches):
            if format_line(batch[0]) == first:
                erasures.append(erasure.erase(pipeline.rt, PRINCIPAL, workspace, "bob", "redact"))
                pipeline.work()
            assert not erasures or format_line(batch[0]) == first, "nothing more is stored"
            yield batch_kind, batch

    with monkeypatch.context() as patch:
        patch.setattr(importing, "BATCH_SIZE", 1)
        patch.setattr(ErasedRows, "remaining", with_erasure)
        with pytest.raises(Conflict, match="while the import ran: import it again"):
            load(pipeline, lines, "copy")
    assert erasures
    if workspace == "copy":
        load(pipeline, lines, "copy")
        pipeline.work()
        erase(pipeline)
        assert without_marks(pipeline, "copy") == without_marks(pipeline, WORKSPACE)
        assert vectors(pipeline, "copy") == vectors(pipeline, WORKSPACE)


@pytest.mark.every_storage("postgres")
@pytest.mark.slow
def test_an_erasure_replaces_what_an_import_is_about_to_commit(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is requested when the import has looked for erasures and before it commits messages."""
    lines = exported(pipeline)
    refuse_new = ErasedRows.refuse_new
    requests: list[threading.Thread] = []

    def with_request(
        self: ErasedRows, tx: Transaction, record_format: RecordFormat, lines: Sequence[Line]
    ) -> None:
        refuse_new(self, tx, record_format, lines)
        if record_format.record is r.Message and not requests:
            arguments = (pipeline.rt, PRINCIPAL, "copy", "bob", "redact")
            requests.append(threading.Thread(target=erasure.erase, args=arguments))
            requests[0].start()
            requests[0].join(SECONDS)  # it must wait for this transaction

    write = pipeline.rt.storage.write

    def in_turn(*arguments: Any) -> Any:
        """The request is handled before the next transaction of the import."""
        if requests and threading.current_thread() is not requests[0]:
            requests[0].join(10)
        return write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ErasedRows, "refuse_new", with_request)
        patch.setattr(pipeline.rt.storage, "write", in_turn)
        with pytest.raises(Conflict, match="import it again"):
            load(pipeline, lines, "copy")
    requests[0].join(10)
    pipeline.work()
    with pipeline.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug("copy")
        assert workspace is not None
        of_copy = equals(workspace_key=workspace.key)
        texts = [row.content for row in tx.rows.page(r.Message, of_copy)]
    assert f"I have 1 boats with {MARK}." in texts
    assert not any(NAME in text for text in texts if "boats" in text)
