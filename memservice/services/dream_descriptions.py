"""Dreams as operators see them: what each changed, or proposes to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import HELD, LIVE, SUPERSEDED, Conclusion, Peer, Task
from memservice.runtime import Runtime
from memservice.services import supersession
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.dream_changes import CHANGES, ENDED, PROPOSAL, require
from memservice.services.paging import Page, Paging, read_page
from memservice.services.tasks.kinds import DREAM
from memservice.spi.storage import Transaction


class Dream(Struct, frozen=True):
    """One dream, as operators see it."""

    uid: str
    state: str
    """`pending`, `done`, `held`, `failed`, `discarded` or `undone`."""
    kind: str
    observer: str | None
    observed: str | None
    created_at: datetime
    finished_at: datetime | None
    created: int
    """Number of conclusions that it created, or proposes to create."""
    superseded: int
    reason: str | None
    """The reason why it is held, or why it failed."""
    changes: Sequence[Change] = ()
    card: CardChange | None = None


class Change(Struct, frozen=True):
    """One conclusion that a dream creates or supersedes."""

    action: str
    """`create` or `supersede`."""
    conclusion_id: str | None
    """None for a proposed conclusion."""
    content: str | None
    """None if the conclusion was erased."""
    level: str | None
    successor: str | None = None
    """Id of a superseded conclusion's successor, or the text of a proposed one."""
    reason: str | None = None


class CardChange(Struct, frozen=True):
    before: Sequence[str] = ()
    after: Sequence[str] = ()


def page(rt: Runtime, principal: Principal, workspace_id: str, paging: Paging) -> Page[Dream]:
    """Dreams of a workspace, newest first, without their changes."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        if workspace is None:
            return Page([], 0, paging.page, paging.size)
        condition = equals(workspace_key=workspace.key, kind=DREAM)
        order = paging.order("created_at", newest_first=True)
        return read_page(
            paging,
            lambda: _described(
                tx, tx.rows.page(Task, condition, order, paging.size, paging.offset)
            ),
            lambda: tx.rows.count(Task, condition),
        )


def show(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> Dream:
    """A dream with its changes. Raises NotFound."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    with rt.storage.read() as tx:
        task = require(tx, workspace_id, uid)
        (dream,) = _described(tx, [task])
        return replace(dream, changes=_changes(tx, task), card=_card_change(tx, task))


def _described(tx: Transaction, tasks: Sequence[Task]) -> list[Dream]:
    keys = sorted({key for task in tasks for key in (task.observer_key, task.observed_key) if key})
    peers: dict[int, Peer] = tx.peers.by_keys(keys)
    names: dict[int | None, str] = {key: peer.slug for key, peer in peers.items()}
    return [
        Dream(
            uid=task.uid,
            state=task.payload.get(ENDED) or task.state,
            kind=str(task.payload.get("type", "omni")),
            observer=names.get(task.observer_key),
            observed=names.get(task.observed_key),
            created_at=task.created_at,
            finished_at=task.finished_at,
            created=_number(task.outcome.get("created")),
            superseded=_number(task.outcome.get("superseded")),
            reason=task.outcome.get("held") if task.state == HELD else task.last_error,
        )
        for task in tasks
    ]


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _changes(tx: Transaction, task: Task) -> list[Change]:
    proposal, changes = task.payload.get(PROPOSAL), task.payload.get(CHANGES)
    if proposal is not None:
        texts = [values["content"] for values in proposal["created"]]
        rows = _by_uid(tx, task, [values["old"] for values in proposal["superseded"]])
        return [
            *(
                Change("create", None, values["content"], values["level"])
                for values in proposal["created"]
            ),
            *(
                _superseded(rows, values["old"], _successor(values["new"], texts), values["reason"])
                for values in proposal["superseded"]
            ),
        ]
    if changes is None:
        return []
    old = [uid for uid, _ in changes["superseded"]]
    rows = _by_uid(tx, task, [*old, *changes["created"]])
    keys = tuple(key for _, key in changes["superseded"] if key is not None)
    successors = (
        {row.key: row.uid for row in tx.rows.page(Conclusion, equals(key=keys))} if keys else {}
    )
    created = [(uid, rows.get(uid)) for uid in changes["created"]]
    return [
        *(
            Change("create", uid, row.content if row else None, row.level if row else None)
            for uid, row in created
        ),
        *(
            _superseded(rows, uid, None if key is None else successors.get(key), None)
            for uid, key in changes["superseded"]
        ),
    ]


def _successor(name: str | None, texts: Sequence[str]) -> str | None:
    if name is not None and name.startswith("#") and name[1:].isdecimal():
        index = int(name[1:])
        return texts[index] if index < len(texts) else None
    return name


def _superseded(
    rows: Mapping[str, Conclusion], uid: str, successor: str | None, reason: str | None
) -> Change:
    row = rows.get(uid)
    if row is None:
        return Change("supersede", uid, None, None, successor, reason)
    why = reason or row.internal.get(supersession.REASON)
    return Change("supersede", uid, row.content, row.level, successor, why)


def _by_uid(tx: Transaction, task: Task, uids: Sequence[str]) -> dict[str, Conclusion]:
    if not uids:
        return {}
    condition = equals(workspace_key=task.workspace_key, uid=tuple(uids), state=(LIVE, SUPERSEDED))
    return {row.uid: row for row in tx.rows.page(Conclusion, condition)}


def _card_change(tx: Transaction, task: Task) -> CardChange | None:
    proposal, changes = task.payload.get(PROPOSAL), task.payload.get(CHANGES)
    if changes is not None and changes["card"] is not None:
        return CardChange(changes["card"]["before"], changes["card"]["after"])
    if proposal is None or proposal["card"] is None:
        return None
    peer = tx.peers.by_keys([task.observed_key or 0]).get(task.observed_key or 0)
    card = None if peer is None else tx.cards.one(task.observer_key or 0, peer.slug)
    return CardChange(list(card.lines) if card else [], proposal["card"])
