"""Reports of the usage of models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct

from memservice.domain.filters import equals
from memservice.domain.records import Workspace
from memservice.domain.times import day_of
from memservice.runtime import Runtime
from memservice.services import workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.usage import budget, prices
from memservice.services.usage.budget import Budget
from memservice.spi.repositories import UsageTotal
from memservice.spi.repositories.usage import GROUPS

DETAIL = ("day", "task", "provider", "model")
"""Fields that a workspace's report is grouped by."""


class Report(Struct, frozen=True):
    """The usage of one workspace, over the days from `since` to today."""

    since: str
    until: str
    total: UsageTotal
    items: Sequence[UsageTotal]
    budget: Budget | None
    """None: no limit."""


def of_workspace(rt: Runtime, principal: Principal, slug: str, days: int) -> Report:
    """The last `days` days, today among them. Raises `NotFound` for an unknown workspace."""
    policy.require(principal, slug, needs=Permission.VIEW)
    now = rt.clock()
    until, since = day_of(now), day_of(now - timedelta(days=days - 1))
    with rt.storage.read() as tx:
        workspace = workspaces.require(tx, slug)
        items = tx.usage.totals(DETAIL, workspace_key=workspace.key, since=since, until=until)
        total = tx.usage.totals((), workspace_key=workspace.key, since=since, until=until)
        spending_limit = budget.of(rt, tx, workspace)
    return Report(since, until, total[0] if total else UsageTotal(), items, spending_limit)


class Line(Struct, frozen=True):
    """One sum, with the name of its workspace: None for calls without one, a note for an erased
    one."""

    total: UsageTotal
    workspace: str | None
    cost: float | None = None
    """In the currency of LLM_PRICES, without models that have no price. None if it was not
    requested."""


def overall(
    rt: Runtime,
    principal: Principal,
    by: Sequence[str],
    *,
    workspace_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> list[Line]:
    """Sums over all workspaces, or over one, by fields of `spi.repositories.usage.GROUPS`; days are
    written `2024-05-17`."""
    _require(principal, workspace_id)
    with rt.storage.read() as tx:
        workspace = None if workspace_id is None else workspaces.require(tx, workspace_id)
        totals = tx.usage.totals(
            by, workspace_key=None if workspace is None else workspace.key, since=since, until=until
        )
        keys = {total.workspace_key for total in totals if total.workspace_key is not None}
        rows = tx.rows.page(Workspace, equals(key=tuple(sorted(keys)))) if keys else []
        workspaces_by_key = {row.key: row for row in rows}
        names = {key: _name(workspaces_by_key.get(key), key) for key in keys}
    return [
        Line(total, None if total.workspace_key is None else names[total.workspace_key])
        for total in totals
    ]


def with_costs(
    rt: Runtime,
    principal: Principal,
    by: Sequence[str],
    *,
    workspace_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> tuple[list[Line], list[str]]:
    """Like `overall`, with the cost of each sum, and the models without a price."""
    _require(principal, workspace_id)
    finest = tuple(dict.fromkeys((*by, "provider", "model")))
    parts = overall(rt, principal, finest, workspace_id=workspace_id, since=since, until=until)
    groups: defaultdict[tuple[object, ...], list[Line]] = defaultdict(list)
    for part in parts:
        groups[_group(part, by)].append(part)
    lines = []
    for of_group in groups.values():
        costs = (prices.cost(rt.settings.llm.prices, part.total) or 0.0 for part in of_group)
        lines.append(
            Line(_sum(by, [part.total for part in of_group]), of_group[0].workspace, sum(costs))
        )
    return lines, prices.unpriced(rt.settings.llm.prices, (part.total for part in parts))


def _require(principal: Principal, workspace_id: str | None) -> None:
    if workspace_id is None:
        policy.require_admin(principal, needs=Permission.VIEW)
    else:
        policy.require(principal, workspace_id, needs=Permission.VIEW)


def _sum(by: Sequence[str], totals: Sequence[UsageTotal]) -> UsageTotal:
    """One total over several that have the same values in the fields `by`."""
    values: dict[str, Any] = {name: getattr(totals[0], name) for name in by}
    numbers = [name for name in UsageTotal.__struct_fields__ if name not in GROUPS]
    values |= {name: sum(getattr(total, name) for total in totals) for name in numbers}
    return UsageTotal(**values)


def _group(line: Line, by: Sequence[str]) -> tuple[object, ...]:
    return tuple(getattr(line.total, name) for name in by)


def _name(workspace: Workspace | None, key: int) -> str:
    return f"(deleted, no. {key})" if workspace is None else workspace.slug
