"""Deletion of a message: gone for every caller when the request returns. A task removes what
remains of it elsewhere, and checks that nothing is left."""

from __future__ import annotations

from memservice.domain.errors import NotFound
from memservice.runtime import Runtime
from memservice.services import sessions
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.erasure import message_rows, positions, receipts, summaries, work
from memservice.services.erasure.receipts import ErasureRequest, Receipt
from memservice.services.tasks import outbox
from memservice.spi.storage import Transaction


def delete(
    rt: Runtime, principal: Principal, workspace_id: str, session_id: str, uid: str
) -> Receipt:
    """Delete a message of an active session, with the conclusions that rest on it alone and the
    summaries that cover it, which are made again. Returns the receipt. Raises NotFound."""
    policy.require(principal, workspace_id, session_id=session_id)

    def change(tx: Transaction) -> Receipt:
        _, unlocked = sessions.require(tx, workspace_id, session_id)
        work.interrupt_session(tx, unlocked)
        workspace, session = sessions.require(tx, workspace_id, session_id, lock=True)
        message = tx.messages.by_uid(session.key, uid)
        if message is None:
            raise NotFound(f"Message with ID {uid} not found")
        erased = message_rows.erase(rt, tx, session, [message])
        summaries.make_again(rt, tx, session, erased.covered)
        positions.repack(rt, tx, session, message.seq)
        task = outbox.erase_messages(rt, session, erased.named, erased.counts)
        request = ErasureRequest(receipts.MESSAGE, workspace, uid, uid, session.slug)
        erasure = receipts.open(rt, tx, principal.actor, request, task)
        tx.tasks.add([task])
        return receipts.accepted(erasure, task)

    return rt.storage.write(change)
