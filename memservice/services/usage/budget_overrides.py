"""Budgets of workspaces that the store has: they go before the settings."""

from __future__ import annotations

import json

from msgspec import Struct

from memservice.domain.errors import InvalidInput
from memservice.domain.filters import equals
from memservice.domain.records import Fact, Workspace
from memservice.domain.values import INT_MAX
from memservice.runtime import Runtime
from memservice.services import workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.spi.storage import Transaction

PREFIX = "budget:"
"""Start of the names of facts; the rest is the uid of a workspace."""


class Override(Struct, frozen=True):
    daily_tokens: int | None
    """None: no limit, regardless of the settings."""


def of(tx: Transaction, workspace: Workspace) -> Override | None:
    """None: the settings decide."""
    value = tx.facts.get(_name(workspace))
    return None if value is None else Override(json.loads(value))


def get(rt: Runtime, principal: Principal, workspace_id: str) -> Override | None:
    """As `of`. Raises `NotFound`."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        return of(tx, workspaces.require(tx, workspace_id))


def set_override(
    rt: Runtime, principal: Principal, workspace_id: str, override: Override | None
) -> None:
    """Set the budget of a workspace; None: let the settings decide again. Other processes follow
    within seconds. Raises `NotFound`, and `InvalidInput` for a number out of range."""
    policy.require_admin(principal, needs=Permission.MANAGE_BUDGETS)
    limit = None if override is None else override.daily_tokens
    if limit is not None and not 0 <= limit <= INT_MAX:
        raise InvalidInput.at("daily_tokens", message=f"Enter a number from 0 to {INT_MAX}")

    def store(tx: Transaction) -> Workspace:
        workspace = workspaces.require(tx, workspace_id)
        if override is None:
            forget(tx, workspace)
        else:
            tx.facts.set(_name(workspace), json.dumps(override.daily_tokens))
        return workspace

    workspace = rt.storage.write(store)
    rt.day_spending.pop(workspace.key, None)


def forget(tx: Transaction, workspace: Workspace) -> None:
    tx.rows.delete(Fact, equals(name=_name(workspace)))


def _name(workspace: Workspace) -> str:
    return f"{PREFIX}{workspace.uid}"
