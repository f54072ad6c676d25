"""Corrections of conclusions by a person, an assistant or a program: a new text, or none."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from memservice.domain.errors import Conflict, InvalidInput, Refused
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import EXPLICIT, LIVE, SUPERSEDED, Conclusion
from memservice.domain.sizes import MAX_CONCLUSION
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import (
    conclusions,
    dream_changes,
    indexing,
    supersession,
    validation,
    workspaces,
    write_hooks,
)
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.supersession import CORRECTED, INVALIDATED, Supersession
from memservice.spi.storage import Transaction

ARGUMENT = ("content",)
MAX_REASON = 500
"""Characters of the reason for taking a conclusion back."""
REASONER = "api"
"""The same as for conclusions that a caller stores."""


def correct(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, content: str
) -> Conclusion:
    """Replace the text of a live conclusion: a new conclusion with the same sources supersedes it,
    so it can be restored. Raises `NotFound`, `Conflict` for a superseded one, `InvalidInput` and,
    if a plugin refuses the text, `Refused`."""
    policy.require(principal, workspace_id)
    validation.require_length(content, MAX_CONCLUSION, ARGUMENT)
    limit = rt.settings.embedding.max_input_tokens
    text = conclusions.checked_content(content.strip(), ARGUMENT, limit)
    with rt.storage.read() as tx:
        old = _live(tx, workspace_id, uid)
    if old.content == text:
        raise InvalidInput.at(*ARGUMENT, message="Change the text first: it is the same as before")
    uid_of_new = new_uid()
    if not write_hooks.allows(rt.plugins, _corrected(old, uid_of_new, text, rt.clock())):
        raise Refused("The conclusion was refused by a plugin")
    vectors = indexing.embed_inline(rt, [text])

    def store(tx: Transaction) -> Conclusion:
        current = _live(tx, workspace_id, uid, lock=True)
        if current.content != old.content:
            raise Conflict(f"Conclusion {uid} was changed at the same time: read it again")
        now = rt.clock()
        # With the sources that it has now: one may have been erased since.
        (corrected,) = tx.conclusions.put([_corrected(current, uid_of_new, text, now)])
        if corrected.level == EXPLICIT:
            tx.conclusions.count_explicit(corrected.collection_key, 1)
        step = Supersession(current, corrected.key, CORRECTED)
        supersession.supersede(rt, tx, corrected.workspace_key, [step], now)
        tx.tasks.add(
            indexing.index_conclusions(rt, tx, corrected.workspace_key, [corrected], vectors)
        )
        dream_changes.discard_citing(tx, [current])
        return corrected

    return rt.storage.write(store)


def _corrected(old: Conclusion, uid: str, text: str, now: datetime) -> Conclusion:
    """The conclusion that supersedes `old`, with the same sources."""
    return replace(
        old,
        key=0,
        uid=uid,
        content=text,
        fingerprint=fingerprint(text),
        times_derived=1,
        internal=supersession.without_history(old),
        reasoner=REASONER,
        model=None,
        created_at=now,
        restored_at=None,
    )


def take_back(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, reason: str
) -> Conclusion:
    """Like `invalidate`, for a live conclusion only, and with a reason. Returns it as it was."""
    policy.require(principal, workspace_id)
    if not strip_nul(reason).strip():
        raise InvalidInput.at("reason", message="Say why it is taken back")
    old = conclusions.get(rt, principal, workspace_id, uid)
    invalidate(rt, principal, workspace_id, uid, reason)
    return old


def invalidate(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, reason: str | None = None
) -> Conclusion:
    """Take a live conclusion back: it is superseded by nothing, and can be restored. Returns it as
    superseded; one that is superseded already stays as it is. Raises `NotFound` and
    `InvalidInput`."""
    policy.require(principal, workspace_id)
    validation.require_length(reason or "", MAX_REASON, ("reason",))

    def change(tx: Transaction) -> Conclusion:
        row = _require(tx, workspace_id, uid, lock=True)
        if row.state == LIVE:
            text = strip_nul(reason or "").strip()
            step = Supersession(row, None, text or INVALIDATED, by_caller=bool(text))
            supersession.supersede(rt, tx, row.workspace_key, [step])
            dream_changes.discard_citing(tx, [row])
        return _require(tx, workspace_id, uid)

    return rt.storage.write(change)


def _require(tx: Transaction, workspace_id: str, uid: str, *, lock: bool = False) -> Conclusion:
    workspace = workspaces.require(tx, workspace_id)
    row = tx.conclusions.by_uid(workspace.key, uid, lock=lock)
    if row is None or row.state not in (LIVE, SUPERSEDED):
        raise conclusions.missing(workspace_id, uid)
    return row


def _live(tx: Transaction, workspace_id: str, uid: str, *, lock: bool = False) -> Conclusion:
    row = _require(tx, workspace_id, uid, lock=lock)
    if row.state != LIVE:
        raise Conflict(
            f"Conclusion {uid} is superseded: restore it first, or correct the one that replaced it"
        )
    return row
