"""The rows of an export's lines, as they are in the target storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from memservice.domain import records as r
from memservice.domain.errors import Conflict
from memservice.domain.ids import derived_uid
from memservice.domain.values import shown
from memservice.services.tasks.kinds import unit_of
from memservice.services.transfer import record_formats, tasks
from memservice.services.transfer.keys import Keys
from memservice.services.transfer.lines import Line, UnreadableExport, parse_time
from memservice.services.transfer.record_formats import RecordFormat


class LineConversion:
    """From lines to rows of one workspace."""

    def __init__(self, slug: str, as_slug: str | None) -> None:
        """`slug` is the workspace's here. With `as_slug`, the rows get new uids."""
        self._slug = slug
        self._as = as_slug

    def uid(self, uid: str) -> str:
        """The uid of the row in this storage."""
        return uid if self._as is None else derived_uid(self._as, uid)

    def look_up(self, record_format: RecordFormat, lines: Sequence[Line], keys: Keys) -> None:
        """Read all rows that the lines refer to at once."""
        uids_by_record: dict[type[Any], set[str]] = {}
        for field, record in record_format.references.items():
            if field != "superseded_by":
                uids_by_record.setdefault(record, set()).update(
                    self.uid(uid) for line in lines if (uid := line[record_formats.name_of(field)])
                )
        for field, record in record_format.lists.items():
            uids_by_record.setdefault(record, set()).update(
                self.uid(uid) for line in lines for uid in line[record_formats.name_of(field)]
            )
        for record, uids in uids_by_record.items():
            keys.find(record, sorted(uids))

    def row(self, record_format: RecordFormat, line: Line, keys: Keys, workspace_key: int) -> Any:
        """The row of a line, whose references `look_up` has read."""
        values = self.plain(record_format, line)
        for field, record in record_format.references.items():
            uid = line[record_formats.name_of(field)]
            is_successor = field == "superseded_by"
            values[field] = None if uid is None or is_successor else keys.of(record, self.uid(uid))
        for field, record in record_format.lists.items():
            values[field] = keys.several(
                record, [self.uid(uid) for uid in line[record_formats.name_of(field)]]
            )
        for field in record_format.names:
            slug = keys.slug(record_format.references[f"{field}_key"], values[f"{field}_key"])
            if slug is not None and slug.startswith(r.ERASED_PREFIX):
                raise Conflict(
                    f"a peer of this file is being erased in {self._slug!r}: import it again when "
                    "the receipt of the erasure says `done`"
                )
            if values[field] != slug:
                raise UnreadableExport(
                    f"a row of {record_format.name} names the {field} "
                    f"{shown(values[field])!r}, but with the uid of another row"
                )
        if record_format.record is not r.ApiKey:
            values["workspace_key"] = workspace_key
        if record_format.record is r.Task:
            values["payload"] = self._payload(line, keys)
            values["unit"] = ""
            task = r.Task(**values)
            return replace(task, unit=unit_of(task))
        if record_format.record is r.Session:
            values |= {"message_count": 0, "token_total": 0}
        elif record_format.record is r.Summary:
            values["message_uid"] = self.uid(line["message_uid"])
        elif record_format.record is r.Collection:
            values["explicit_count"] = 0
        elif record_format.record is r.Conclusion:
            named = values["metadata"].get("message_id")
            if named in line["message_uids"]:
                values["metadata"] = {**values["metadata"], "message_id": self.uid(named)}
            values["collection_key"] = keys.collection(
                values["observer_key"], values["observed_key"]
            )
        return record_format.record(**values)

    def plain(self, record_format: RecordFormat, line: Line) -> dict[str, Any]:
        """The fields of the row that do not refer to rows."""
        times = {
            field.name for field in fields(record_format.record) if "datetime" in str(field.type)
        }
        values: dict[str, Any] = {name: line[name] for name in record_format.plain}
        values |= {name: parse_time(values[name]) for name in times if values.get(name) is not None}
        if "uid" in values and record_format.record is not r.ApiKey:
            values["uid"] = self.uid(values["uid"])
        if values.get("source_ids"):
            values["source_ids"] = [self.uid(uid) for uid in values["source_ids"]]
        if isinstance(values.get("internal", {}).get("copied_from"), str):
            values["internal"] = {
                **values["internal"],
                "copied_from": self.uid(values["internal"]["copied_from"]),
            }
        return values

    def _payload(self, line: Line, keys: Keys) -> dict[str, Any]:
        entries = tasks.references_of(line["kind"], line["payload"])
        new = {}
        for entry, (record, uids) in entries.items():
            keys_by_uid = keys.find(record, [self.uid(str(uid)) for uid in uids])
            new[entry] = {
                uid: keys_by_uid[self.uid(str(uid))]
                for uid in uids
                if self.uid(str(uid)) in keys_by_uid
            }
        return tasks.with_references(line["payload"], new)
