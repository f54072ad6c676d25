"""Erases messages with everything that rests on them: the one rule for a single message, for all
messages of a peer, and for messages that are older than their retention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memservice.domain.filters import equals
from memservice.domain.records import Message, Metamessage, Session
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.erasure import conclusions, summaries, work
from memservice.services.erasure.erased import named
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
"""Messages per transaction."""


class ErasedRows(Struct, frozen=True):
    """What a step erased."""

    named: Mapping[str, Any]
    """The erased rows (`erased.named`)."""
    covered: Mapping[str, int]
    """Kind of a removed summary → the last position that it covered (`summaries.make_again`)."""
    counts: Mapping[str, int]
    """Number of erased rows by table."""
    first: int = 0
    """The first position that is free now."""


NOTHING = ErasedRows(named({}, (), ()), {}, {})


def erase_without_session(
    rt: Runtime, tx: Transaction, workspace_key: int, messages: Sequence[Message]
) -> ErasedRows:
    """Erase messages whose session has no row, with the conclusions that rest on them alone. The
    service stores no such messages, but a damaged store can have them."""
    # Not those that the erasure of the session has erased meanwhile.
    rows = list(tx.messages.by_keys([message.key for message in messages]).values())
    if not rows:
        return NOTHING
    erased = conclusions.erase_resting_on(rt, tx, workspace_key, rows)
    keys, counts = _erase_rows(rt, tx, workspace_key, rows)
    rows_by_kind = named({indexing.MESSAGE: keys}, [row.uid for row in rows], erased)
    return ErasedRows(rows_by_kind, {}, {**counts, "conclusions": len(erased)})


def erase(
    rt: Runtime, tx: Transaction, session: Session, messages: Sequence[Message]
) -> ErasedRows:
    """Erase messages of a session whose row is locked: their rows, texts and vectors, the
    conclusions that rest on them alone, the summaries that cover them, notes about them, and their
    tasks. Their positions remain free (`positions.repack`).

    At most `BATCH_SIZE` messages. Call `work.interrupt_session` before the session is locked. The
    keys remain in a vector index outside the storage until its tasks ran.
    """
    tasks = work.drop_tasks(tx, session, messages)
    covered = summaries.remove(tx, session, messages)
    erased = conclusions.erase_resting_on(rt, tx, session.workspace_key, messages)
    keys, counts = _erase_rows(rt, tx, session.workspace_key, messages)
    counts |= {"conclusions": len(erased), "summaries": len(covered), "tasks": tasks}
    return ErasedRows(
        named({indexing.MESSAGE: keys}, [message.uid for message in messages], erased),
        covered,
        counts,
        min(message.seq for message in messages),
    )


def _erase_rows(
    rt: Runtime, tx: Transaction, workspace_key: int, messages: Sequence[Message]
) -> tuple[list[int], dict[str, int]]:
    """Erase the rows of messages, in the indexes too, and the notes about them. Returns their keys,
    and the number of erased rows by table."""
    keys = [message.key for message in messages]
    notes = tx.rows.delete(Metamessage, equals(message_key=tuple(keys)))
    indexing.remove_rows(rt, tx, indexing.MESSAGE, workspace_key, keys)
    number = tx.rows.delete(Message, equals(key=tuple(keys)))
    erased = Counter(message.session_key for message in messages)
    for session_key in sorted(erased):
        tx.messages.revise(session_key, freed=erased[session_key])
    return keys, {"messages": number, "metamessages": notes}
