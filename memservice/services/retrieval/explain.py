"""How a search found its results: the parts of each score, and what each filter removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from memservice.domain.filters import Condition, all_of, equals, matches
from memservice.domain.filters.ast import Not
from memservice.domain.records import Conclusion, Message
from memservice.services.auth.bounds import Bounds
from memservice.services.retrieval.trace import Parts, Trace
from memservice.spi.storage import Transaction

T = TypeVar("T", Message, Conclusion)

DISTANCE = "distance"
LIMIT = "limit"
"""Names of what removes rows besides the filters."""


class Narrowing(Struct, frozen=True):
    """What a caller may read, and by what a request narrows it."""

    caller: Bounds
    filters: Mapping[str, Condition]
    """By name, in the order in which they are counted. Conditions of an index are not among
    them: it returns no row that they exclude."""

    @property
    def condition(self) -> Condition:
        return all_of(*self.filters.values())


class Counts(Struct, frozen=True):
    """What became of the candidates. Rows that the caller may not read are not counted."""

    candidates: int
    """Rows in at least one list."""
    removed: Mapping[str, int]
    """By the first filter that excluded them, and at last by the limit."""


class Explained(Struct, Generic[T], frozen=True):
    """Results, best first, each with the parts of its score."""

    rows: Sequence[T]
    parts: Sequence[Parts]
    """One for each row."""
    lists: Sequence[str]
    """The lists that were fused: `text`, `vector` if the query has a vector, and `source` if a
    derived conclusion has words of the query."""
    fusion_k: int
    counts: Counts | None
    """None for a key that does not open the whole workspace: which rows are candidates depends on
    rows that such a key cannot read. None too if there is no such workspace, session or peer."""

    @property
    def explained(self) -> Sequence[tuple[T, Parts]]:
        """Each result with the parts of its score."""
        return list(zip(self.rows, self.parts, strict=True))


def explained(
    rows: Sequence[T], trace: Trace, fusion_k: int, counts: Counts | None
) -> Explained[T]:
    """The results with what the trace of their ranking tells. Without counts, scores that depend
    on the statistics of the workspace are left out too."""
    parts = [trace.parts(row.key, fusion_k) for row in rows]
    if counts is None:
        parts = [each.without_weights() for each in parts]
    return Explained(rows, parts, trace.lists, fusion_k, counts)


def count_messages(
    tx: Transaction, narrowing: Narrowing, trace: Trace, returned: int
) -> Counts | None:
    """`returned`: the number of results. None unless the key opens the whole workspace."""
    caller = narrowing.caller
    if not caller.is_whole:
        return None
    keys = sorted(trace.candidates)
    rows = tx.messages.matching(caller.workspace, keys, caller.message_condition)
    return _count(list(rows.values()), narrowing.filters, returned)


def count_conclusions(
    tx: Transaction, narrowing: Narrowing, trace: Trace, returned: int, *, has_distance: bool
) -> Counts | None:
    """Like `count_messages`. `has_distance`: the request has a maximum distance."""
    caller = narrowing.caller
    if not caller.is_whole:
        return None
    condition = all_of(equals(workspace_key=caller.workspace), caller.condition)
    rows = tx.conclusions.by_keys(sorted(trace.candidates), condition, caller.standing)
    filters = dict(narrowing.filters)
    if has_distance:
        filters[DISTANCE] = Not(equals(key=tuple(sorted(trace.too_distant))))
    return _count(list(rows.values()), filters, returned)


def _count(rows: Sequence[T], filters: Mapping[str, Condition], returned: int) -> Counts:
    candidates, removed = len(rows), dict[str, int]()
    for name, condition in filters.items():
        remaining = [row for row in rows if matches(row, condition)]
        removed[name] = len(rows) - len(remaining)
        rows = remaining
    # An index outside the storage may lack rows that are results nevertheless.
    removed[LIMIT] = max(0, len(rows) - returned)
    return Counts(candidates, removed)
