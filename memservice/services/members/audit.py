"""The audit log of the console: each action, with its actor, address and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memservice.domain.filters.ast import FALSE, TRUE, Condition, all_of, equals
from memservice.domain.ids import new_uid
from memservice.domain.records import AuditEntry
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.members import names
from memservice.services.members.visitors import Browser, Visitor
from memservice.services.paging import Listing, page_after

BATCH_SIZE = 1_000
MAX_TEXT = 1_000
"""Maximum number of characters of a target or a name; the rest is cut off."""


def entry_of(
    rt: Runtime,
    visitor: Visitor,
    browser: Browser,
    action: str,
    *,
    target: str | None = None,
    workspace_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Create an entry, to store in the transaction of the action. `detail` contains neither secrets
    nor text of messages."""
    return AuditEntry(
        uid=new_uid(),
        actor=visitor.name,
        actor_uid=visitor.actor_uid,
        action=action,
        target=None if target is None else target[:MAX_TEXT],
        workspace=workspace_id,
        address=browser.address,
        detail=dict(detail or {}),
        created_at=rt.clock(),
    )


def record(
    rt: Runtime,
    visitor: Visitor,
    browser: Browser,
    action: str,
    *,
    target: str | None = None,
    workspace_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Store an entry for an action of a page, after the action: `action` is `noun.verb`
    (`webhook.delete`), `target` the object of the action."""
    entry = entry_of(
        rt, visitor, browser, action, target=target, workspace_id=workspace_id, detail=detail
    )
    rt.storage.write(lambda tx: tx.audit_log.add(entry))


def browse(
    rt: Runtime,
    principal: Principal,
    after: str | None = None,
    *,
    actor: str | None = None,
    action: str | None = None,
) -> Listing[AuditEntry]:
    """Newest first, after the entry `after`; with `actor` or `action`, only those of this actor or
    kind."""
    policy.require_member(principal, Permission.VIEW_AUDIT_LOG)
    with rt.storage.read() as tx:
        return page_after(tx, AuditEntry, _condition(actor, action), after)


def every(rt: Runtime, principal: Principal) -> Iterator[AuditEntry]:
    """All entries, newest first, read in batches."""
    policy.require_member(principal, Permission.VIEW_AUDIT_LOG)
    return _batches(rt)


def _batches(rt: Runtime) -> Iterator[AuditEntry]:
    last: AuditEntry | None = None
    while True:
        with rt.storage.read() as tx:
            entries = tx.audit_log.before(last, BATCH_SIZE)
        yield from entries
        if len(entries) < BATCH_SIZE:
            return
        last = entries[-1]


def _condition(actor: str | None, action: str | None) -> Condition:
    if not all(names.can_exist(text) for text in (actor, action) if text is not None):
        return FALSE
    return all_of(
        TRUE if actor is None else equals(actor=actor),
        TRUE if action is None else equals(action=action),
    )
