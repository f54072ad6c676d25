"""What dreams changed, or propose to change: record, apply, discard and undo it.

The change set of a dream is stored with its task, and erased with it. It names conclusions by uid;
their texts are in their own rows. Only a proposal contains texts: of conclusions that do not exist
yet, and of the card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memservice.domain.card_rules import folded
from memservice.domain.errors import Conflict, NotFound
from memservice.domain.filters import equals
from memservice.domain.records import (
    DELETED,
    DONE,
    HELD,
    IMMEDIATELY,
    LIVE,
    PENDING,
    SUPERSEDED,
    Card,
    Conclusion,
    Task,
)
from memservice.runtime import Runtime
from memservice.services import indexing, supersession
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.tasks.kinds import DREAM
from memservice.spi.reasoner import Consolidated, Spent, Statement, Superseded
from memservice.spi.storage import Transaction

PROPOSAL, CHANGES, APPROVED, ENDED = "proposal", "changes", "approved", "ended"
"""Entries of the payload of a dream's task."""
GIVEN = "given"
"""Entry of a proposal: the lines of callers in the card that the dream read."""
DISCARDED, UNDONE = "discarded", "undone"
"""How a change set ended."""


class Undone(Struct, frozen=True):
    restored: int
    """Superseded conclusions that are live again."""
    removed: int
    """Created conclusions that were deleted."""
    kept: int
    """Conclusions that changed since the dream, and were left unchanged."""
    card_restored: bool


class ChangeSet(Struct):
    """The changes of one dream, recorded while the dream is stored."""

    created: list[str] = field(default_factory=list)
    superseded: list[tuple[str, int | None]] = field(default_factory=list)
    """Uid of the conclusion, and the key of its successor."""
    card: dict[str, list[str]] | None = None
    """`before`, `given` (the lines of callers among them) and `after`."""


def record(tx: Transaction, task: Task, changes: ChangeSet) -> None:
    """Store the change set with the dream's task, in the transaction that stores the dream."""
    payload = {name: task.payload[name] for name in task.payload if name != PROPOSAL}
    tx.rows.change(Task, equals(key=task.key), payload=payload | {CHANGES: asdict(changes)})


def hold(
    rt: Runtime,
    tx: Transaction,
    task: Task,
    result: Consolidated,
    reads: Sequence[str],
    caller_lines: Sequence[str],
    reason: str,
) -> None:
    """Store a dream as a proposal. `reads`: uids of the conclusions that it names. `caller_lines`:
    those in the card that it read. This discards an older proposal about the same pair."""
    older = tx.rows.page(Task, equals(unit=task.unit, state=HELD))
    for proposed in tx.locked(Task, [row.key for row in older]):
        if proposed.state == HELD:
            _discard(tx, proposed)
    proposal = {
        "reason": reason,
        "created": [asdict(statement) for statement in result.created],
        "superseded": [asdict(step) for step in result.superseded],
        "card": None if result.card is None else list(result.card),
        "model": result.spent.model,
        "reads": list(reads),
        GIVEN: list(caller_lines),
    }
    tx.rows.change(
        Task,
        equals(key=task.key, state=PENDING),
        state=HELD,
        payload={**task.payload, PROPOSAL: proposal},
        outcome={
            "held": reason,
            "created": len(result.created),
            "superseded": len(result.superseded),
        },
        last_error=f"held for review: {reason}",
        finished_at=rt.clock(),
    )


def approved(task: Task) -> tuple[Consolidated, Sequence[str]] | None:
    """The proposal that an operator applied, and the uids that it names; None for other tasks."""
    proposal = task.payload.get(PROPOSAL)
    if not task.payload.get(APPROVED) or proposal is None:
        return None
    tuples = ("message_keys", "source_ids", "premises")
    statements: list[dict[str, Any]] = [
        {**values, **{name: tuple(values[name]) for name in tuples}}
        for values in proposal["created"]
    ]
    created = [Statement(**values) for values in statements]
    superseded = [Superseded(**values) for values in proposal["superseded"]]
    result = Consolidated(created, superseded, proposal["card"], Spent(proposal["model"]))
    return result, proposal["reads"]


def proposed_card(task: Task, present: Card | None) -> list[str] | None:
    """The proposed lines of a card, without those that callers have removed since."""
    proposal = task.payload[PROPOSAL]
    if proposal["card"] is None:
        return None
    kept = {folded(line) for line in (present.given if present is not None else ())}
    removed = {folded(line) for line in proposal.get(GIVEN, ())} - kept
    return [line for line in proposal["card"] if folded(line) not in removed]


def apply(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> None:
    """Let a worker store a held dream. Raises NotFound, and Conflict for one that is not held."""
    policy.require(principal, workspace_id)

    def change(tx: Transaction) -> None:
        task = _require_held(tx, workspace_id, uid)
        tx.rows.change(
            Task,
            equals(key=task.key),
            state=PENDING,
            payload={**task.payload, APPROVED: True},
            attempts=0,
            not_before=IMMEDIATELY,
            last_error=None,
            finished_at=None,
            outcome={},
        )
        tx.tasks.units_with_work.add(task.unit)

    rt.storage.write(change)


def discard(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> None:
    """Drop a held dream and the texts that it proposes. Raises NotFound, and Conflict for one that
    is not held."""
    policy.require(principal, workspace_id)

    def change(tx: Transaction) -> None:
        _discard(tx, _require_held(tx, workspace_id, uid))

    rt.storage.write(change)


def discard_citing(tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Discard the proposals that are based on these conclusions of one workspace, which are being
    erased or corrected; also applied proposals that are not stored yet. Remove the card lines from
    all proposals and change sets of the same pair: a line does not name its sources."""
    if not erased:
        return
    tx.conclusions.lock_collections(row.collection_key for row in erased)
    uids = {row.uid for row in erased}
    tasks = tx.rows.page(Task, equals(workspace_key=erased[0].workspace_key, kind=DREAM))
    affected = [
        task.key
        for task in tasks
        if uids & _reads(task) or _without_cards(task, erased) != task.payload
    ]
    for task in tx.locked(Task, affected):
        if uids & _reads(task):
            _discard(tx, task)
        else:
            tx.rows.change(Task, equals(key=task.key), payload=_without_cards(task, erased))


def _reads(task: Task) -> set[str]:
    """Uids of the conclusions that a proposal names."""
    return set(task.payload.get(PROPOSAL, {}).get("reads", ()))


def _without_cards(task: Task, erased: Sequence[Conclusion]) -> dict[str, Any]:
    """The payload without the card lines of a dream that could read one of these conclusions."""
    if not any(_could_read(task, row) for row in erased):
        return task.payload
    entries = {
        name: {**task.payload[name], "card": None}
        for name in (PROPOSAL, CHANGES)
        if name in task.payload
    }
    return {**task.payload, **entries}


def forget(tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Remove erased conclusions of one workspace from the change sets of the dreams of their
    pairs."""
    affected: list[int] = []
    for observer_key, observed_key in {(row.observer_key, row.observed_key) for row in erased}:
        of_pair = equals(
            workspace_key=erased[0].workspace_key,
            kind=DREAM,
            observer_key=observer_key,
            observed_key=observed_key,
        )
        tasks = tx.rows.page(Task, of_pair)
        affected += [task.key for task in tasks if _without(task, erased) != task.payload]
    for task in tx.locked(Task, affected):
        tx.rows.change(Task, equals(key=task.key), payload=_without(task, erased))


def _without(task: Task, erased: Sequence[Conclusion]) -> dict[str, Any]:
    """The payload without erased conclusions in its change set."""
    changes = task.payload.get(CHANGES)
    if changes is None:
        return task.payload
    uids, keys = {row.uid for row in erased}, {row.key for row in erased}
    remaining = {
        "created": [uid for uid in changes["created"] if uid not in uids],
        "superseded": [
            [uid, None if key in keys else key]
            for uid, key in changes["superseded"]
            if uid not in uids
        ],
    }
    return {**task.payload, CHANGES: {**changes, **remaining}}


def _could_read(task: Task, row: Conclusion) -> bool:
    """Whether a dream could read a conclusion: it is of the dream's pair, and was created before
    the dream ended."""
    is_of_pair = (task.observer_key, task.observed_key) == (row.observer_key, row.observed_key)
    return is_of_pair and (task.finished_at is None or row.created_at <= task.finished_at)


def drop_proposal(tx: Transaction, task: Task) -> None:
    """Remove the texts of an applied dream that is not stored after all."""
    if PROPOSAL in task.payload:
        payload = {name: task.payload[name] for name in task.payload if name != PROPOSAL}
        tx.rows.change(Task, equals(key=task.key), payload=payload)


def undo(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> Undone:
    """Undo the changes of a dream: superseded conclusions are live again, created ones are deleted,
    and the card is as before. Conclusions and cards that changed since the dream are left
    unchanged, and so is a conclusion whose text was stated again since. Raises NotFound, and
    Conflict for a dream that changed nothing or was undone before."""
    policy.require(principal, workspace_id)

    def change(tx: Transaction) -> Undone:
        unlocked = require(tx, workspace_id, uid)
        pair = (unlocked.observer_key or 0, unlocked.observed_key or 0)
        tx.conclusions.collection(*pair, lock=True)  # before the task, as everywhere
        task = require(tx, workspace_id, uid, lock=True)
        changes = task.payload.get(CHANGES)
        if task.state != DONE or changes is None or task.payload.get(ENDED):
            raise Conflict(f"Dream {uid} has no changes that can be undone")
        restored = _restore(rt, tx, task, changes["superseded"])
        removed = _remove(rt, tx, task, changes["created"])
        card = _restore_card(rt, tx, task, changes["card"])
        unchanged = len(changes["superseded"]) + len(changes["created"]) - restored - removed
        tx.rows.change(Task, equals(key=task.key), payload={**task.payload, ENDED: UNDONE})
        return Undone(restored, removed, unchanged, card)

    return rt.storage.write(change)


def _restore(rt: Runtime, tx: Transaction, task: Task, superseded: Sequence[Sequence[Any]]) -> int:
    successors: dict[str, int | None] = {uid: key for uid, key in superseded}  # noqa: C416
    rows = _rows(tx, task, list(successors), state=SUPERSEDED)
    unchanged = [row for row in rows if row.superseded_by == successors[row.uid]]
    # The dream may have merged conclusions with the same text: its own successors do not count.
    merged_into = {key for key in successors.values() if key is not None}
    return len(supersession.make_live(rt, tx, unchanged, merged_into))


def _remove(rt: Runtime, tx: Transaction, task: Task, created: Sequence[str]) -> int:
    """Delete created conclusions, except those that superseded another conclusion since."""
    rows = _rows(tx, task, created, state=LIVE)
    keys = tuple(row.key for row in rows)
    needed = (
        {row.superseded_by for row in tx.rows.page(Conclusion, equals(superseded_by=keys))}
        if keys
        else set()
    )
    deleted = [row for row in rows if row.key not in needed]
    if deleted:
        now = rt.clock()
        tx.conclusions.put([replace(row, state=DELETED, deleted_at=now) for row in deleted])
        indexing.remove_conclusions(rt, tx, deleted[0].workspace_key, [row.key for row in deleted])
    return len(deleted)


def _restore_card(
    rt: Runtime, tx: Transaction, task: Task, card: Mapping[str, list[str]] | None
) -> bool:
    if card is None or task.observer_key is None or task.observed_key is None:
        return False
    observed = tx.peers.by_keys([task.observed_key]).get(task.observed_key)
    present = None if observed is None else tx.cards.one(task.observer_key, observed.slug)
    if observed is None or (list(present.lines) if present else []) != card["after"]:
        return False
    if not card["before"]:
        if present is not None:
            tx.rows.delete(Card, equals(key=present.key))
        return True
    tx.cards.save(
        Card(
            workspace_key=task.workspace_key or 0,
            observer_key=task.observer_key,
            target=observed.slug,
            lines=card["before"],
            given=card["given"],
            updated_at=rt.clock(),
        )
    )
    return True


def _discard(tx: Transaction, task: Task) -> None:
    """Drop the proposal of a task, which is locked."""
    payload = {
        name: task.payload[name] for name in task.payload if name not in (PROPOSAL, APPROVED)
    }
    tx.rows.change(
        Task,
        equals(key=task.key),
        state=DONE,
        payload={**payload, ENDED: DISCARDED},
        outcome={DISCARDED: 1},
    )


def require(tx: Transaction, workspace_id: str, uid: str, *, lock: bool = False) -> Task:
    """The task of a dream; with `lock`, locked until commit. Raises NotFound."""
    workspace = tx.workspaces.by_slug(workspace_id)
    task = None if workspace is None else tx.rows.get(Task, equals(uid=uid), lock=lock)
    if (
        workspace is None
        or task is None
        or (task.workspace_key, task.kind) != (workspace.key, DREAM)
    ):
        raise NotFound(f"Dream {uid} not found in workspace {workspace_id}")
    return task


def _require_held(tx: Transaction, workspace_id: str, uid: str) -> Task:
    """The task, locked until commit."""
    task = require(tx, workspace_id, uid, lock=True)
    if task.state != HELD:
        raise Conflict(f"Dream {uid} is not held for review")
    return task


def _rows(tx: Transaction, task: Task, uids: Sequence[str], **values: Any) -> list[Conclusion]:
    """Conclusions of the dream's workspace, locked until commit."""
    rows = (
        tx.rows.get(
            Conclusion, equals(workspace_key=task.workspace_key, uid=uid, **values), lock=True
        )
        for uid in uids
    )
    return [row for row in rows if row is not None]
