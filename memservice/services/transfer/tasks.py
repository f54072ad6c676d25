"""Tasks that travel: their payloads name rows by key, and their units are made of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memservice.domain import records as r
from memservice.services.tasks import outbox
from memservice.services.transfer.lines import UnreadableExport
from memservice.services.transfer.record_formats import SPACED

Payload = dict[str, Any]
_References = Mapping[str, type[Any]]

_PEERS = {"touched": r.Peer}
NAMED: Mapping[str, Callable[[Payload], _References]] = {
    outbox.REPRESENTATION: lambda payload: {"observers": r.Peer},
    outbox.SUMMARY: lambda payload: {},
    outbox.DREAM: lambda payload: {"session": r.Session},
    outbox.DREAM_TIMER: lambda payload: {},
    outbox.EMBED: lambda payload: dict.fromkeys(("keys", "like"), SPACED[payload["kind"]]),
    outbox.DELETE_VECTORS: lambda payload: dict.fromkeys(("keys", "like"), SPACED[payload["kind"]]),
    outbox.INDEX: lambda payload: {"keys": r.Message},
    outbox.SCOPE_BACKFILL: lambda payload: {"through": r.Conclusion, **_PEERS},
    outbox.SCOPE_REMOVAL: lambda payload: _PEERS,
    outbox.WEBHOOK: lambda payload: {"endpoint": r.WebhookEndpoint},
}
"""By kind of task: the entries of a payload that hold keys, one or a list, and of which rows."""

OF_ROWS = frozenset({outbox.EMBED, outbox.DELETE_VECTORS})
"""Kinds whose payload says of which kind the rows are."""

TEXTS: Mapping[str, tuple[str, ...]] = {outbox.WEBHOOK: ("endpoint", "event_uid", "event", "body")}
"""Entries without which a task of the kind cannot even be put into its unit, or that go over the
wire."""

STAYS = frozenset({outbox.ERASE, outbox.REPAIR})
"""Kinds that are about what is being deleted, or about the index that is left: neither travels."""


def named(kind: str, payload: Payload) -> dict[str, tuple[type[Any], list[int | str]]]:
    """The entries of a task's payload that name rows: which rows, and by which keys or uids. Raises
    UnreadableExport for a kind that nobody here has heard of."""
    found = NAMED.get(kind)
    if found is None:
        raise UnreadableExport(
            f"tasks of kind {kind!r} cannot be moved; known: {', '.join(sorted(NAMED))}"
        )
    entries = {name: (record, payload.get(name)) for name, record in found(payload).items()}
    return {
        name: (record, list(value) if isinstance(value, list) else [value])
        for name, (record, value) in entries.items()
        if value is not None
    }


def renamed(payload: Payload, names: Mapping[str, Mapping[Any, Any]]) -> Payload:
    """The payload with what it calls rows replaced; `names` maps old to new, by entry. What is not
    there any more is left out."""
    changed = dict(payload)
    for entry, new in names.items():
        value = payload[entry]
        if isinstance(value, list):
            changed[entry] = [new[item] for item in value if item in new]
        else:
            changed[entry] = new.get(value)
    return changed
