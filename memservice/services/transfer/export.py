"""Export of a workspace as lines, from one consistent snapshot of the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

import memservice
from memservice.domain import records as r
from memservice.domain import tokens
from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Compare, OneOf
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.tasks import kinds
from memservice.services.transfer import record_formats, tasks
from memservice.services.transfer.lines import (
    FORMAT,
    HEADER,
    VERSION,
    Line,
    Sum,
    format_line,
    format_time,
    vector_text,
)
from memservice.services.transfer.record_formats import RecordFormat
from memservice.spi.rows import BY_KEY, Order
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
BY_POSITION = (Order("session_key"), Order("seq"))
VECTOR_BATCH_SIZE = 200


class ExportOptions(Struct, frozen=True):
    """The optional parts of an export."""

    vectors: bool = True
    secrets: bool = False


WITH_VECTORS = ExportOptions()


def size(rt: Runtime, workspace_id: str) -> int:
    """Approximate number of lines of an export, for a progress bar: its rows without vectors."""
    with rt.storage.read() as tx:
        workspace = _workspace(tx, workspace_id)
        return sum(
            tx.rows.count(record_format.record, equals(workspace_key=workspace.key))
            for record_format in record_formats.ROWS
        )


def download(rt: Runtime, principal: Principal, workspace_id: str) -> Iterator[bytes]:
    """The export of a workspace without secrets, for an API caller. Raises `NotFound`, and
    `Conflict` while an erasure is not finished, before the first line."""
    policy.require(principal, workspace_id)
    with rt.storage.read() as tx:
        _workspace(tx, workspace_id)
    return lines(rt, workspace_id)


def lines(
    rt: Runtime, workspace_id: str, export_options: ExportOptions = WITH_VECTORS
) -> Iterator[bytes]:
    """The export, line by line, header first. Raises NotFound for a workspace that does not exist,
    and Conflict while a peer is being erased or positions of erased messages are being closed.

    The rows are read in one transaction, which stays open until they are written. Vectors outside
    the storage follow after it.
    """
    total = Sum()
    spaces: Sequence[r.Space] = ()
    with rt.storage.read() as tx:
        workspace = _workspace(tx, workspace_id)
        yield format_line(_header(rt, workspace, export_options))
        reader = _Reader(tx, workspace, export_options)
        for line in reader.rows():
            data = format_line(line)
            total.add(data)
            yield data
        spaces = reader.spaces()
        pending_tasks = reader.tasks()
        if rt.vectors_transactional and export_options.vectors:
            for data in _with_checksum(total, _vectors(rt, tx, spaces, reader.is_exported)):
                yield data
    if export_options.vectors and not rt.vectors_transactional:
        for data in _with_checksum(total, _vectors(rt, None, spaces, reader.is_exported)):
            yield data
    for data in _with_checksum(total, pending_tasks):
        yield data
    yield format_line(total.end())


def _with_checksum(total: Sum, rows: Iterable[Line]) -> Iterator[bytes]:
    for line in rows:
        data = format_line(line)
        total.add(data)
        yield data


def _workspace(tx: Transaction, workspace_id: str) -> r.Workspace:
    workspace = tx.workspaces.by_slug(workspace_id)
    if workspace is None or workspace.state == r.DELETING:
        raise NotFound(f"Workspace {workspace_id} not found")
    own = equals(workspace_key=workspace.key)
    unfinished = all_of(own, equals(kind=kinds.REPACK, state=(r.PENDING, r.FAILED)))
    if tx.rows.get(r.Peer, all_of(own, equals(kind=r.ERASED))) or tx.rows.get(r.Task, unfinished):
        # The file would have rows of the erased peer, or gaps in the positions of messages.
        raise Conflict(
            f"An erasure in workspace {workspace_id} is not finished, or an import that brought "
            "erased messages back was interrupted: export it when the receipts say `done` "
            f"(memservice erasures list -w {workspace_id}), or in five minutes"
        )
    return workspace


def _header(rt: Runtime, workspace: r.Workspace, export_options: ExportOptions) -> Line:
    return {
        "type": HEADER,
        "format": FORMAT,
        "version": VERSION,
        "memservice": memservice.__version__,
        "exported_at": format_time(rt.clock()),
        "workspace": workspace.slug,
        "token_counter": tokens.counter_id(),
        "vectors": export_options.vectors,
        "secrets": export_options.secrets,
    }


class _Reader:
    """Reads the rows of one workspace. Resources that are being deleted are left out, with their
    rows."""

    def __init__(
        self, tx: Transaction, workspace: r.Workspace, export_options: ExportOptions
    ) -> None:
        self._tx = tx
        self._workspace = workspace
        self._options = export_options
        self._names: dict[type[Any], dict[int, str]] = {
            r.Peer: {},
            r.Session: {},
            r.WebhookEndpoint: {},
            r.NamedCollection: {},
        }
        self._message_counts: dict[int, int] = {}
        """Number of messages by key of the session."""
        self._deleting_sessions: set[int] = set()
        """Keys of sessions that are being deleted."""

    def rows(self) -> Iterator[Line]:
        yield self._line(record_formats.WORKSPACE, self._workspace, {})
        for shape in (
            *record_formats.ROWS,
            *((record_formats.SPACE,) if self._options.vectors else ()),
            *(record_formats.SECRET if self._options.secrets else ()),
        ):
            for page in (
                self._messages()
                if shape.record is r.Message
                else self._pages(shape.record, self._of_workspace(shape))
            ):
                exported = [row for row in page if self.is_exported(row)]
                self._remember(shape.record, exported)
                names = self._referenced_uids(shape, exported)
                for row in exported:
                    yield self._line(shape, row, names)

    def spaces(self) -> list[r.Space]:
        return [
            space
            for space in self._tx.spaces.of_workspace(self._workspace.key)
            if space.state == r.ACTIVE
        ]

    def is_exported(self, row: Any) -> bool:
        """Whether a row is exported. Not exported are rows of resources that are being deleted, and
        inactive vector spaces."""
        if isinstance(row, r.Session) and row.state == r.DELETING:
            self._deleting_sessions.add(row.key)
        if isinstance(row, r.Conclusion) and row.state == r.DELETED:
            return False
        if isinstance(row, r.Space) and row.state != r.ACTIVE:
            return False
        if isinstance(row, r.ApiKey):
            return self._is_current(row)
        return (
            row.key not in self._deleting_sessions
            if isinstance(row, r.Session)
            else getattr(row, "session_key", None) not in self._deleting_sessions
        )

    def _is_current(self, key: r.ApiKey) -> bool:
        """Whether a key belongs to the present resource of that name, or is revoked. Import would
        give a key of an earlier resource of the name to the present one."""
        match = self._tx.keys.recognised(key.uid)
        return key.revoked_at is not None or (match is not None and match[1])

    def tasks(self) -> list[Line]:
        """Pending and failed tasks. There are few while workers run; they are held in memory
        because they come last."""
        lines: list[Line] = []
        open_ = all_of(
            equals(workspace_key=self._workspace.key), OneOf("state", (r.PENDING, r.FAILED))
        )
        for page in self._pages(r.Task, open_):
            exported = [task for task in page if self.is_exported(task) and self._is_movable(task)]
            names = self._referenced_uids(record_formats.TASK, exported)
            lines += [self._task_line(task, names) for task in exported]
        return lines

    def _is_movable(self, task: r.Task) -> bool:
        return task.kind in tasks.MOVABLE and (self._options.secrets or task.kind != kinds.WEBHOOK)

    def _task_line(self, task: r.Task, names: Mapping[type[Any], Mapping[int, str]]) -> Line:
        line = self._line(record_formats.TASK, task, names)
        entries = tasks.references_of(task.kind, task.payload)
        new = {
            entry: self._uids(record, [int(key) for key in keys])
            for entry, (record, keys) in entries.items()
        }
        line["payload"] = tasks.with_references(task.payload, new)
        return line

    def _of_workspace(self, record_format: RecordFormat) -> Condition:
        if record_format.record is r.ApiKey:
            return equals(workspace=self._workspace.slug)
        return equals(workspace_key=self._workspace.key)

    def _pages(self, record: type[Any], condition: Condition) -> Iterator[list[Any]]:
        last = 0
        while page := self._tx.rows.page(
            record, all_of(condition, Compare("key", "gt", last)), BY_KEY, limit=BATCH_SIZE
        ):
            yield page
            last = page[-1].key

    def _messages(self) -> Iterator[list[r.Message]]:
        """The messages of each session in their order, which is not that of their keys after some
        were erased and imported again."""
        for keys in self._sessions_in_batches():
            remaining = keys
            while page := self._messages_of(remaining):
                yield page
                if len(page) < BATCH_SIZE:
                    break
                last = page[-1]
                while page := self._messages_of([last.session_key], after=last.seq):
                    yield page
                    last = page[-1]
                remaining = remaining[remaining.index(last.session_key) + 1 :]

    def _messages_of(self, session_keys: Sequence[int], after: int = 0) -> list[r.Message]:
        own = all_of(equals(session_key=tuple(session_keys)), Compare("seq", "gt", after))
        return self._tx.rows.page(r.Message, own, BY_POSITION, limit=BATCH_SIZE)

    def _sessions_in_batches(self) -> Iterator[list[int]]:
        """Keys of the exported sessions, in batches that usually have less than one page of
        messages."""
        batch: list[int] = []
        messages = 0
        for key, count in self._message_counts.items():
            if len(batch) == BATCH_SIZE or (batch and messages + count >= BATCH_SIZE):
                yield batch
                batch, messages = [], 0
            batch.append(key)
            messages += count
        if batch:
            yield batch

    def _remember(self, record: type[Any], rows: Sequence[Any]) -> None:
        if record is r.Session:
            self._message_counts.update({row.key: row.message_count for row in rows})
        if record in self._names:
            self._names[record].update({row.key: row.uid for row in rows})

    def _referenced_uids(
        self, record_format: RecordFormat, rows: Sequence[Any]
    ) -> dict[type[Any], Mapping[int, str]]:
        """The uids of the rows that these rows refer to."""
        keys_by_record: dict[type[Any], set[int]] = {}
        for field, record in record_format.references.items():
            keys_by_record.setdefault(record, set()).update(
                key for row in rows if (key := getattr(row, field)) is not None
            )
        for field, record in record_format.lists.items():
            keys_by_record.setdefault(record, set()).update(
                key for row in rows for key in getattr(row, field)
            )
        return {record: self._uids(record, sorted(keys)) for record, keys in keys_by_record.items()}

    def _uids(self, record: type[Any], keys: Sequence[int]) -> dict[int, str]:
        """Key → uid; deleted rows are left out."""
        cached = self._names.get(record)
        if cached is not None and record is not r.WebhookEndpoint:
            return {key: cached[key] for key in keys if key in cached}
        uids: dict[int, str] = {}
        for start in range(0, len(keys), BATCH_SIZE):
            rows = self._tx.rows.page(record, equals(key=tuple(keys[start : start + BATCH_SIZE])))
            uids.update({row.key: row.uid for row in rows})
        return uids

    def _line(
        self, record_format: RecordFormat, row: Any, names: Mapping[type[Any], Mapping[int, str]]
    ) -> Line:
        line: Line = {"type": record_format.name}
        for field in record_format.plain:
            value = getattr(row, field)
            line[field] = format_time(value) if isinstance(value, datetime) else value
        for field, record in record_format.references.items():
            key = getattr(row, field)
            line[record_formats.name_of(field)] = None if key is None else names[record].get(key)
        for field, record in record_format.lists.items():
            uids = names[record]
            line[record_formats.name_of(field)] = [
                uids[key] for key in getattr(row, field) if key in uids
            ]
        return line


def _vectors(
    rt: Runtime,
    tx: Transaction | None,
    spaces: Sequence[r.Space],
    is_exported: Callable[[Any], bool],
) -> Iterator[Line]:
    for space in spaces:
        for rows in _rows_of(rt, tx, space):
            vectors = rt.vectors.fetch(tx, space, [row.key for row in rows])
            for row in rows:
                if row.key in vectors and is_exported(row):
                    yield {
                        "type": record_formats.VECTOR,
                        "space": {
                            "kind": space.kind,
                            "embedder": space.embedder,
                            "dimension": space.dimension,
                        },
                        "uid": row.uid,
                        "vector": vector_text(vectors[row.key]),
                    }


def _rows_of(rt: Runtime, tx: Transaction | None, space: r.Space) -> Iterator[list[Any]]:
    """The rows that can have vectors in a space, by key. Without a transaction each page is read in
    its own."""
    record, last = record_formats.SPACED[space.kind], 0
    while True:
        condition = all_of(equals(workspace_key=space.workspace_key), Compare("key", "gt", last))
        if tx is not None:
            page = tx.rows.page(record, condition, BY_KEY, limit=VECTOR_BATCH_SIZE)
        else:
            with rt.storage.read() as own:
                page = own.rows.page(record, condition, BY_KEY, limit=VECTOR_BATCH_SIZE)
        if not page:
            return
        yield page
        last = page[-1].key
