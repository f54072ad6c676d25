"""Corrections of conclusions by a person or an assistant."""

from __future__ import annotations

from dataclasses import replace

from memservice.domain.errors import InvalidInput, Refused
from memservice.domain.ids import fingerprint, new_uid
from memservice.domain.records import LIVE, SUPERSEDED, Conclusion
from memservice.domain.sizes import MAX_CONCLUSION
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import conclusions, dream_changes, indexing, validation, write_hooks
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.spi.storage import Transaction

REASON = "corrected by hand"
"""The reason of the supersession (`internal["superseded"]`)."""
ARGUMENT = ("content",)
MAX_REASON = 500
"""Characters of the reason for taking a conclusion back."""
REASONER = "api"
"""The same as for conclusions that a caller stores."""


def correct(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, content: str
) -> Conclusion:
    """Replace the text of a live conclusion: a new conclusion with the same sources supersedes it,
    so it can be restored. Raises `NotFound`, `InvalidInput` and, if a plugin refuses the text,
    `Refused`."""
    policy.require(principal, workspace_id)
    validation.require_length(content, MAX_CONCLUSION, ARGUMENT)
    limit = rt.settings.embedding.max_input_tokens
    text = conclusions.checked_content(content.strip(), ARGUMENT, limit)
    old = conclusions.get(rt, principal, workspace_id, uid)
    if old.content == text:
        raise InvalidInput.at(*ARGUMENT, message="Change the text first: it is the same as before")
    new = replace(
        old,
        key=0,
        uid=new_uid(),
        content=text,
        fingerprint=fingerprint(text),
        times_derived=1,
        reasoner=REASONER,
        model=None,
        created_at=rt.clock(),
    )
    if not write_hooks.allows(rt.plugins, new):
        raise Refused("The conclusion was refused by a plugin")
    vectors = indexing.embed_inline(rt, [text])

    def store(tx: Transaction) -> Conclusion:
        current = tx.conclusions.by_uid(old.workspace_key, uid, lock=True)
        if current is None or current.state != LIVE or current.content != old.content:
            raise conclusions.missing(workspace_id, uid)
        (stored,) = tx.conclusions.put([new])
        internal = {**current.internal, "superseded": REASON}
        tx.conclusions.put(
            [replace(current, state=SUPERSEDED, superseded_by=stored.key, internal=internal)]
        )
        indexing.remove_conclusions(rt, tx, stored.workspace_key, [current.key])
        tx.tasks.add(indexing.index_conclusions(rt, tx, stored.workspace_key, [stored], vectors))
        dream_changes.discard_citing(tx, [current])
        return stored

    return rt.storage.write(store)


def take_back(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, reason: str
) -> Conclusion:
    """Supersede a live conclusion without a successor. It is no longer used, and
    `dream_changes.restore` makes it live again. Returns it as it was. Raises `NotFound` and
    `InvalidInput`."""
    policy.require(principal, workspace_id)
    validation.require_length(reason, MAX_REASON, ("reason",))
    text = strip_nul(reason).strip()
    if not text:
        raise InvalidInput.at("reason", message="Say why it is taken back")
    old = conclusions.get(rt, principal, workspace_id, uid)

    def store(tx: Transaction) -> None:
        step = dream_changes.Supersession(old, None, text)
        if not dream_changes.supersede(rt, tx, old.workspace_key, [step]):
            raise conclusions.missing(workspace_id, uid)
        dream_changes.discard_citing(tx, [old])

    rt.storage.write(store)
    return old
