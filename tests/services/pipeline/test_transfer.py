"""Workspaces as files: what travels, what an import makes of it, and that nothing is lost or
doubled on the way."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.services import (
    conclusions,
    corrections,
    deletion,
    indexing,
    messages,
    sessions,
    workspaces,
)
from memservice.services.auth import api_keys
from memservice.services.auth.bounds import bounds_for
from memservice.services.retrieval.search import Search
from memservice.services.tasks.kinds import unit_of
from memservice.services.transfer import export, importing, record_formats
from memservice.services.transfer.copying import MARK, CopyMismatch, copy, require_two
from memservice.services.transfer.export import ExportOptions
from memservice.services.transfer.lines import (
    Line,
    Sum,
    UnreadableExport,
    format_line,
    reading,
    vector_text,
    writing,
)
from memservice.spi.index_filter import IndexFilter
from memservice.spi.schema import TABLES
from memservice.spi.storage import Transaction
from memservice.spi.vectors import VectorRow
from services.pipeline.conftest import OpenPipeline
from support.pipeline.all_tables import Contents, fill, filled_once, rows
from support.pipeline.fakes import ExternalIndex
from support.pipeline.pipeline import PRINCIPAL, Pipeline

pytestmark = pytest.mark.slow

EVERYTHING = ExportOptions(secrets=True)
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def second(open_pipeline: OpenPipeline, other_uri: str) -> Pipeline:
    """An empty store of the other kind."""
    return open_pipeline(DB_CONNECTION_URI=other_uri)


@pytest.fixture
def filled(store_uri: str, open_pipeline: OpenPipeline, contents: Contents) -> Pipeline:
    """A workspace `w` with something in every table, and work that waits."""

    def fill_store(pipeline: Pipeline) -> None:
        fill(pipeline, "w", "talk", turns=8)
        fill(pipeline, "w", "other", turns=8)
        messages.create(
            pipeline.rt, PRINCIPAL, "w", "talk", [messages.Draft("I sold all my apples.", "alice")]
        )

    return filled_once(contents, store_uri, open_pipeline, fill_store)


def exported(
    pipeline: Pipeline, workspace: str = "w", options: ExportOptions = EVERYTHING
) -> list[bytes]:
    return list(export.lines(pipeline.rt, workspace, options))


def body(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def read(lines: list[bytes]) -> list[Line]:
    return [json.loads(line) for line in lines]


def number(pipeline: Pipeline, workspace: str = "w") -> dict[str, int]:
    with pipeline.rt.storage.read() as tx:
        row = tx.workspaces.by_slug(workspace)
        assert row is not None
    return rows(pipeline, workspace_key=row.key)


def without(numbers: dict[str, int]) -> dict[str, int]:
    """But for what stays: tasks that are done, and what was spent."""
    return {name: n for name, n in numbers.items() if name not in ("tasks", "usage")}


def test_every_record_is_exported_or_listed_as_excluded() -> None:
    placed = {
        record_format.record for record_format in record_formats.FORMATS.values()
    } | record_formats.NOT_IN_ROWS
    assert placed == {spec.record for spec in TABLES}


def test_an_export_contains_no_storage_keys(filled: Pipeline) -> None:
    for line in read(exported(filled)):
        assert "key" not in line
        assert not [name for name in line if name.endswith(("_key", "_keys"))], line


def test_an_imported_workspace_equals_the_original(filled: Pipeline, second: Pipeline) -> None:
    lines = exported(filled)
    before = number(filled)
    report = importing.load(second.rt, iter(lines))
    assert body(exported(second)) == body(lines)
    after = number(second)
    assert without(after) == without(before)
    assert report.stored["messages"] == before["messages"]
    assert report.stored["vectors"] == report.stored["conclusions"]


def test_importing_twice_stores_nothing_more(filled: Pipeline, second: Pipeline) -> None:
    lines = exported(filled)
    importing.load(second.rt, iter(lines))
    there = number(second)
    again = importing.load(second.rt, iter(lines))
    assert not any(again.stored.values())
    assert number(second) == there
    assert body(exported(second)) == body(lines)


def test_an_older_export_adds_no_vectors_of_superseded_conclusions(filled: Pipeline) -> None:
    filled.work()
    lines = exported(filled)
    first, *_ = filled.conclusions("alice")
    corrections.invalidate(filled.rt, PRINCIPAL, "w", first.uid)
    filled.work()
    report = importing.load(filled.rt, iter(lines))
    assert report.stored["vectors"] == 0
    with filled.rt.storage.read() as tx:
        space = tx.spaces.active(first.workspace_key, "conclusion")
        assert space is not None
        assert filled.rt.vectors.fetch(tx, space, [first.key]) == {}


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7, 0.95])
def test_an_interrupted_import_continues(filled: Pipeline, second: Pipeline, share: float) -> None:
    lines = exported(filled)
    with pytest.raises(UnreadableExport, match="cut off"):
        importing.load(second.rt, iter(lines[: int(len(lines) * share)]))
    importing.load(second.rt, iter(lines))
    assert body(exported(second)) == body(lines)


def test_an_imported_workspace_is_searched_and_processed(
    filled: Pipeline, second: Pipeline
) -> None:
    """Search, vectors, counters and waiting work are those of a workspace that grew there."""
    importing.load(second.rt, iter(exported(filled)))
    for pipeline in (filled, second):
        pipeline.work()
        with pipeline.rt.storage.read() as tx:
            workspace = tx.workspaces.by_slug("w")
            assert workspace is not None
            everything = bounds_for(tx, PRINCIPAL, workspace)
            hits = Search(pipeline.rt, "sold apples").messages(tx, everything, 5)
            near = Search(pipeline.rt, "sold all my apples").conclusions(tx, everything, 3)
        assert hits[0].content == "I sold all my apples."
        assert "sold" in near[0].conclusion.content


def test_the_order_of_equal_times_is_kept(filled: Pipeline, second: Pipeline) -> None:
    conclusions_created = conclusions.create(
        filled.rt,
        PRINCIPAL,
        "w",
        [conclusions.ConclusionDraft(f"thing {n}", "alice", "bob", "talk") for n in range(20)],
    )
    importing.load(second.rt, iter(exported(filled)))
    with second.rt.storage.read() as tx:
        uids = [
            row.uid for row in tx.rows.page(r.Conclusion, equals(observed="bob", observer="alice"))
        ]
    assert uids[-20:] == [row.uid for row in conclusions_created]


def test_a_workspace_is_imported_under_another_name(filled: Pipeline) -> None:
    """In the same store: rows of its own, and the original untouched."""
    lines = exported(filled)
    report = importing.load(filled.rt, iter(lines), as_slug="copy")
    assert report.workspace == "copy"
    assert body(exported(filled)) == body(lines)
    here, there = number(filled), number(filled, "copy")
    assert without(there) == without(here)
    texts = [
        Counter(
            line.get("content")
            for line in read(exported(filled, name))
            if line["type"] == "messages"
        )
        for name in ("w", "copy")
    ]
    assert texts[0] == texts[1]
    again = importing.load(filled.rt, iter(lines), as_slug="copy")
    assert not again.stored["messages"]
    links = [
        line
        for line in read(exported(filled, "copy"))
        if line["type"] == "conclusions" and line["source_ids"]
    ]
    own = {line["uid"] for line in read(exported(filled, "copy")) if line["type"] == "conclusions"}
    assert all(set(line["source_ids"]) <= own for line in links)


def test_secrets_are_exported_on_request_only(filled: Pipeline) -> None:
    with_secrets, plain = (
        {line["type"] for line in read(exported(filled, options=w))}
        for w in (EVERYTHING, ExportOptions())
    )
    assert with_secrets - plain == {"webhook_endpoints", "deliveries"}
    assert b'"secret"' not in b"".join(exported(filled, options=ExportOptions())[1:])


def test_imported_keys_belong_to_the_same_rows(filled: Pipeline, second: Pipeline) -> None:
    named: dict[str, dict[str, Any]] = {
        "whole": {},
        "peer": {"peer": "alice"},
        "session": {"session": "talk"},
        "of a later session": {"session": "later"},
        "of a session that goes": {"session": "empty"},
    }
    sessions.get_or_create(filled.rt, PRINCIPAL, "w", "empty")
    keys = {
        uid: r.ApiKey(uid=uid.replace(" ", "-"), workspace="w", created_at=NOW, **more)
        for uid, more in named.items()
    }
    stale = r.ApiKey(uid="stale", workspace="w", workspace_uid="of-another", created_at=NOW)
    filled.rt.storage.write(
        lambda tx: tx.rows.put([api_keys.bound(tx, key) for key in keys.values()])
    )
    filled.rt.storage.write(lambda tx: tx.keys.add(stale))
    deletion.delete_session(filled.rt, PRINCIPAL, "w", "empty")
    importing.load(second.rt, iter(exported(filled)))

    def stored(pipeline: Pipeline) -> list[r.ApiKey]:
        with pipeline.rt.storage.read() as tx:
            return [replace(key, key=0) for key in tx.keys.page()]

    there = stored(second)
    assert there == [
        replace(key, session_uid=None) if key.session == "empty" else key
        for key in stored(filled)
        if key.uid != "stale"
    ]
    assert [key.uid for key in there if key.revoked_at is not None] == ["of-a-session-that-goes"]
    assert [key.session_uid is not None for key in there] == [False, False, True, False, False]
    assert all(key.workspace_uid is not None for key in there)
    deletion.delete_workspace(second.rt, PRINCIPAL, "w", with_sessions=True)
    second.work()
    importing.load(second.rt, iter(exported(filled)), respect_erasures=False)
    assert all(key.revoked_at is not None for key in stored(second)), (
        "importing again brings no revoked key back"
    )


def test_without_vectors_in_the_file_they_are_computed(filled: Pipeline, second: Pipeline) -> None:
    lines = exported(filled, options=ExportOptions(vectors=False))
    assert not [line for line in read(lines) if line["type"] in (record_formats.VECTOR, "spaces")]
    importing.load(second.rt, iter(lines))
    second.work()
    original = {
        (line["uid"], line["vector"])
        for line in read(exported(filled))
        if line["type"] == record_formats.VECTOR
    }
    vectors = {
        (line["uid"], line["vector"])
        for line in read(exported(second))
        if line["type"] == record_formats.VECTOR
    }
    assert {uid for uid, _ in original} <= {uid for uid, _ in vectors}


def test_imported_documents_are_found_by_vectors_in_their_collection(
    pipeline: Pipeline, second: Pipeline
) -> None:
    pipeline.say("talk", ("alice", "hello"))

    def shelve(tx: Transaction) -> None:
        (alice,) = tx.rows.page(r.Peer, equals(slug="alice"))
        about: dict[str, Any] = {
            "workspace_key": alice.workspace_key,
            "owner_key": alice.key,
            "created_at": NOW,
        }
        (shelf,) = tx.rows.put([r.NamedCollection(uid=new_uid(), name="shelf", **about)])
        text = "A recipe for lentil soup."
        row = r.Document(uid=new_uid(), collection_key=shelf.key, content=text, **about)
        vectors = indexing.embed_inline(pipeline.rt, [text])
        tasks = indexing.index_documents(
            pipeline.rt, tx, alice.workspace_key, tx.rows.put([row]), vectors
        )
        assert tasks == []

    pipeline.rt.storage.write(shelve)
    importing.load(second.rt, iter(exported(pipeline)))
    with second.rt.storage.read() as tx:
        (document,) = tx.rows.page(r.Document)
        space = tx.spaces.active(document.workspace_key, indexing.DOCUMENT)
        assert space is not None
        (vector,) = second.rt.embedder.embed([document.content], "query")
        hits = second.rt.vectors.query(
            tx, space, vector, 5, IndexFilter(observers=(document.collection_key,))
        )
        assert [hit.key for hit in hits] == [document.key]


def test_rows_being_deleted_are_not_exported(filled: Pipeline) -> None:
    deletion.delete_session(filled.rt, PRINCIPAL, "w", "other")
    kinds = Counter(line["type"] for line in read(exported(filled)))
    assert kinds["sessions"] == 1
    assert {line["session"] for line in read(exported(filled)) if line["type"] == "messages"} == {
        "talk"
    }


def test_a_file_may_be_compressed_or_not(filled: Pipeline, tmp_path: Path) -> None:
    for name in ("w.jsonl", "w.jsonl.gz"):
        with writing(str(tmp_path / name)) as out:
            for line in exported(filled):
                out.write(line)
        with reading(str(tmp_path / name)) as data:
            assert body(list(data)) == body(exported(filled))
    assert gzip.decompress((tmp_path / "w.jsonl.gz").read_bytes()).startswith(b"{")
    assert sorted(path.name for path in tmp_path.glob("w.*")) == ["w.jsonl", "w.jsonl.gz"]


def test_a_copy_is_compared_with_the_original(filled: Pipeline, second: Pipeline) -> None:
    report = copy(export.lines(filled.rt, "w", EVERYTHING), second.rt, "w", EVERYTHING)
    assert report.stored["messages"] == number(filled)["messages"]
    second.say("talk", ("alice", "I live here now."))
    with pytest.raises(CopyMismatch, match="differs from the original"):
        copy(export.lines(filled.rt, "w", EVERYTHING), second.rt, "w", EVERYTHING)


def sealed(lines: list[Line]) -> list[bytes]:
    """Lines between a header and an end, with the end that they need."""
    total, data = Sum(), [format_line(line) for line in lines[:-1]]
    for line in data[1:]:
        total.add(line)
    return [*data, format_line(total.end())]


def test_an_export_of_an_older_release_is_imported(filled: Pipeline, second: Pipeline) -> None:
    """It does not say when messages were stored, nor when conclusions were superseded: that is
    when the successor was recorded, if it is the newer one."""
    lines = read(exported(filled))
    (old, new, *_) = [line for line in lines if line["type"] == "conclusions"]
    old.update(state=r.SUPERSEDED, superseded_by=new["uid"], created_at="2026-01-01T00:00:00Z")
    new.update(superseded_by=None, created_at="2026-01-02T00:00:00Z")
    for line in lines:
        for field in ("superseded_at", "restored_at", "stored_at"):
            line.pop(field, None)
    importing.load(second.rt, iter(sealed(lines)))
    with second.rt.storage.read() as tx:
        row = tx.rows.get(r.Conclusion, equals(uid=old["uid"]))
        items = tx.rows.page(r.Message)
    assert row is not None
    assert (row.state, row.superseded_at) == (r.SUPERSEDED, datetime(2026, 1, 2, tzinfo=UTC))
    assert {message.stored_at for message in items} == {None}


def vectors_of(pipeline: Pipeline, kind: str = "conclusion") -> list[Line]:
    return [
        line
        for line in read(exported(pipeline))
        if line["type"] == record_formats.VECTOR and line["space"]["kind"] == kind
    ]


class TestVectorsOfACopy:
    @pytest.fixture
    def copied(self, filled: Pipeline, second: Pipeline) -> Pipeline:
        copy(export.lines(filled.rt, "w", EVERYTHING), second.rt, "w", EVERYTHING)
        copy(export.lines(filled.rt, "w", EVERYTHING), second.rt, "w", EVERYTHING)
        return second

    def replace(
        self, pipeline: Pipeline, change: Callable[[list[VectorRow]], list[VectorRow]]
    ) -> None:
        def store(tx: Transaction) -> None:
            workspace = tx.workspaces.by_slug("w")
            assert workspace is not None
            (space,) = (
                space
                for space in tx.spaces.of_workspace(workspace.key)
                if space.kind == "conclusion"
            )
            conclusion_rows = tx.rows.page(r.Conclusion, equals(workspace_key=workspace.key))
            vectors = pipeline.rt.vectors.fetch(tx, space, [row.key for row in conclusion_rows])
            own = [row for row in conclusion_rows if row.key in vectors]
            pipeline.rt.vectors.upsert(
                tx, space, change(indexing.vector_rows(own, [vectors[row.key] for row in own]))
            )

        pipeline.rt.storage.write(store)

    def compared(self, filled: Pipeline, copied: Pipeline) -> None:
        copy(export.lines(filled.rt, "w", EVERYTHING), copied.rt, "w", EVERYTHING)

    def test_can_be_left_out_and_added_later(self, filled: Pipeline, second: Pipeline) -> None:
        plain = ExportOptions(vectors=False, secrets=True)
        copy(export.lines(filled.rt, "w", plain), second.rt, "w", plain)
        copy(export.lines(filled.rt, "w", plain), second.rt, "w", plain)
        assert not vectors_of(second)
        assert copy(export.lines(filled.rt, "w", EVERYTHING), second.rt, "w", EVERYTHING).stored[
            "vectors"
        ] == len(vectors_of(filled))

    def test_a_damaged_vector_is_detected(self, filled: Pipeline, copied: Pipeline) -> None:
        def damaged(rows: list[VectorRow]) -> list[VectorRow]:
            vector = rows[3].vector.copy()
            vector[7] += np.float32(0.01)
            return [replace(rows[3], vector=vector)]

        self.replace(copied, damaged)
        with pytest.raises(CopyMismatch, match=r"in vectors of kind conclusion\."):
            self.compared(filled, copied)

    def test_exchanged_vectors_are_detected(self, filled: Pipeline, copied: Pipeline) -> None:
        def turned(rows: list[VectorRow]) -> list[VectorRow]:
            return [
                replace(row, vector=other.vector)
                for row, other in zip(rows, rows[::-1], strict=True)
            ]

        self.replace(copied, turned)
        with pytest.raises(CopyMismatch, match=r"in vectors of kind conclusion\."):
            self.compared(filled, copied)

    def test_vectors_of_another_length_are_accepted(
        self, filled: Pipeline, copied: Pipeline
    ) -> None:
        """An index may keep directions only."""
        self.replace(
            copied,
            lambda rows: [replace(row, vector=row.vector * np.float32(3)) for row in rows],
        )
        self.compared(filled, copied)


class TestVectorsOfAnotherEmbedder:
    def by_another(self, filled: Pipeline, *more: str) -> list[bytes]:
        """The export, with vectors of dimension 3."""
        if more:
            conclusions.create(
                filled.rt,
                PRINCIPAL,
                "w",
                [conclusions.ConclusionDraft(text, "alice", "bob", "talk") for text in more],
            )
        other = {"embedder": "other-1", "dimension": 3}
        lines = read(exported(filled))
        for line in lines:
            if line["type"] == "spaces":
                line.update(other)
            elif line["type"] == record_formats.VECTOR:
                line.update(
                    space={**line["space"], **other},
                    vector=vector_text(np.array([1, 2, 3], np.float32)),
                )
        return sealed(lines)

    def test_are_counted_and_missing_ones_computed(
        self, filled: Pipeline, second: Pipeline
    ) -> None:
        importing.load(second.rt, iter(exported(filled)))
        second.work()
        before = vectors_of(second)
        lines = self.by_another(filled, "Bob keeps bees.", "Bob sold a boat.")
        report = importing.load_file(second.rt, lines)
        kinds = Counter(
            line["space"]["kind"] for line in read(lines) if line["type"] == record_formats.VECTOR
        )
        assert {
            (o.kind, o.number, o.embedder, o.local_embedder) for o in report.rejected_vectors
        } == {(kind, number, "other-1", second.rt.embedder.id) for kind, number in kinds.items()}
        assert report.stored["conclusions"] == 2
        second.work()
        assert len(vectors_of(second)) == len(before) + 2

    def test_are_named_as_the_cause_of_a_mismatch(self, filled: Pipeline, second: Pipeline) -> None:
        importing.load(second.rt, iter(exported(filled)))
        with pytest.raises(
            CopyMismatch,
            match=r"by other-1, while the target uses .*memservice reembed --workspace w",
        ):
            copy(iter(self.by_another(filled)), second.rt, "w", EVERYTHING)


class TestAnIndexThatIsAway:
    @pytest.fixture
    def index(self) -> ExternalIndex:
        return ExternalIndex()

    @pytest.fixture
    def target(self, open_pipeline: OpenPipeline, other_uri: str, index: ExternalIndex) -> Pipeline:
        return open_pipeline(index, VECTOR_STORE_TYPE="outside", DB_CONNECTION_URI=other_uri)

    def test_rows_are_stored_and_vectors_computed_later(
        self, filled: Pipeline, target: Pipeline, index: ExternalIndex
    ) -> None:
        filled.work()
        lines = exported(filled)
        index.away = True
        report = importing.load_file(target.rt, lines)
        assert report.index_error == "the index is away"
        assert (
            report.deferred_vectors
            == sum(line["type"] == record_formats.VECTOR for line in read(lines))
            > 0
        )
        assert index.calls == 1
        assert report.stored["messages"] == number(filled)["messages"]
        index.away = False
        assert not index.rows
        target.work()
        indexed, exported_lines = (
            {row.uid: row.vector for row in index.rows.values()},
            {line["uid"]: line for line in vectors_of(filled)},
        )
        assert indexed.keys() == exported_lines.keys()
        assert all(
            vector_text(vector) == exported_lines[uid]["vector"] for uid, vector in indexed.items()
        )

    def test_importing_again_stores_those_of_the_file(
        self, filled: Pipeline, target: Pipeline, index: ExternalIndex
    ) -> None:
        lines = exported(filled)
        index.away = True
        later = importing.load_file(target.rt, lines).deferred_vectors
        index.away = False
        again = importing.load_file(target.rt, lines)
        assert (
            again.stored["vectors"],
            again.stored["messages"],
            again.deferred_vectors,
            again.index_error,
        ) == (
            later,
            0,
            0,
            None,
        )

    def test_a_copy_is_not_reported_as_equal(
        self, filled: Pipeline, target: Pipeline, index: ExternalIndex
    ) -> None:
        index.away = True
        with pytest.raises(CopyMismatch, match="the target's index is unavailable"):
            copy(export.lines(filled.rt, "w", EVERYTHING), target.rt, "w", EVERYTHING)


@pytest.mark.every_storage("sqlite")
def test_one_storage_is_not_copied_to_itself(
    filled: Pipeline, second: Pipeline, open_pipeline: OpenPipeline
) -> None:
    require_two(filled.rt, second.rt)
    if filled.rt.storage.name == "sqlite":  # the other kind is another store each time it is opened
        with pytest.raises(Conflict, match="same storage"):
            require_two(filled.rt, open_pipeline().rt)
    with second.rt.storage.read() as tx:
        assert not tx.rows.page(r.Fact, equals(name=MARK))


class TestRefused:
    def damaged(self, lines: list[bytes], pipeline: int, data: bytes) -> Iterator[bytes]:
        return iter([*lines[:pipeline], data, *lines[pipeline + 1 :]])

    def test_an_empty_file(self, second: Pipeline) -> None:
        with pytest.raises(UnreadableExport, match="empty"):
            importing.load(second.rt, iter([]))

    def test_a_file_of_another_kind(self, second: Pipeline) -> None:
        with pytest.raises(UnreadableExport, match="not an export of memservice"):
            importing.load(second.rt, iter([b'{"type": "peers"}\n']))

    def test_a_newer_version(self, filled: Pipeline, second: Pipeline) -> None:
        lines = exported(filled)
        header = json.loads(lines[0]) | {"version": 99}
        with pytest.raises(UnreadableExport, match="version 99"):
            importing.load(second.rt, self.damaged(lines, 0, json.dumps(header).encode()))

    def test_a_changed_line(self, filled: Pipeline, second: Pipeline) -> None:
        lines = exported(filled)
        pipeline = next(n for n, line in enumerate(lines) if b'"type":"messages"' in line)
        with pytest.raises(UnreadableExport, match="checksum"):
            importing.load(
                second.rt,
                self.damaged(lines, pipeline, lines[pipeline].replace(b"apples", b"pears!")),
            )

    def test_a_truncated_line(self, filled: Pipeline, second: Pipeline) -> None:
        lines = exported(filled)
        with pytest.raises(UnreadableExport, match="line 4 is not JSON"):
            importing.load(second.rt, self.damaged(lines, 3, lines[3][:10]))

    def test_a_used_name(self, filled: Pipeline, second: Pipeline) -> None:
        workspaces.get_or_create(second.rt, PRINCIPAL, "w", None, None)
        with pytest.raises(Conflict, match="--as"):
            importing.load(second.rt, iter(exported(filled)))

    def test_a_workspace_that_does_not_exist(self, filled: Pipeline) -> None:
        with pytest.raises(NotFound, match="nowhere"):
            exported(filled, "nowhere")


def test_units_are_of_the_keys_here(filled: Pipeline, second: Pipeline) -> None:
    """Waiting work belongs to the rows as they are numbered here."""
    for n in range(7):
        workspaces.get_or_create(second.rt, PRINCIPAL, f"before-{n}", None, None)
    importing.load(second.rt, iter(exported(filled)))
    with second.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
        assert workspace is not None
        waiting = tx.rows.page(r.Task, equals(workspace_key=workspace.key, state=r.PENDING))
    assert waiting
    assert all(task.unit == unit_of(task) and f":{workspace.key}" in task.unit for task in waiting)
    assert {task.kind for task in waiting} >= {
        "representation",
        "scope_backfill",
    }
