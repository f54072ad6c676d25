"""Usage of models and embedders."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from memservice.domain.filters.ast import TRUE, Compare, Condition, all_of, equals
from memservice.domain.records import Usage
from memservice.spi.repositories.base import Repository

SUCCESS = "success"
GROUPS = ("day", "workspace_key", "task", "provider", "model")
"""The fields by which totals can be grouped."""
BATCH_SIZE = 1_000


class UsageTotal(Struct, frozen=True, kw_only=True):
    """The sum over some calls. A field is None if the total was not grouped by it, and
    `workspace_key` also for calls without a workspace."""

    day: str | None = None
    workspace_key: int | None = None
    task: str | None = None
    provider: str | None = None
    model: str | None = None
    calls: int = 0
    failed: int = 0
    """Calls without a result: errors and cancelled calls."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    duration_ms: int = 0
    reasoning_tokens: int = 0
    """Of `output_tokens`, those of reasoning, as far as providers count them."""


class Ledger(Repository):
    def add(self, rows: Sequence[Usage]) -> list[Usage]:
        return self.rows.put(rows) if rows else []

    def tokens(self, workspace_key: int | None, day: str) -> int:
        """Input and output tokens of a workspace's calls on one day; None: of all workspaces."""
        usage_totals = self.totals((), workspace_key=workspace_key, since=day, until=day)
        return sum(total.input_tokens + total.output_tokens for total in usage_totals)

    def totals(
        self,
        by: Sequence[str],
        *,
        workspace_key: int | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> list[UsageTotal]:
        """Sums by these fields of `GROUPS`, in the order of their values (null first), over the
        days from `since` to `until`, both included. Groups without calls are left out."""
        sums: dict[tuple[int | str | None, ...], list[int]] = {}
        last = 0
        while usages := self.rows.page(
            Usage,
            all_of(chosen(workspace_key, since, until), Compare("key", "gt", last)),
            limit=BATCH_SIZE,
        ):
            last = usages[-1].key
            for row in usages:
                counts = sums.setdefault(tuple(getattr(row, name) for name in by), [0] * 8)
                spent = (
                    row.input_tokens,
                    row.output_tokens,
                    row.cache_read_tokens,
                    row.cache_write_tokens,
                    row.duration_ms,
                    row.reasoning_tokens,
                )
                for index, number in enumerate((1, int(row.outcome != SUCCESS), *spent)):
                    counts[index] += number
        return in_order(by, [total(by, group, counts) for group, counts in sums.items()])


def chosen(workspace_key: int | None, since: str | None, until: str | None) -> Condition:
    parts: list[Condition] = [] if workspace_key is None else [equals(workspace_key=workspace_key)]
    parts += [] if since is None else [Compare("day", "gte", since)]
    parts += [] if until is None else [Compare("day", "lte", until)]
    return all_of(*parts) if parts else TRUE


def total(
    by: Sequence[str], group: Sequence[int | str | None], counts: Sequence[int]
) -> UsageTotal:
    named = dict(zip(by, group, strict=True))
    calls, failed, input_tokens, output_tokens, cache_read, cache_written, duration, reasoning = (
        counts
    )
    return UsageTotal(
        day=_text(named.get("day")),
        workspace_key=key if isinstance(key := named.get("workspace_key"), int) else None,
        task=_text(named.get("task")),
        provider=_text(named.get("provider")),
        model=_text(named.get("model")),
        calls=calls,
        failed=failed,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_written,
        duration_ms=duration,
        reasoning_tokens=reasoning,
    )


def _text(value: int | str | None) -> str | None:
    return value if isinstance(value, str) else None


def in_order(by: Sequence[str], totals: Sequence[UsageTotal]) -> list[UsageTotal]:
    """The totals ordered by their group fields, null first; text by code point."""

    def sort_key(usage_total: UsageTotal) -> list[tuple[bool, int | str]]:
        values = [getattr(usage_total, name) for name in by]
        return [(value is not None, "" if value is None else value) for value in values]

    return sorted(totals, key=sort_key)
