"""Which lines of an export refer to rows that are left out, and lines without such references."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from memservice.domain import records as r
from memservice.services import dream_changes
from memservice.services.tasks import kinds
from memservice.services.transfer import record_formats, tasks
from memservice.services.transfer.lines import Line
from memservice.services.transfer.record_formats import RecordFormat, name_of

_OPTIONAL = {(r.Session, "owner_key"), (r.Conclusion, "superseded_by")}
"""References whose row stays without them."""
_REQUIRED_ENTRIES = ("keys", "observers")
"""Entries of the payload of a task that has nothing to do if they are empty."""


def named(record_format: RecordFormat, line: Line, records: Collection[type[Any]]) -> set[str]:
    """The uids of rows of these records in a line: its own, and those that it refers to."""
    uids = {line["uid"]} if record_format.record in records else set()
    for field, record in record_format.references.items():
        uid = line[name_of(field)]
        if record in records and uid is not None:
            uids.add(uid)
    for field, record in record_format.lists.items():
        if record in records:
            uids.update(line[name_of(field)])
    return uids


class LeftOut:
    """The rows of a file that are left out. Uids are those in the file."""

    def __init__(self) -> None:
        self._uids: dict[type[Any], set[str]] = {}
        self._slugs: dict[type[Any], set[str]] = {r.Peer: set(), r.Session: set()}
        self.pairs: set[tuple[str, str]] = set()
        """Uid of the observer and slug of the observed peer, of conclusions that are left out."""
        self.of_conclusions: set[str] = set()
        """Uids of the observers and observed peers of conclusions that are left out."""

    def uids(self, record: type[Any]) -> set[str]:
        return self._uids.setdefault(record, set())

    def add(self, record_format: RecordFormat, line: Line) -> None:
        if record_format.identity == ("uid",):
            self.uids(record_format.record).add(line["uid"])
        if record_format.record in self._slugs:
            self._slugs[record_format.record].add(line["slug"])
        if record_format.record is r.Conclusion:
            self.pairs.add((line["observer_uid"], line["observed"]))
            self.of_conclusions |= {line["observer_uid"], line["observed_uid"]}

    def vector(self, line: Line) -> bool:
        """Whether this is a vector of a row that is left out."""
        record = record_formats.SPACED.get(line["space"]["kind"])
        return record is not None and line["uid"] in self.uids(record)

    def refers(self, record_format: RecordFormat, line: Line) -> bool:
        """Whether a line makes no sense without the rows that are left out."""
        record = record_format.record
        for field, referred in record_format.references.items():
            optional = (record, field) in _OPTIONAL
            if not optional and line[name_of(field)] in self.uids(referred):
                return True
        if record is r.Conclusion:
            return self._is_without_sources(line)
        if record is r.Card:
            return line["target"] in self._slugs[r.Peer]
        if record is r.ApiKey:
            return line["peer"] in self._slugs[r.Peer] or line["session"] in self._slugs[r.Session]
        if record is r.Delivery:
            return self._quoted_in(line["body"])
        return record is r.Task and self._is_about(line)

    def _is_without_sources(self, line: Line) -> bool:
        """Whether a conclusion has no other sources (the rule of `erasure.conclusions`)."""
        messages, sources = set(line["message_uids"]), set(line["source_ids"] or ())
        if sources and sources <= self.uids(r.Conclusion):
            return True
        return bool(messages) and not sources and messages <= self.uids(r.Message)

    def _is_about(self, line: Line) -> bool:
        """Whether a task has nothing to do, or contains words of what is left out."""
        payload = line["payload"]
        if line["kind"] == kinds.WEBHOOK:
            return self._quoted_in(payload["body"])
        if dream_changes.PROPOSAL in payload:
            return bool(
                not self.uids(r.Conclusion).isdisjoint(_strings(payload))
                or {line["observer_uid"], line["observed_uid"]} <= self.of_conclusions
            )
        for entry, (record, uids) in tasks.references_of(line["kind"], payload).items():
            if entry in _REQUIRED_ENTRIES and uids and self.uids(record).issuperset(map(str, uids)):
                return True
        return False

    def _quoted_in(self, body: str) -> bool:
        """Whether the body of a webhook request names what is left out."""
        try:
            strings = set(_strings(json.loads(body)))
        except ValueError:
            strings = {body}
        return not all(
            names.isdisjoint(strings) for names in (*self._slugs.values(), *self._uids.values())
        )

    def without(self, record_format: RecordFormat, line: Line) -> Line:
        """A line that stays, without references to what is left out."""
        changed: Line = {}
        for field, record in record_format.lists.items():
            changed[name_of(field)] = self._others(record, line[name_of(field)])
        if record_format.record is r.Session and line["owner_uid"] in self.uids(r.Peer):
            changed["owner_uid"] = None
        if record_format.record is r.Conclusion and line["source_ids"]:
            changed["source_ids"] = self._others(r.Conclusion, line["source_ids"])
        if record_format.record is r.Task:
            changed["payload"] = self._payload(line)
        return {**line, **changed} if changed else line

    def _others(self, record: type[Any], uids: list[str]) -> list[str]:
        left_out = self.uids(record)
        return [uid for uid in uids if uid not in left_out]

    def _payload(self, line: Line) -> dict[str, Any]:
        """The payload of a task. Of `keys` and `like`, equal places belong together."""
        payload = dict(line["payload"])
        entries = tasks.references_of(line["kind"], payload)
        if "like" in entries and "keys" in entries:
            left_out = self.uids(entries["keys"][0])
            keys, like = payload["keys"], payload["like"]
            payload["like"] = [
                key if other in left_out else other
                for key, other in zip(keys, like, strict=False)
                if key not in left_out
            ]
        for entry, (record, _) in entries.items():
            if entry != "like" and isinstance(payload[entry], list):
                payload[entry] = self._others(record, payload[entry])
        return payload


def _strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
