"""Superseding a conclusion by another one, and making it live again: in dreams, in corrections, and
when a message updates what was known.

A superseded conclusion keeps its row and a reference to its successor; it leaves lists, search and
prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import NotFound
from memservice.domain.filters import equals
from memservice.domain.records import EXPLICIT, LIVE, SUPERSEDED, Conclusion
from memservice.runtime import Runtime
from memservice.services import indexing, workspaces
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.spi.storage import Transaction

REASON, LAPSES = "superseded", "lapses"
"""Entries of a conclusion's `internal`: why it was superseded, and when it was before."""
BY_CALLER = "reason_by_caller"
"""True beside a reason that a caller gave."""

SAID_AGAIN = "said again, with at least as much in it"
"""A new conclusion with the same meaning superseded it."""
UPDATED = "replaced by a newer statement"
"""A new conclusion replaced it, and the reasoner gave no reason."""
CORRECTED, INVALIDATED = "corrected by hand", "invalidated by hand"
FIXED_REASONS = frozenset({SAID_AGAIN, UPDATED, CORRECTED, INVALIDATED})
"""The reasons that nobody wrote, so they contain nothing of a conversation."""


class Supersession(Struct, frozen=True):
    """A conclusion, as it was read, that another one replaces."""

    old: Conclusion
    successor: int | None
    """Key of the other one; None if the old one is taken back."""
    reason: str
    by_caller: bool = False
    """Whether a caller gave the reason."""


def supersede(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    steps: Sequence[Supersession],
    at: datetime | None = None,
) -> list[Supersession]:
    """Supersede conclusions at a time (None: now), count them and take them out of the indexes.
    Returns the steps that were taken: a conclusion that changed since it was read stays as it is.
    `make_live` is the reverse."""
    effective: list[Supersession] = []
    superseded_at = at or rt.clock()
    for step in steps:
        old = step.old
        changed = tx.rows.change(
            Conclusion,
            equals(
                key=old.key, state=LIVE, fingerprint=old.fingerprint, restored_at=old.restored_at
            ),
            state=SUPERSEDED,
            superseded_by=step.successor,
            superseded_at=superseded_at,
            internal={
                **without_reason(old),
                REASON: step.reason,
                **({BY_CALLER: True} if step.by_caller else {}),
            },
        )
        if changed:
            effective.append(step)
    explicit = Counter(step.old.collection_key for step in effective if step.old.level == EXPLICIT)
    for collection_key, number in explicit.items():
        tx.conclusions.count_explicit(collection_key, -number)
    if effective:
        indexing.remove_conclusions(rt, tx, workspace_key, [step.old.key for step in effective])
    return effective


def restore(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> Conclusion:
    """Make a superseded conclusion live again; a live one stays so. If a live one of the same pair
    and level has the same text, that one is returned, and the other one stays superseded by it.
    Raises NotFound."""
    policy.require(principal, workspace_id)

    def change(tx: Transaction) -> Conclusion:
        workspace = workspaces.require(tx, workspace_id)
        row = tx.conclusions.by_uid(workspace.key, uid, lock=True)
        if row is None or row.state not in (LIVE, SUPERSEDED):
            raise NotFound(
                f"Document {uid} not found or does not belong to workspace {workspace_id}"
            )
        if row.state == LIVE:
            return row
        restored = make_live(rt, tx, [row])
        return restored[0] if restored else live_twins(tx, [row])[row.key]

    return rt.storage.write(change)


def make_live(
    rt: Runtime,
    tx: Transaction,
    rows: Sequence[Conclusion],
    ignored: Collection[int] = (),
    *,
    with_lapse: bool = True,
) -> list[Conclusion]:
    """Let superseded conclusions of one workspace be live again, counted and indexed. One whose
    text a live conclusion has stays superseded, by that one; `ignored`: keys of live conclusions
    that do not count. Returns those that are live again.

    The time in which they were superseded is recorded as a lapse; without `with_lapse`, it is as if
    they had never been superseded.
    """
    twins = live_twins(tx, rows, ignored)
    # The same text twice among the rows, as in one session, is restored once.
    distinct = {_identity_in_session(row): row for row in rows if row.key not in twins}
    for row in rows:
        twin = twins.get(row.key) or distinct[_identity_in_session(row)]
        if twin is not row:
            internal = without_reason(row)
            tx.rows.change(
                Conclusion, equals(key=row.key), superseded_by=twin.key, internal=internal
            )
    now = rt.clock()
    live = [_revived(row, now if with_lapse else None) for row in distinct.values()]
    if not live:
        return []
    live = tx.conclusions.put(live)
    for row in live:
        if row.level == EXPLICIT:
            tx.conclusions.count_explicit(row.collection_key, 1)
    tx.tasks.add(indexing.index_conclusions(rt, tx, live[0].workspace_key, live))
    return live


def _identity_in_session(row: Conclusion) -> tuple[int, str, str, int | None]:
    """What only one live conclusion may have."""
    return row.collection_key, row.level, row.fingerprint, row.session_key


def forget_reasons(tx: Transaction, successors: Sequence[Conclusion]) -> None:
    """Remove the reasons why these conclusions superseded others: a reason does not name its
    sources, and a model may have put their words into it."""
    if not successors:
        return
    replaced = equals(
        collection_key=tuple({row.collection_key for row in successors}),
        state=SUPERSEDED,
        superseded_by=tuple(row.key for row in successors),
    )
    for row in tx.rows.page(Conclusion, replaced):
        if REASON in row.internal:
            tx.rows.change(Conclusion, equals(key=row.key), internal=without_reason(row))


def without_reason(row: Conclusion) -> dict[str, Any]:
    """Its `internal` without the reason why it was superseded."""
    return {name: row.internal[name] for name in row.internal if name not in (REASON, BY_CALLER)}


def without_history(row: Conclusion) -> dict[str, Any]:
    """Its `internal` for a successor: without what only its own history is about."""
    return {name: value for name, value in without_reason(row).items() if name != LAPSES}


def _revived(row: Conclusion, now: datetime | None) -> Conclusion:
    """A superseded conclusion as a live one, with a lapse that ends now; None: without a lapse. A
    lapse of which the start is unknown starts when the conclusion was recorded."""
    internal = without_reason(row)
    if now is not None:
        start = row.superseded_at or row.created_at
        internal[LAPSES] = [*internal.get(LAPSES, ()), [start.isoformat(), now.isoformat()]]
    return replace(
        row,
        state=LIVE,
        superseded_by=None,
        superseded_at=None,
        restored_at=now or row.restored_at,
        internal=internal,
    )


def live_twins(
    tx: Transaction, rows: Sequence[Conclusion], ignored: Collection[int] = ()
) -> dict[int, Conclusion]:
    """By key of a row, a live conclusion of the same pair and level with the same text."""
    twins: dict[tuple[int, str, str], Conclusion] = {}
    for collection_key, level in sorted({(row.collection_key, row.level) for row in rows}):
        fingerprints = {
            row.fingerprint
            for row in rows
            if (row.collection_key, row.level) == (collection_key, level)
        }
        condition = equals(
            collection_key=collection_key,
            level=level,
            state=LIVE,
            fingerprint=tuple(sorted(fingerprints)),
        )
        for twin in tx.rows.page(Conclusion, condition):
            if twin.key not in ignored:
                twins.setdefault((collection_key, level, twin.fingerprint), twin)
    identities = {row.key: (row.collection_key, row.level, row.fingerprint) for row in rows}
    return {key: twins[identity] for key, identity in identities.items() if identity in twins}
