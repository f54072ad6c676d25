"""A workspace as lines, in one consistent view of the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import memservice
from memservice.domain import records as r
from memservice.domain import tokens
from memservice.domain.errors import NotFound
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
    moment,
    vector_text,
    written,
)
from memservice.services.transfer.record_formats import RecordFormat
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
VECTOR_BATCH_SIZE = 200


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What of a workspace is to travel."""

    vectors: bool = True
    secrets: bool = False


def size(rt: Runtime, workspace_id: str) -> int:
    """About how many lines an export has, for a progress bar: its rows without vectors."""
    with rt.storage.read() as tx:
        workspace = _workspace(tx, workspace_id)
        return sum(
            tx.rows.count(record_format.record, equals(workspace_key=workspace.key))
            for record_format in record_formats.ROWS
        )


def download(rt: Runtime, principal: Principal, workspace_id: str) -> Iterator[bytes]:
    """The export of a workspace without secrets, for a caller of its own. Raises `NotFound` before
    the first line."""
    policy.require(principal, workspace_id)
    with rt.storage.read() as tx:
        _workspace(tx, workspace_id)
    return lines(rt, workspace_id, ExportOptions())


def lines(
    rt: Runtime, workspace_id: str, export_options: ExportOptions = ExportOptions()
) -> Iterator[bytes]:
    """The export, line by line, header first. Raises NotFound for a workspace that does not exist.

    The rows are read in one view, which stays open until they are written: vectors come after it.
    """
    total = Sum()
    spaces: Sequence[r.Space] = ()
    with rt.storage.read() as tx:
        workspace = _workspace(tx, workspace_id)
        yield written(_header(rt, workspace, export_options))
        reader = _Reader(tx, workspace, export_options)
        for line in reader.rows():
            data = written(line)
            total.add(data)
            yield data
        spaces = reader.spaces()
        left = reader.tasks()
        if rt.vectors_transactional and export_options.vectors:
            for data in _with_checksum(total, _vectors(rt, tx, spaces, reader.travels)):
                yield data
    if export_options.vectors and not rt.vectors_transactional:
        for data in _with_checksum(total, _vectors(rt, None, spaces, reader.travels)):
            yield data
    for data in _with_checksum(total, left):
        yield data
    yield written(total.end())


def _with_checksum(total: Sum, found: Iterable[Line]) -> Iterator[bytes]:
    for line in found:
        data = written(line)
        total.add(data)
        yield data


def _workspace(tx: Transaction, workspace_id: str) -> r.Workspace:
    workspace = tx.workspaces.by_slug(workspace_id)
    if workspace is None or workspace.state == r.DELETING:
        raise NotFound(f"Workspace {workspace_id} not found")
    return workspace


def _header(rt: Runtime, workspace: r.Workspace, export_options: ExportOptions) -> Line:
    return {
        "type": HEADER,
        "format": FORMAT,
        "version": VERSION,
        "memservice": memservice.__version__,
        "exported_at": moment(rt.clock()),
        "workspace": workspace.slug,
        "token_counter": tokens.counter_id(),
        "vectors": export_options.vectors,
        "secrets": export_options.secrets,
    }


class _Reader:
    """Reads the rows of one workspace. What is being deleted stays behind, with what belongs to
    it."""

    def __init__(
        self, tx: Transaction, workspace: r.Workspace, export_options: ExportOptions
    ) -> None:
        self._tx = tx
        self._workspace = workspace
        self._wanted = export_options
        self._names: dict[type[Any], dict[int, str]] = {
            r.Peer: {},
            r.Session: {},
            r.WebhookEndpoint: {},
            r.NamedCollection: {},
        }
        self._doomed: set[int] = set()
        """Sessions that are being deleted."""

    def rows(self) -> Iterator[Line]:
        yield self._line(record_formats.WORKSPACE, self._workspace, {})
        for shape in (
            *record_formats.ROWS,
            *((record_formats.SPACE,) if self._wanted.vectors else ()),
            *(record_formats.SECRET if self._wanted.secrets else ()),
        ):
            for found in self._pages(shape.record, self._of_workspace(shape)):
                kept = [row for row in found if self.travels(row)]
                self._remember(shape.record, kept)
                names = self._looked_up(shape, kept)
                for row in kept:
                    yield self._line(shape, row, names)

    def spaces(self) -> list[r.Space]:
        return [
            space
            for space in self._tx.spaces.of_workspace(self._workspace.key)
            if space.state == r.ACTIVE
        ]

    def travels(self, row: Any) -> bool:
        """Does a row travel at all? What is being deleted does not, nor does a space that nobody
        asks."""
        if isinstance(row, r.Session) and row.state == r.DELETING:
            self._doomed.add(row.key)
        if isinstance(row, r.Conclusion) and row.state == r.DELETED:
            return False
        if isinstance(row, r.Space) and row.state != r.ACTIVE:
            return False
        if isinstance(row, r.ApiKey):
            return self._is_ours(row)
        return (
            row.key not in self._doomed
            if isinstance(row, r.Session)
            else getattr(row, "session_key", None) not in self._doomed
        )

    def _is_ours(self, key: r.ApiKey) -> bool:
        """A key of what bore the same name before does not travel unless it is revoked: import
        would give it to what bears it now."""
        found = self._tx.keys.recognised(key.uid)
        return key.revoked_at is not None or (found is not None and found[1])

    def tasks(self) -> list[Line]:
        """What waits to be done, and what failed. Few, as long as workers run; held in memory
        because they come last."""
        left: list[Line] = []
        open_ = all_of(
            equals(workspace_key=self._workspace.key), OneOf("state", (r.PENDING, r.FAILED))
        )
        for found in self._pages(r.Task, open_):
            kept = [task for task in found if self.travels(task) and self._may_be_told(task)]
            names = self._looked_up(record_formats.TASK, kept)
            left += [self._task_line(task, names) for task in kept]
        return left

    def _may_be_told(self, task: r.Task) -> bool:
        return task.kind in tasks.MOVABLE and (self._wanted.secrets or task.kind != kinds.WEBHOOK)

    def _task_line(self, task: r.Task, names: Mapping[type[Any], Mapping[int, str]]) -> Line:
        line = self._line(record_formats.TASK, task, names)
        entries = tasks.named(task.kind, task.payload)
        new = {
            entry: self._uids(record, [int(key) for key in keys])
            for entry, (record, keys) in entries.items()
        }
        line["payload"] = tasks.renamed(task.payload, new)
        return line

    def _of_workspace(self, record_format: RecordFormat) -> Condition:
        if record_format.record is r.ApiKey:
            return equals(workspace=self._workspace.slug)
        return equals(workspace_key=self._workspace.key)

    def _pages(self, record: type[Any], condition: Condition) -> Iterator[list[Any]]:
        last = 0
        while found := self._tx.rows.page(
            record, all_of(condition, Compare("key", "gt", last)), BY_KEY, limit=BATCH_SIZE
        ):
            yield found
            last = found[-1].key

    def _remember(self, record: type[Any], rows: Sequence[Any]) -> None:
        if record in self._names:
            self._names[record].update({row.key: row.uid for row in rows})

    def _looked_up(
        self, record_format: RecordFormat, rows: Sequence[Any]
    ) -> dict[type[Any], Mapping[int, str]]:
        """The uids that the references of these rows need."""
        wanted: dict[type[Any], set[int]] = {}
        for field, record in record_format.references.items():
            wanted.setdefault(record, set()).update(
                key for row in rows if (key := getattr(row, field)) is not None
            )
        for field, record in record_format.lists.items():
            wanted.setdefault(record, set()).update(
                key for row in rows for key in getattr(row, field)
            )
        return {record: self._uids(record, sorted(keys)) for record, keys in wanted.items()}

    def _uids(self, record: type[Any], keys: Sequence[int]) -> dict[int, str]:
        """By key; rows that are gone are left out."""
        known = self._names.get(record)
        if known is not None and record is not r.WebhookEndpoint:
            return {key: known[key] for key in keys if key in known}
        found: dict[int, str] = {}
        for start in range(0, len(keys), BATCH_SIZE):
            rows = self._tx.rows.page(record, equals(key=tuple(keys[start : start + BATCH_SIZE])))
            found.update({row.key: row.uid for row in rows})
        return found

    def _line(
        self, record_format: RecordFormat, row: Any, names: Mapping[type[Any], Mapping[int, str]]
    ) -> Line:
        line: Line = {"type": record_format.name}
        for field in record_format.plain:
            value = getattr(row, field)
            line[field] = moment(value) if isinstance(value, datetime) else value
        for field, record in record_format.references.items():
            key = getattr(row, field)
            line[record_formats.name_of(field)] = None if key is None else names[record].get(key)
        for field, record in record_format.lists.items():
            known = names[record]
            line[record_formats.name_of(field)] = [
                known[key] for key in getattr(row, field) if key in known
            ]
        return line


def _vectors(
    rt: Runtime, tx: Transaction | None, spaces: Sequence[r.Space], travels: Callable[[Any], bool]
) -> Iterator[Line]:
    for space in spaces:
        for rows in _rows_of(rt, tx, space):
            found = rt.vectors.fetch(tx, space, [row.key for row in rows])
            for row in rows:
                if row.key in found and travels(row):
                    yield {
                        "type": record_formats.VECTOR,
                        "space": {
                            "kind": space.kind,
                            "embedder": space.embedder,
                            "dimension": space.dimension,
                        },
                        "uid": row.uid,
                        "vector": vector_text(found[row.key]),
                    }


def _rows_of(rt: Runtime, tx: Transaction | None, space: r.Space) -> Iterator[list[Any]]:
    """The rows that a space may have vectors of, by key. Without a view each page is read in one of
    its own."""
    record, last = record_formats.SPACED[space.kind], 0
    while True:
        condition = all_of(equals(workspace_key=space.workspace_key), Compare("key", "gt", last))
        if tx is not None:
            found = tx.rows.page(record, condition, BY_KEY, limit=VECTOR_BATCH_SIZE)
        else:
            with rt.storage.read() as own:
                found = own.rows.page(record, condition, BY_KEY, limit=VECTOR_BATCH_SIZE)
        if not found:
            return
        yield found
        last = found[-1].key
