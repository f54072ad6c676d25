"""Deletion of sessions and workspaces: hidden from callers immediately, erased by a task."""

from __future__ import annotations

import logging

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import Conflict
from memservice.domain.filters import equals
from memservice.domain.records import ACTIVE, DELETING, Erasure, Workspace
from memservice.runtime import Runtime
from memservice.services import sessions, workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.erasure import receipts
from memservice.services.erasure.receipts import ErasureRequest
from memservice.services.tasks import outbox
from memservice.services.usage import budget_overrides
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.keys")


class Deleted(Struct, frozen=True):
    """A workspace that was deleted, and the receipt of its erasure."""

    workspace: Workspace
    erasure: Erasure


def delete_session(rt: Runtime, principal: Principal, workspace_id: str, slug: str) -> Erasure:
    """Delete a session: it cannot be written to any more, and its keys are revoked; its name
    remains in use until it is erased. NotFound unless it is active."""
    policy.require(principal, workspace_id, session_id=slug)

    def change(tx: Transaction) -> tuple[Erasure, int]:
        workspace, session = sessions.require(tx, workspace_id, slug, lock=True)
        tx.sessions.save(replace(session, state=DELETING))
        task = outbox.erase_session(rt, session)
        tx.tasks.add([task])
        request = ErasureRequest(
            receipts.SESSION, workspace, session.slug, session.uid, session=session.slug
        )
        erasure = receipts.open(rt, tx, principal.actor, request, task)
        return erasure, tx.keys.revoke_of(rt.clock(), workspace.slug, session.slug)

    erasure, revoked = rt.storage.write(change)
    _log_revoked(revoked, "session")
    return erasure


def delete_workspace(
    rt: Runtime, principal: Principal, slug: str, *, with_sessions: bool = False
) -> Deleted:
    """Delete a workspace: it is hidden, its keys are revoked, and its id is free.

    Conflict while a session is active, except `with_sessions`; archived ones do not count.
    """
    policy.require(principal, slug, needs=Permission.DELETE_WORKSPACES)

    def change(tx: Transaction) -> tuple[Deleted, int]:
        workspace = tx.workspaces.by_slug(slug, lock=True)
        if workspace is None:
            raise workspaces.not_found(slug)
        active = 0 if with_sessions else tx.sessions.count(workspace.key, equals(state=ACTIVE))
        if active:
            raise Conflict(f"Workspace {slug} has {active} active session(s): delete them first")
        tx.workspaces.save(replace(workspace, state=DELETING))
        budget_overrides.forget(tx, workspace)
        task = outbox.erase_workspace(rt, workspace)
        tx.tasks.add([task])
        request = ErasureRequest(receipts.WORKSPACE, workspace, workspace.slug, workspace.uid)
        erasure = receipts.open(rt, tx, principal.actor, request, task)
        return Deleted(workspace, erasure), tx.keys.revoke_of(rt.clock(), workspace.slug)

    deleted, revoked = rt.storage.write(change)
    _log_revoked(revoked, "workspace")
    return deleted


def _log_revoked(number: int, resource: str) -> None:
    if number:
        log.info("revoked %d keys together with their %s", number, resource)
