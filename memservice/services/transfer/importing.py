"""Lines of an export into a storage. What is there already, known by its uid, is left as it is; so an import may be run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import groupby, islice
from typing import Any

from memservice.domain import records as r
from memservice.domain.errors import Conflict, InvalidInput
from memservice.domain.filters import where
from memservice.domain.ids import derived_uid
from memservice.domain.text.analysis import analyse
from memservice.domain.values import shown
from memservice.runtime import Runtime
from memservice.services import (
    indexing,
    webhooks,
)
from memservice.services.auth import api_keys
from memservice.services.tasks import outbox
from memservice.services.transfer import (
    checks,
    record_formats,
    tasks,
    whole,
)
from memservice.services.transfer.keys import Keys
from memservice.services.transfer.lines import Line, Sum, UnreadableExport, read_moment
from memservice.services.transfer.record_formats import Shape
from memservice.services.transfer.vectors import Others, Vectors
from memservice.spi.rows import UniqueViolation
from memservice.spi.storage import View

ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Report:
    """What came of an import."""

    workspace: str
    """The slug under which it lies now."""
    lines: int
    stored: Mapping[str, int]
    """Rows that were not there before, by kind."""
    sha256: str
    """Of the lines after the header, as the last line of the file gives it."""
    others: Sequence[Others] = ()
    """Vectors that were not taken."""
    later: int = 0
    """Rows whose vectors are made by tasks, because the index did not take those of the file."""
    away: str | None = None
    """Why it did not."""


Watched = Callable[[Iterator[bytes], int], AbstractContextManager[Iterator[bytes]]]


def _unwatched(lines: Iterator[bytes], number: int) -> AbstractContextManager[Iterator[bytes]]:
    return nullcontext(lines)


def load_file(rt: Runtime, data: Iterable[bytes], as_slug: str | None = None, watched: Watched = _unwatched) -> Report:
    """As `load`, for an export of which nothing is to be stored if it is damaged: one that can be read twice, from its beginning each
    time (`lines.reading`). `watched` is given its lines and their number when they are stored."""
    try:
        number = whole.check(iter(data))
    except UnreadableExport as error:
        raise UnreadableExport(f"{error}; nothing of it was stored") from error
    with watched(iter(data), number) as lines:
        return load(rt, lines, as_slug)


def load(rt: Runtime, data: Iterator[bytes], as_slug: str | None = None) -> Report:
    """Store an export as it comes. `as_slug` makes it a workspace of that name, whose rows get uids of their own, the same ones each time.

    Raises UnreadableExport for one that is none, is of a newer version, is cut off or was changed, Conflict where another workspace
    has the name. What was stored before an error stays: run it again.
    """
    header = whole.header(data)
    if as_slug is not None:
        checks.require_name(as_slug)
    loader, total = _Loader(rt, header, as_slug), Sum()
    for kind, batch in _batches(whole.rows(data, total)):
        loader.store(kind, batch)
    loader.finish()
    return loader.report(total)


def _batches(rows: Iterator[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Lines of one kind that follow one another, a few hundred at a time."""
    for kind, lines in groupby(rows, key=lambda line: str(line["type"])):
        while batch := list(islice(lines, ROWS_AT_ONCE)):
            yield kind, batch


def _require_own(keys: Sequence[Line], workspace: str) -> None:
    """A file tells of the keys of its own workspace, of no others and of none for everything."""
    for line in keys:
        if line["admin"] or line["workspace"] != workspace:
            raise UnreadableExport("the file tells of a key that opens more than its workspace")


class _Loader:
    def __init__(self, rt: Runtime, header: Line, as_slug: str | None) -> None:
        self._rt = rt
        self._header = header
        self._as = as_slug
        self.slug: str = as_slug or str(header["workspace"])
        self.stored: Counter[str] = Counter()
        self._place = 0
        self._later: dict[str, str] = {}
        """What gave way to what, by uid: the successor may come after it."""
        self._vectors = Vectors(rt)

    def report(self, total: Sum) -> Report:
        vectors = self._vectors
        return Report(self.slug, total.lines, dict(self.stored), total.sha256, vectors.others(), vectors.later, vectors.away)

    def store(self, kind: str, lines: Sequence[Line]) -> None:
        if kind == record_formats.VECTOR:
            for line in lines:
                checks.require_vector(line)
            self.stored[kind] += self._vectors.store([(self._uid(line["uid"]), line) for line in lines])
            return
        shape = record_formats.SHAPES.get(kind)
        if shape is None:
            raise UnreadableExport(f"rows of kind {shown(kind)!r} are not known here; known: {', '.join(sorted(record_formats.SHAPES))}")
        for line in lines:
            checks.require_row(shape, line)
        if shape.record is r.Workspace:
            if self._place or len(lines) > 1:
                raise UnreadableExport("the file holds more than one workspace")
            self._store_workspace(lines[0])
            return
        if not self._place:
            raise UnreadableExport(f"the file has rows of {kind} before the workspace that they belong to")
        if shape.record is r.ApiKey:
            _require_own(lines, str(self._header["workspace"]))
        if shape.record is r.WebhookEndpoint:
            for line in lines:
                self._require_reachable(line["url"])
        if shape.record is r.Space:
            self._vectors.store_spaces([r.Space(workspace_key=self._place, **self._plain(shape, line)) for line in lines])
        elif not (shape.record is r.ApiKey and self._as):
            self._store_rows(shape, lines)

    def _require_reachable(self, url: str) -> None:
        """What registering asks of an endpoint's URL, which may have been registered under other rules."""
        try:
            webhooks.check_url(self._rt, url)
        except InvalidInput as error:
            raise UnreadableExport(f"the webhook endpoint {shown(url)!r} is not allowed here: {error}") from error

    def finish(self) -> None:
        """What can only be done when everything is there."""
        pairs = list(self._later.items())
        for start in range(0, len(pairs), ROWS_AT_ONCE):
            self._rt.storage.write(lambda view, part=pairs[start : start + ROWS_AT_ONCE]: self._succeed(view, part))  # type: ignore[misc]

    def _uid(self, uid: str) -> str:
        """The uid that a row has here."""
        return uid if self._as is None else derived_uid(self._as, uid)

    def _store_workspace(self, line: Line) -> None:
        wanted = r.Workspace(**self._plain(record_formats.WORKSPACE, line))
        wanted = replace(wanted, slug=self.slug, v1_name=self.slug if self._as else wanted.v1_name)

        def change(view: View) -> tuple[int, int]:
            found = view.rows.get(r.Workspace, where(uid=wanted.uid))
            if found is not None and found.state != r.DELETING:
                if found.slug != self.slug:  # whoever made the file knows its uid, and would write into it under another name
                    raise Conflict(
                        f"the workspace of this file lies here under another id, not as {self.slug!r}: give this one another with --as"
                    )
                return found.key, 0
            if view.workspaces.by_slug(self.slug) is not None:
                raise Conflict(f"there is another workspace {self.slug!r} already: give this one another name with --as")
            taken = view.rows.get(r.Workspace, where(v1_name=wanted.v1_name, state=r.ACTIVE)) is not None
            return view.rows.put([replace(wanted, v1_name=wanted.uid) if taken else wanted])[0].key, 1

        self._place, new = self._rt.storage.write(change)
        self.stored[record_formats.WORKSPACE.name] += new

    def _store_rows(self, shape: Shape, lines: Sequence[Line]) -> None:
        # Analysing takes longest, so it is done before the transaction.
        terms = {line["uid"]: analyse(line["content"]) for line in lines} if shape.record is r.Message else {}
        if shape.record is r.Conclusion:
            self._later |= {self._uid(line["uid"]): self._uid(line["superseded_by"]) for line in lines if line["superseded_by"]}

        def change(view: View) -> int:
            keys = Keys(view, self._place)
            self._look_up(shape, lines, keys)
            rows = [self._row(shape, line, keys) for line in lines]
            if shape.record is r.ApiKey:
                rows = [api_keys.bound(view, row) for row in rows]
            fresh = self._fresh(view, shape, rows)
            stored = view.rows.put([row for row, _ in fresh])
            self._follow(view, shape, stored, {row.uid: terms[lines[place]["uid"]] for row, place in fresh} if terms else {})
            return len(stored)

        try:
            self.stored[shape.name] += self._rt.storage.write(change)
        except UniqueViolation as error:
            raise Conflict(f"the workspace {self.slug!r} here has others of these already: {error}") from error

    def _look_up(self, shape: Shape, lines: Sequence[Line], keys: Keys) -> None:
        """Find what the lines refer to, all at once."""
        wanted: dict[type[Any], set[str]] = {}
        for field, record in shape.references.items():
            if field != "superseded_by":
                wanted.setdefault(record, set()).update(self._uid(uid) for line in lines if (uid := line[record_formats.name_of(field)]))
        for field, record in shape.lists.items():
            wanted.setdefault(record, set()).update(self._uid(uid) for line in lines for uid in line[record_formats.name_of(field)])
        for record, uids in wanted.items():
            keys.found(record, sorted(uids))

    def _row(self, shape: Shape, line: Line, keys: Keys) -> Any:
        values = self._plain(shape, line)
        for field, record in shape.references.items():
            uid = line[record_formats.name_of(field)]
            later = field == "superseded_by"
            values[field] = None if uid is None or later else keys.of(record, self._uid(uid))
        for field, record in shape.lists.items():
            values[field] = keys.several(record, [self._uid(uid) for uid in line[record_formats.name_of(field)]])
        for field in shape.names:
            if values[field] != keys.slug(shape.references[f"{field}_key"], values[f"{field}_key"]):
                raise UnreadableExport(f"a row of {shape.name} names the {field} {shown(values[field])!r}, but by another uid than its own")
        if shape.record is not r.ApiKey:
            values["workspace_key"] = self._place
        if shape.record is r.Task:
            values["payload"] = self._payload(line, keys)
            values["unit"] = ""
            task = r.Task(**values)
            return replace(task, unit=outbox.unit_of(task))
        if shape.record is r.Session:
            values |= {"message_count": 0, "token_total": 0}
        elif shape.record is r.Summary:
            values["message_uid"] = self._uid(line["message_uid"])
        elif shape.record is r.Collection:
            values["explicit_count"] = 0
        elif shape.record is r.Conclusion:
            values["collection_key"] = keys.collection(values["observer_key"], values["observed_key"])
        return shape.record(**values)

    def _plain(self, shape: Shape, line: Line) -> dict[str, Any]:
        times = {field.name for field in fields(shape.record) if "datetime" in str(field.type)}
        values: dict[str, Any] = {name: line[name] for name in shape.plain}
        values |= {name: read_moment(values[name]) for name in times if values.get(name) is not None}
        if "uid" in values and shape.record is not r.ApiKey:
            values["uid"] = self._uid(values["uid"])
        if values.get("source_ids"):
            values["source_ids"] = [self._uid(uid) for uid in values["source_ids"]]
        if isinstance(values.get("internal", {}).get("copied_from"), str):
            values["internal"] = {**values["internal"], "copied_from": self._uid(values["internal"]["copied_from"])}
        return values

    def _payload(self, line: Line, keys: Keys) -> dict[str, Any]:
        entries = tasks.named(line["kind"], line["payload"])
        new = {}
        for entry, (record, uids) in entries.items():
            found = keys.found(record, [self._uid(str(uid)) for uid in uids])
            new[entry] = {uid: found[self._uid(str(uid))] for uid in uids if self._uid(str(uid)) in found}
        return tasks.renamed(line["payload"], new)

    def _fresh(self, view: View, shape: Shape, rows: Sequence[Any]) -> list[tuple[Any, int]]:
        """The rows that are not there yet, with their places."""
        first = shape.known_by[0]
        values = tuple({getattr(row, first) for row in rows})
        here = {} if first == "uid" else {"workspace_key": self._place}
        there = view.rows.page(shape.record, where(**{first: values}, **here))
        if not here and shape.record is not r.ApiKey and any(row.workspace_key != self._place for row in there):
            raise Conflict(f"rows of the file lie here in another workspace than {self.slug!r}: give this one another name with --as")
        known = {tuple(getattr(row, name) for name in shape.known_by) for row in there}
        return [(row, place) for place, row in enumerate(rows) if tuple(getattr(row, name) for name in shape.known_by) not in known]

    def _follow(self, view: View, shape: Shape, stored: Sequence[Any], terms: Mapping[str, list[str]]) -> None:
        """What depends on new rows: counters, and the text index."""
        if shape.record is r.Message and stored:
            for key in sorted({message.session_key for message in stored}):
                ours = sorted((message for message in stored if message.session_key == key), key=lambda message: message.seq)
                first, last = ours[0], ours[-1]
                before = where(key=key, message_count=first.seq - 1)
                dense = last.seq - first.seq == len(ours) - 1
                if not (dense and view.rows.change(r.Session, before, message_count=last.seq, token_total=last.tokens_through)):
                    raise Conflict(
                        f"messages of the session {first.session!r} do not follow on those that are here: was it written to since?"
                    )
            authors = view.peers.by_keys(sorted({message.author_key for message in stored}))
            indexing.add_message_texts(self._rt, view, self._place, stored, [terms[message.uid] for message in stored], authors)
            self._embed(view, indexing.message_vectors_later(self._rt, view, self._place, stored))
        elif shape.record is r.Conclusion:
            live = [row for row in stored if row.state == r.LIVE]
            for collection, number in Counter(row.collection_key for row in live if row.level == r.EXPLICIT).items():
                view.conclusions.count_explicit(collection, number)
            indexing.add_conclusion_texts(self._rt, view, self._place, live)
            self._embed(view, indexing.embed_later(self._rt, indexing.CONCLUSION, self._place, [row.key for row in live]) if live else [])

    def _embed(self, view: View, jobs: Sequence[r.Task]) -> None:
        """A file without vectors: rows are given theirs by tasks, as after a write that cannot wait for an embedder."""
        if not self._header["vectors"]:
            view.tasks.add(jobs)

    def _succeed(self, view: View, pairs: Sequence[tuple[str, str]]) -> None:
        uids = tuple({uid for pair in pairs for uid in pair})
        found = {row.uid: row.key for row in view.rows.page(r.Conclusion, where(workspace_key=self._place, uid=uids))}
        for old, new in pairs:
            if old in found and new in found:
                view.rows.change(r.Conclusion, where(key=found[old], superseded_by=None), superseded_by=found[new])
