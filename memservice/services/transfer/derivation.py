"""Tasks that derive from imported messages, as for messages that callers store."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain import records as r
from memservice.domain.filters import equals
from memservice.runtime import Runtime
from memservice.services.tasks import batching, outbox
from memservice.spi.storage import Transaction


def derive_later(
    rt: Runtime, tx: Transaction, workspace_key: int, messages: Sequence[r.Message]
) -> None:
    """Add the tasks of new messages of any sessions of a workspace, in their order."""
    workspace = tx.rows.get(r.Workspace, equals(key=workspace_key))
    assert workspace is not None
    for key in sorted({message.session_key for message in messages}):
        session = tx.rows.get(r.Session, equals(key=key))
        assert session is not None
        own = sorted((m for m in messages if m.session_key == key), key=lambda m: m.seq)
        authors = tx.peers.by_keys(sorted({message.author_key for message in own}))
        members = tx.members.listening(key, sorted(authors))
        tasks = batching.delay(
            rt,
            outbox.after_messages(rt, workspace, session, own, [None] * len(own), authors, members),
        )
        tx.tasks.add(tasks)
        batching.after_messages(rt, tx, tasks)
