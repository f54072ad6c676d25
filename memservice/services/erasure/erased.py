"""What one erasure, or one step of it, erased: the rows by which the places where something of them
can be are cleaned and searched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memservice.domain.filters import equals
from memservice.domain.records import (
    Conclusion,
    Erasure,
    Peer,
    Session,
    Task,
    Workspace,
)
from memservice.services import indexing
from memservice.services.transfer.record_formats import SPACED
from memservice.spi.storage import Transaction

_TARGETS: Mapping[str, type[Any]] = {"peer": Peer, "session": Session, "workspace": Workspace}
"""Entries of the payload of an `erase` task."""


class NotErased(Exception):
    """Something is left of erased rows, in the places that the message names. The task of the
    erasure is repeated, and fails visibly in the end."""


@dataclass(frozen=True, slots=True)
class Erased:
    workspace_key: int
    keys: Mapping[type[Any], frozenset[int]]
    """Of the erased rows, by record."""
    uids: frozenset[str] = frozenset()
    """Of erased messages and conclusions."""
    collections: frozenset[int] = frozenset()
    """Keys of the collections of erased conclusions."""
    owners: frozenset[int] = frozenset()
    """Keys of the peers of these collections."""
    since: datetime | None = None
    """When the first of the erased conclusions was stored; None if there are none. Nothing that
    was written earlier was concluded from them."""
    session: int | None = None
    """Key of the session, if all erased messages were of one that still exists."""
    before: datetime | None = None
    """When it was asked for. What was written later contains nothing of the erased rows."""
    by_absence: bool = False
    """Whether every row that does not exist counts as erased, as a peer or session has too many
    rows to name."""
    receipt: Erasure | None = field(default=None, repr=False)

    @classmethod
    def of(cls, task: Task, rows: Mapping[str, Any]) -> Erased:
        """`rows`: as `named` returns them."""
        return cls(
            task.payload.get("workspace", 0),
            {SPACED[kind]: frozenset(keys) for kind, keys in rows["keys"].items()},
            frozenset(rows["uids"]),
            frozenset(rows.get("collections", ())),
            frozenset(rows.get("owners", ())),
            None if rows.get("since") is None else datetime.fromisoformat(rows["since"]),
            rows.get("messages"),
            task.created_at,
        )

    @classmethod
    def target(cls, tx: Transaction, task: Task, workspace_key: int) -> Erased:
        """The peer, session or workspace that a task erases, with all of its rows."""
        entry = next(name for name in ("peer", "session", "workspace") if name in task.payload)
        return cls(
            workspace_key,
            {_TARGETS[entry]: frozenset([task.payload[entry]])},
            before=task.created_at,
            by_absence=True,
            receipt=tx.erasures.of_task(task.uid),
        )

    def of_kind(self, kind: str) -> frozenset[int]:
        """Keys of the erased rows of a kind in the indexes."""
        return self.keys.get(SPACED[kind], frozenset())

    def among(self, tx: Transaction, record: type[Any], keys: Iterable[int]) -> set[int]:
        """Those of these keys whose rows are erased."""
        requested = set(keys)
        if not self.by_absence:
            return requested & self.keys.get(record, frozenset())
        if not requested:
            return requested
        condition = equals(key=tuple(sorted(requested)))
        return requested - {row.key for row in tx.rows.page(record, condition)}


def named(
    keys: Mapping[str, Sequence[int]], uids: Sequence[str], conclusions: Sequence[Conclusion]
) -> dict[str, Any]:
    """Erased rows as the payload of a task names them, by ids only. `keys` and `uids`: of those
    that are not conclusions, by kind in the indexes."""
    return {
        "keys": {
            **{kind: list(of_kind) for kind, of_kind in keys.items()},
            indexing.CONCLUSION: [row.key for row in conclusions],
        },
        "uids": [*uids, *(row.uid for row in conclusions)],
        "collections": sorted({row.collection_key for row in conclusions}),
        "owners": sorted(
            {key for row in conclusions for key in (row.observer_key, row.observed_key)}
        ),
        "since": min((row.created_at.isoformat() for row in conclusions), default=None),
    }


def joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of both, as `named` returns them."""
    kinds = {*first["keys"], *second["keys"]}
    return {
        "keys": {
            kind: [*first["keys"].get(kind, ()), *second["keys"].get(kind, ())]
            for kind in sorted(kinds)
        },
        "uids": [*first["uids"], *second["uids"]],
        "collections": sorted({*first["collections"], *second["collections"]}),
        "owners": sorted({*first["owners"], *second["owners"]}),
        "since": _earlier(first.get("since"), second.get("since")),
    }


def _earlier(first: str | None, second: str | None) -> str | None:
    return min((time for time in (first, second) if time is not None), default=None)
