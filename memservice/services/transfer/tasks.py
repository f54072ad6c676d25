"""Tasks that are exported: their payloads refer to rows by key, and their units consist of keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memservice.services.tasks.kinds import KINDS
from memservice.services.transfer.lines import UnreadableExport

Payload = dict[str, Any]
MOVABLE = tuple(sorted(kind.name for kind in KINDS.values() if kind.references is not None))
"""Kinds of tasks that are exported. The others concern rows that are being deleted, or an index
that is not exported."""


def references_of(kind: str, payload: Payload) -> dict[str, tuple[type[Any], list[int | str]]]:
    """The entries of a task's payload that refer to rows: the record, and the keys or uids. Raises
    UnreadableExport for a kind that cannot be moved."""
    references = None if kind not in KINDS else KINDS[kind].references
    if references is None:
        raise UnreadableExport(
            f"tasks of kind {kind!r} cannot be moved; supported: {', '.join(MOVABLE)}"
        )
    entries = {name: (record, payload.get(name)) for name, record in references(payload).items()}
    return {
        name: (record, list(value) if isinstance(value, list) else [value])
        for name, (record, value) in entries.items()
        if value is not None
    }


def with_references(payload: Payload, names: Mapping[str, Mapping[Any, Any]]) -> Payload:
    """The payload with other references; `names` maps old to new, by entry. Deleted rows are left
    out."""
    changed = dict(payload)
    for entry, new in names.items():
        value = payload[entry]
        if isinstance(value, list):
            changed[entry] = [new[item] for item in value if item in new]
        else:
            changed[entry] = new.get(value)
    return changed
