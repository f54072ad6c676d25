"""Import of an export's lines into a storage. Existing rows, identified by uid, do not change, so
an import can be repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import groupby, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.errors import Conflict, InvalidInput
from memservice.domain.filters import equals
from memservice.domain.ids import derived_uid
from memservice.domain.text.relatives import IndexTerms
from memservice.domain.values import shown
from memservice.runtime import Runtime
from memservice.services import indexing, webhooks
from memservice.services.auth import api_keys
from memservice.services.tasks.kinds import unit_of
from memservice.services.transfer import (
    checks,
    conflicts,
    integrity,
    record_formats,
    successors,
    tasks,
)
from memservice.services.transfer.after_erasures import Supersession
from memservice.services.transfer.derivation import derive_later
from memservice.services.transfer.erased import ErasedRows
from memservice.services.transfer.keys import Keys
from memservice.services.transfer.lines import Line, Sum, UnreadableExport, parse_time
from memservice.services.transfer.record_formats import RecordFormat
from memservice.services.transfer.returned import ReturnedMessages
from memservice.services.transfer.vectors import RejectedVectors, Vectors
from memservice.services.transfer.waiting_lines import Batch
from memservice.spi.rows import UniqueViolation
from memservice.spi.storage import Transaction

BATCH_SIZE = 500


class Report(Struct, frozen=True):
    """The result of an import."""

    workspace: str
    """The slug of the imported workspace."""
    lines: int
    stored: Mapping[str, int]
    """Number of new rows, by kind."""
    sha256: str
    """Checksum of the lines after the header, as in the last line of the file."""
    left_out: Mapping[str, int]
    """Number of lines that were left out because of erasures here, by kind."""
    rejected_vectors: Sequence[RejectedVectors] = ()
    """Vectors of another embedder, which were not stored."""
    deferred_vectors: int = 0
    """Number of rows whose vectors are added by tasks, because the index was unavailable."""
    index_error: str | None = None
    """The error of the index; None: it was available."""


Progress = Callable[[Iterator[bytes], int], AbstractContextManager[Iterator[bytes]]]


def _no_progress(lines: Iterator[bytes], number: int) -> AbstractContextManager[Iterator[bytes]]:
    return nullcontext(lines)


def load_file(
    rt: Runtime,
    data: Iterable[bytes],
    as_slug: str | None = None,
    progress: Progress = _no_progress,
    *,
    respect_erasures: bool = True,
) -> Report:
    """Like `load`, but stores nothing of a damaged export: `data` can be read twice, each time from
    its beginning (`lines.reading`). `progress` gets the lines and their number when they are
    stored."""
    try:
        number = integrity.check(iter(data))
    except UnreadableExport as error:
        raise UnreadableExport(f"{error}; nothing was stored") from error
    with progress(iter(data), number) as lines:
        return load(rt, lines, as_slug, respect_erasures=respect_erasures)


def load(
    rt: Runtime,
    data: Iterator[bytes],
    as_slug: str | None = None,
    *,
    respect_erasures: bool = True,
    derive: bool = False,
) -> Report:
    """Store an export in one pass. `as_slug` imports it as a workspace of that name, whose rows get
    new uids, the same ones each time. With `respect_erasures`, what was erased here is left out.
    With `derive`, tasks derive from the new messages: for messages without their conclusions.

    Raises UnreadableExport for a file that is not an export, has a newer version, is cut off or was
    changed, and Conflict if another workspace has the name, or the workspace was erased here. Rows
    stored before an error remain: import again.
    """
    header = integrity.header(data)
    if as_slug is not None:
        checks.require_name(as_slug)
    loader, total = _Loader(rt, header, as_slug, respect_erasures, derive), Sum()
    batches = (
        (kind, checks.complete(kind, lines))
        for kind, lines in _batches(integrity.rows(data, total))
    )
    with closing(loader.adapted(batches)) as adapted:
        for kind, batch in adapted:
            loader.store(kind, batch)
    loader.finish()
    return loader.report(total)


def _batches(rows: Iterator[Line]) -> Iterator[Batch]:
    """Batches of successive lines of one kind."""
    for kind, lines in groupby(rows, key=lambda line: str(line["type"])):
        while batch := list(islice(lines, BATCH_SIZE)):
            yield kind, batch


def _require_own(keys: Sequence[Line], workspace_id: str) -> None:
    """Raises UnreadableExport for keys of other workspaces and for admin keys."""
    for line in keys:
        if line["admin"] or line["workspace"] != workspace_id:
            raise UnreadableExport(
                "the file has a key that gives access to more than its workspace"
            )


class _Loader:
    def __init__(
        self,
        rt: Runtime,
        header: Line,
        as_slug: str | None,
        respect_erasures: bool,
        derive: bool,
    ) -> None:
        self._rt = rt
        self._header = header
        self._as = as_slug
        self._derive = derive
        self.slug: str = as_slug or str(header["workspace"])
        self.stored: Counter[str] = Counter()
        self._workspace_key = 0
        self._successors: dict[str, Supersession] = {}
        """By uid of a superseded conclusion; the successor may come later in the file."""
        self._erased = ErasedRows(rt, self._uid) if respect_erasures else None
        self._returned = None if respect_erasures else ReturnedMessages(rt, self._uid)
        self._vectors = Vectors(rt, self._refuse_redacted)

    def adapted(self, batches: Iterator[Batch]) -> Generator[Batch]:
        """The batches without what was erased here, or with the positions that it has here."""
        if self._erased is not None:
            return self._erased.remaining(batches)
        assert self._returned is not None
        return self._returned.placed(batches)

    def report(self, total: Sum) -> Report:
        vectors = self._vectors
        return Report(
            self.slug,
            total.lines,
            dict(self.stored),
            total.sha256,
            {} if self._erased is None else dict(self._erased.counts),
            vectors.rejected(),
            vectors.deferred,
            vectors.index_error,
        )

    def _refuse_redacted(self, tx: Transaction) -> None:
        if self._erased is not None:
            self._erased.refuse_redacted(tx)

    def store(self, kind: str, lines: Sequence[Line]) -> None:
        """Store lines of one kind, which were checked (`checks.complete`)."""
        if kind == record_formats.VECTOR:
            self.stored[kind] += self._vectors.store(
                [(self._uid(line["uid"]), line) for line in lines]
            )
            return
        record_format = record_formats.FORMATS[kind]
        if record_format.record is r.Workspace:
            if self._workspace_key or len(lines) > 1:
                raise UnreadableExport("the file contains more than one workspace")
            self._store_workspace(lines[0])
            return
        if not self._workspace_key:
            raise UnreadableExport(
                f"the file has rows of {kind} before the workspace that they belong to"
            )
        if record_format.record is r.ApiKey:
            _require_own(lines, str(self._header["workspace"]))
        if record_format.record is r.WebhookEndpoint:
            for line in lines:
                self._require_reachable(line["url"])
        if record_format.record is r.Space:
            self._vectors.store_spaces(
                [
                    r.Space(workspace_key=self._workspace_key, **self._plain(record_format, line))
                    for line in lines
                ]
            )
        elif not (record_format.record is r.ApiKey and self._as):
            self._store_rows(record_format, lines)

    def _require_reachable(self, url: str) -> None:
        """Check an endpoint's URL like a registration: it may have been registered under other
        rules."""
        try:
            webhooks.check_url(self._rt, url)
        except InvalidInput as error:
            raise UnreadableExport(
                f"the webhook endpoint {shown(url)!r} is not allowed here: {error}"
            ) from error

    def finish(self) -> None:
        """Set the references that need all rows."""
        again = self._returned is not None and self._returned.is_active
        successors.set_all(self._rt, self._workspace_key, self._successors, again=again)
        if self._erased is not None:
            self._erased.finish(self._workspace_key, self._successors)

    def _uid(self, uid: str) -> str:
        """The uid of the row in this storage."""
        return uid if self._as is None else derived_uid(self._as, uid)

    def _store_workspace(self, line: Line) -> None:
        imported = r.Workspace(**self._plain(record_formats.WORKSPACE, line))
        imported = replace(
            imported, slug=self.slug, v1_name=self.slug if self._as else imported.v1_name
        )

        def change(tx: Transaction) -> tuple[int, int]:
            workspace = tx.rows.get(r.Workspace, equals(uid=imported.uid))
            if workspace is not None and workspace.state != r.DELETING:
                # an attacker who knows the uid could write into that workspace under another name
                if workspace.slug != self.slug:
                    raise Conflict(
                        "the workspace of this file exists here under another id, not as "
                        f"{self.slug!r}: choose another id with --as"
                    )
                return workspace.key, 0
            if tx.workspaces.by_slug(self.slug) is not None:
                raise Conflict(
                    f"another workspace {self.slug!r} exists already: choose another id with --as"
                )
            name_exists = (
                tx.rows.get(r.Workspace, equals(v1_name=imported.v1_name, state=r.ACTIVE))
                is not None
            )
            return tx.rows.put(
                [replace(imported, v1_name=imported.uid) if name_exists else imported]
            )[0].key, 1

        self._workspace_key, new = self._rt.storage.write(change)
        self.stored[record_formats.WORKSPACE.name] += new

    def _store_rows(self, record_format: RecordFormat, lines: Sequence[Line]) -> None:
        # The analysis takes longest, so it comes before the transaction.
        terms = (
            {line["uid"]: indexing.message_terms(line["content"]) for line in lines}
            if record_format.record is r.Message
            else {}
        )
        if record_format.record is r.Conclusion:
            self._successors |= {
                self._uid(line["uid"]): (
                    self._uid(line["superseded_by"]),
                    line["superseded_at"],
                )
                for line in lines
                if line["superseded_by"]
            }

        def change(tx: Transaction) -> int:
            keys = Keys(tx, self._workspace_key)
            self._look_up(record_format, lines, keys)
            try:
                rows = [self._row(record_format, line, keys) for line in lines]
            except UnreadableExport:
                if self._erased is not None:
                    self._erased.refuse_new(tx, record_format, lines)
                raise
            if record_format.record is r.ApiKey:
                rows = [api_keys.bound(tx, row) for row in rows]
            fresh = self._fresh(tx, record_format, rows)
            if self._erased is not None:
                self._erased.refuse_new(tx, record_format, [lines[index] for _, index in fresh])
            new_rows: Sequence[Any] = tx.rows.put([row for row, _ in fresh])
            if record_format.record is r.Conclusion:
                if self._erased is not None:
                    new_rows = self._erased.adjusted(tx, self._workspace_key, new_rows)
                if self._returned is not None and self._returned.is_active:
                    newest = self._returned.newest_conclusion
                    new_rows = successors.without_repetitions(self._rt, tx, new_rows, newest)
            self._update_derived(
                tx,
                record_format,
                new_rows,
                {row.uid: terms[lines[index]["uid"]] for row, index in fresh} if terms else {},
            )
            return len(new_rows)

        try:
            self.stored[record_format.name] += self._rt.storage.write(change)
        except UniqueViolation as error:
            raise Conflict(
                f"the workspace {self.slug!r} here has conflicting rows: "
                f"{self._ids_of_others(record_format, lines) or error}. What was stored before "
                "this stays; import the file as another workspace with --as"
            ) from error

    def _ids_of_others(self, record_format: RecordFormat, lines: Sequence[Line]) -> str:
        uids = {line["slug"]: self._uid(line["uid"]) for line in lines if "slug" in line}
        with self._rt.storage.read() as tx:
            return conflicts.ids_of_others(tx, self._workspace_key, record_format, uids)

    def _look_up(self, record_format: RecordFormat, lines: Sequence[Line], keys: Keys) -> None:
        """Read all rows that the lines refer to at once."""
        uids_by_record: dict[type[Any], set[str]] = {}
        for field, record in record_format.references.items():
            if field != "superseded_by":
                uids_by_record.setdefault(record, set()).update(
                    self._uid(uid) for line in lines if (uid := line[record_formats.name_of(field)])
                )
        for field, record in record_format.lists.items():
            uids_by_record.setdefault(record, set()).update(
                self._uid(uid) for line in lines for uid in line[record_formats.name_of(field)]
            )
        for record, uids in uids_by_record.items():
            keys.find(record, sorted(uids))

    def _row(self, record_format: RecordFormat, line: Line, keys: Keys) -> Any:
        values = self._plain(record_format, line)
        for field, record in record_format.references.items():
            uid = line[record_formats.name_of(field)]
            is_successor = field == "superseded_by"
            values[field] = None if uid is None or is_successor else keys.of(record, self._uid(uid))
        for field, record in record_format.lists.items():
            values[field] = keys.several(
                record, [self._uid(uid) for uid in line[record_formats.name_of(field)]]
            )
        for field in record_format.names:
            slug = keys.slug(record_format.references[f"{field}_key"], values[f"{field}_key"])
            if slug is not None and slug.startswith(r.ERASED_PREFIX):
                raise Conflict(
                    f"a peer of this file is being erased in {self.slug!r}: import it again when "
                    "the receipt of the erasure says `done`"
                )
            if values[field] != slug:
                raise UnreadableExport(
                    f"a row of {record_format.name} names the {field} "
                    f"{shown(values[field])!r}, but with the uid of another row"
                )
        if record_format.record is not r.ApiKey:
            values["workspace_key"] = self._workspace_key
        if record_format.record is r.Task:
            values["payload"] = self._payload(line, keys)
            values["unit"] = ""
            task = r.Task(**values)
            return replace(task, unit=unit_of(task))
        if record_format.record is r.Session:
            values |= {"message_count": 0, "token_total": 0}
        elif record_format.record is r.Summary:
            values["message_uid"] = self._uid(line["message_uid"])
        elif record_format.record is r.Collection:
            values["explicit_count"] = 0
        elif record_format.record is r.Conclusion:
            named = values["metadata"].get("message_id")
            if named in line["message_uids"]:
                values["metadata"] = {**values["metadata"], "message_id": self._uid(named)}
            values["collection_key"] = keys.collection(
                values["observer_key"], values["observed_key"]
            )
        return record_format.record(**values)

    def _plain(self, record_format: RecordFormat, line: Line) -> dict[str, Any]:
        values: dict[str, Any] = {name: line[name] for name in record_format.plain}
        values |= {
            name: parse_time(values[name])
            for name in record_format.times
            if values.get(name) is not None
        }
        if "uid" in values and record_format.record is not r.ApiKey:
            values["uid"] = self._uid(values["uid"])
        if values.get("source_ids"):
            values["source_ids"] = [self._uid(uid) for uid in values["source_ids"]]
        if isinstance(values.get("internal", {}).get("copied_from"), str):
            values["internal"] = {
                **values["internal"],
                "copied_from": self._uid(values["internal"]["copied_from"]),
            }
        return values

    def _payload(self, line: Line, keys: Keys) -> dict[str, Any]:
        entries = tasks.references_of(line["kind"], line["payload"])
        new = {}
        for entry, (record, uids) in entries.items():
            keys_by_uid = keys.find(record, [self._uid(str(uid)) for uid in uids])
            new[entry] = {
                uid: keys_by_uid[self._uid(str(uid))]
                for uid in uids
                if self._uid(str(uid)) in keys_by_uid
            }
        return tasks.with_references(line["payload"], new)

    def _fresh(
        self, tx: Transaction, record_format: RecordFormat, rows: Sequence[Any]
    ) -> list[tuple[Any, int]]:
        """The rows that do not exist yet, with their positions."""
        first = record_format.identity[0]
        values = tuple({getattr(row, first) for row in rows})
        scope = {} if first == "uid" else {"workspace_key": self._workspace_key}
        existing = tx.rows.page(record_format.record, equals(**{first: values}, **scope))
        if (
            not scope
            and record_format.record is not r.ApiKey
            and any(row.workspace_key != self._workspace_key for row in existing)
        ):
            raise Conflict(
                f"rows of the file exist here in another workspace than {self.slug!r}: choose "
                "another id with --as"
            )
        identities = {
            tuple(getattr(row, name) for name in record_format.identity) for row in existing
        }
        return [
            (row, index)
            for index, row in enumerate(rows)
            if tuple(getattr(row, name) for name in record_format.identity) not in identities
        ]

    def _update_derived(
        self,
        tx: Transaction,
        record_format: RecordFormat,
        new_rows: Sequence[Any],
        terms: Mapping[str, IndexTerms],
    ) -> None:
        """Update the data derived from new rows: counters, and the text index."""
        if record_format.record is r.Message and new_rows:
            for key in sorted({message.session_key for message in new_rows}):
                messages = sorted(
                    (message for message in new_rows if message.session_key == key),
                    key=lambda message: message.seq,
                )
                first, last = messages[0], messages[-1]
                if self._returned is not None and self._returned.is_placed(tx, key):
                    # They are among messages that were counted.
                    tx.messages.revise(key, freed=-len(messages))
                    continue
                before = equals(key=key, message_count=first.seq - 1)
                dense = last.seq - first.seq == len(messages) - 1
                if not (
                    dense
                    and tx.rows.change(
                        r.Session, before, message_count=last.seq, token_total=last.tokens_through
                    )
                ):
                    raise Conflict(
                        f"messages of the session {first.session!r} do not continue the existing "
                        "ones: was it written to since the export?"
                    )
            authors = tx.peers.by_keys(sorted({message.author_key for message in new_rows}))
            indexing.add_message_texts(
                self._rt,
                tx,
                self._workspace_key,
                new_rows,
                [terms[message.uid] for message in new_rows],
                authors,
            )
            if rows := self._without_vectors(r.Message, new_rows):
                tx.tasks.add(
                    indexing.message_vectors_later(self._rt, tx, self._workspace_key, rows)
                )
            if self._derive:
                derive_later(self._rt, tx, self._workspace_key, new_rows)
        elif record_format.record is r.Conclusion:
            live = [row for row in new_rows if row.state == r.LIVE]
            for collection, number in Counter(
                row.collection_key for row in live if row.level == r.EXPLICIT
            ).items():
                tx.conclusions.count_explicit(collection, number)
            indexing.add_conclusion_texts(self._rt, tx, self._workspace_key, live)
            if rows := self._without_vectors(r.Conclusion, live):
                keys = [row.key for row in rows]
                tx.tasks.add(
                    indexing.embed_later(self._rt, indexing.CONCLUSION, self._workspace_key, keys)
                )

    def _without_vectors(
        self, record: type[r.Message | r.Conclusion], rows: Sequence[Any]
    ) -> Sequence[Any]:
        """The new rows that tasks must embed: all of a file without vectors, otherwise those in
        which names of erased peers were replaced."""
        if not self._header["vectors"]:
            return rows
        return () if self._erased is None else self._erased.without_vectors(record, rows)
