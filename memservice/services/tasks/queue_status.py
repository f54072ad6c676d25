"""Progress of the background work."""

from __future__ import annotations

from msgspec import Struct

from memservice.domain.filters import FALSE, TRUE, Condition, all_of, equals
from memservice.domain.filters.ast import Any_, Contains
from memservice.domain.records import PENDING
from memservice.runtime import Runtime
from memservice.services import visibility
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.tasks.kinds import IN_QUEUE_STATUS
from memservice.spi.storage import Transaction


class QueueStatus(Struct):
    """Counts of tasks. `completed` includes tasks that failed permanently."""

    session_id: str | None = None
    """The session's uid, in the entries of `sessions`."""
    total: int = 0
    completed: int = 0
    in_progress: int = 0
    pending: int = 0
    sessions: dict[str, QueueStatus] | None = None

    def add(self, state: str, working: bool, number: int) -> None:
        self.total += number
        if state != PENDING:
            self.completed += number
        elif working:
            self.in_progress += number
        else:
            self.pending += number


def status(
    rt: Runtime,
    principal: Principal,
    workspace_id: str,
    observer: str | None = None,
    sender: str | None = None,
    session_id: str | None = None,
) -> QueueStatus:
    """Counts of the tasks in the queue status. `observer` and `sender` are ORed; an unknown name
    matches no task."""
    policy.require(principal, workspace_id, needs=Permission.VIEW)
    answer = QueueStatus()
    with rt.storage.read() as tx:
        located = visibility.find(tx, workspace_id, session_id=session_id or None)
        if located.workspace is None or (session_id and located.session is None):
            return answer
        condition = _concerning(tx, located.workspace.key, observer or None, sender or None)
        if located.session is not None:
            condition = all_of(condition, equals(session_key=located.session.key))
        counts = tx.tasks.counts(located.workspace.key, IN_QUEUE_STATUS, rt.clock(), condition)
        keys = sorted({count.session_key for count in counts if count.session_key is not None})
        sessions = {row.key: row for row in tx.sessions.by_keys(keys)}
    by_session: dict[str, QueueStatus] = {}
    for count in counts:
        answer.add(count.state, count.working, count.tasks)
        row = None if count.session_key is None else sessions.get(count.session_key)
        if row is not None:
            by_session.setdefault(row.uid, QueueStatus(row.uid)).add(
                count.state, count.working, count.tasks
            )
    answer.sessions = by_session if by_session and not session_id else None
    return answer


def _concerning(
    tx: Transaction, workspace_key: int, observer: str | None, sender: str | None
) -> Condition:
    if observer is None and sender is None:
        return TRUE
    peers = tx.peers.by_slugs(workspace_key, [name for name in (observer, sender) if name])
    parts: list[Condition] = []
    if observer in peers:
        key = peers[observer].key
        parts += [equals(observer_key=key), Contains("payload", {"observers": [key]})]
    if sender in peers:
        parts.append(equals(observed_key=peers[sender].key))
    return Any_(tuple(parts)) if parts else FALSE
