"""The history of a conclusion: what it said before, when and why it was replaced, and by what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.records import EXPLICIT, LIVE, SUPERSEDED, Conclusion
from memservice.runtime import Runtime
from memservice.services import conclusions, supersession, visibility, workspaces
from memservice.services.auth import policy
from memservice.services.auth.bounds import bounds_for
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.corrections import REASONER
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

MAX_VERSIONS = 500
"""Maximum number of versions in a history; the oldest ones are left out."""

CALLER, DERIVATION, DREAM, IMPORT = "caller", "derivation", "dream", "import"
MAKERS = (CALLER, DERIVATION, DREAM, IMPORT)
IMPORTED = "imported"
"""The reasoner of conclusions that were copied from another server over its API."""

_NEWEST = (Order("key", descending=True),)
_FIELDS = Conclusion.__struct_fields__


class Lapse(Struct, frozen=True):
    """A span in which a conclusion was superseded before it was restored."""

    superseded_at: datetime
    restored_at: datetime


class Version(Conclusion, frozen=True, kw_only=True):
    """A conclusion with what other rows say about it."""

    successor: str | None = None
    """Uid of the conclusion that superseded it; None if there is none, or no longer."""
    messages: Sequence[str] | None = None
    """Uids of the source messages that exist; None if they were not asked for."""

    @property
    def made_by(self) -> str:
        """One of `MAKERS`."""
        if self.reasoner == REASONER:
            return CALLER
        if self.reasoner == IMPORTED:
            return IMPORT
        return DERIVATION if self.level == EXPLICIT else DREAM

    @property
    def reason(self) -> str | None:
        """Why it was superseded."""
        reason = self.internal.get(supersession.REASON)
        return reason if isinstance(reason, str) else None

    @property
    def past_lapses(self) -> list[Lapse]:
        """Oldest first."""
        return [Lapse(start, end) for start, end in self.lapses]


class History(Struct, frozen=True):
    versions: Sequence[Version]
    """Oldest first."""
    complete: bool
    """False if there are more than `MAX_VERSIONS`."""


def of_conclusion(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> History:
    """The newest version of a conclusion and all that it replaced, directly or not; the same for
    each of them. Versions that were deleted are left out, with what only they replaced. Raises
    `NotFound`."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace, is_erasing = workspaces.require_for_reading(tx, workspace_id)
        readable = all_of(
            equals(workspace_key=workspace.key, state=(LIVE, SUPERSEDED)),
            bounds_for(tx, principal, workspace, is_erasing=is_erasing).condition,
        )
        row = tx.rows.get(Conclusion, all_of(readable, equals(uid=uid)))
        if row is None:
            raise conclusions.missing(workspace_id, uid)
        rows, complete = _replaced(tx, _newest(tx, row, readable), readable)
        ordered = sorted(rows, key=lambda row: (row.created_at, row.key))
        return History(_with_messages(tx, with_successors(tx, ordered)), complete)


def versions(
    rt: Runtime, rows: Sequence[Conclusion], *, include_messages: bool = False
) -> list[Version]:
    """These conclusions of one workspace, which the caller may read, with their successors and,
    with `include_messages`, their source messages."""
    if include_messages:
        with rt.storage.read() as tx:
            return _with_messages(tx, with_successors(tx, rows))
    if all(row.superseded_by is None for row in rows):
        return [_version(row, None) for row in rows]
    with rt.storage.read() as tx:
        return with_successors(tx, rows)


def with_successors(tx: Transaction, rows: Sequence[Conclusion]) -> list[Version]:
    keys = tuple({row.superseded_by for row in rows if row.superseded_by is not None})
    condition = equals(key=keys, state=(LIVE, SUPERSEDED))
    uids: dict[int | None, str] = (
        {row.key: row.uid for row in tx.rows.page(Conclusion, condition)} if keys else {}
    )
    return [_version(row, uids.get(row.superseded_by)) for row in rows]


def _version(row: Conclusion, successor: str | None) -> Version:
    return Version(**{name: getattr(row, name) for name in _FIELDS}, successor=successor)


def _newest(tx: Transaction, row: Conclusion, readable: Condition) -> Conclusion:
    """The last row in the chain of successors."""
    keys = {row.key}
    while row.superseded_by is not None and row.superseded_by not in keys:
        keys.add(row.superseded_by)
        successor = tx.rows.get(Conclusion, all_of(readable, equals(key=row.superseded_by)))
        if successor is None:
            break
        row = successor
    return row


def _replaced(
    tx: Transaction, newest: Conclusion, readable: Condition
) -> tuple[list[Conclusion], bool]:
    """The row and those that it replaced, up to `MAX_VERSIONS`, and whether these are all."""
    by_key = {newest.key: newest}
    successors: Sequence[Conclusion] = [newest]
    while successors:
        keys = tuple(row.key for row in successors)
        condition = equals(collection_key=newest.collection_key, superseded_by=keys)
        remaining = MAX_VERSIONS - len(by_key)
        rows = tx.rows.page(Conclusion, all_of(readable, condition), _NEWEST, remaining + 1)
        if len(rows) > remaining:
            return [*by_key.values(), *rows[:remaining]], False
        successors = [row for row in rows if row.key not in by_key]
        by_key |= {row.key: row for row in successors}
    return list(by_key.values()), True


def _with_messages(tx: Transaction, rows: Sequence[Version]) -> list[Version]:
    if not rows:
        return []
    keys = sorted({key for row in rows for key in row.message_keys})
    workspace_key = rows[0].workspace_key
    visible = visibility.visible(tx, workspace_key, include_archived=True)
    messages = tx.messages.matching(workspace_key, keys, visible)
    return [
        replace(row, messages=[messages[key].uid for key in row.message_keys if key in messages])
        for row in rows
    ]
