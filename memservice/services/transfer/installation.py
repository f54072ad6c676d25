"""What a copy of all workspaces does not contain: rows of the installation, and secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from memservice.domain import records as r
from memservice.domain.filters import TRUE, all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.runtime import Runtime
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
SECRETS: Mapping[str, tuple[type[Any], Mapping[str, Any]]] = {
    "admin keys": (r.ApiKey, {"admin": True, "revoked_at": None}),
    "keys of workspaces": (r.ApiKey, {"admin": False, "revoked_at": None}),
    "webhook endpoints": (r.WebhookEndpoint, {}),
}
"""Copied with secrets only."""
NEVER: Mapping[str, type[Any]] = {
    "members of the console": r.ConsoleMember,
    "receipts of erasures": r.Erasure,
    "records of usage": r.Usage,
    "entries of the audit log": r.AuditEntry,
}
"""Rows of one installation."""


def secrets(rt: Runtime) -> dict[str, int]:
    """Number of rows, by name, that a copy has with secrets only; without those that are none."""
    with rt.storage.read() as tx:
        counts = {
            name: tx.rows.count(record, equals(**condition))
            for name, (record, condition) in SECRETS.items()
        }
    return {name: number for name, number in counts.items() if number}


def never_copied(rt: Runtime) -> dict[str, int]:
    """Number of rows, by name, that no copy has; without those that are none."""
    with rt.storage.read() as tx:
        counts = {name: tx.rows.count(record, TRUE) for name, record in NEVER.items()}
    return {name: number for name, number in counts.items() if number}


def copy_keys(source: Runtime, target: Runtime) -> int:
    """Copy the keys that belong to no workspace: admin keys, and revoked tokens of other servers.
    Returns how many were new. Existing ones do not change, except that a revocation is added."""
    return sum(target.storage.write(partial(_store, page)) for page in _pages(source))


def _pages(rt: Runtime) -> Iterator[Sequence[r.ApiKey]]:
    last = 0
    while True:
        condition = all_of(equals(workspace=None), Compare("key", "gt", last))
        with rt.storage.read() as tx:
            page = tx.rows.page(r.ApiKey, condition, BY_KEY, limit=BATCH_SIZE)
        if not page:
            return
        yield page
        last = page[-1].key


def _store(keys: Sequence[r.ApiKey], tx: Transaction) -> int:
    uids = tuple(key.uid for key in keys)
    existing = {key.uid for key in tx.rows.page(r.ApiKey, equals(uid=uids))}
    for key in keys:
        if key.revoked_at is not None and key.uid in existing:
            tx.rows.change(
                r.ApiKey, equals(uid=key.uid, revoked_at=None), revoked_at=key.revoked_at
            )
    new = [replace(key, key=0) for key in keys if key.uid not in existing]
    tx.rows.put(new)
    return len(new)
