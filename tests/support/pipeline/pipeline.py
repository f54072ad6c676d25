"""A store, a clock that a test moves, and short ways to write into one workspace and to process its
tasks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from memservice.domain.filters import TRUE, equals
from memservice.domain.records import Collection, Conclusion, Message, Session, Summary, Task
from memservice.runtime import Runtime
from memservice.services import messages, sessions
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.services.tasks import kinds, outbox, queue_status
from memservice.services.tasks.queue_status import QueueStatus
from memservice.worker.polling import Worker
from memservice.worker.runner import RunReport, run
from support.pipeline.fakes import ScriptedReasoner

PRINCIPAL = Principal(admin=True)
WORKSPACE = "w"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2024, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


class Pipeline:
    """One workspace whose tasks a test processes step by step."""

    def __init__(self, rt: Runtime, clock: Clock, reasoner: ScriptedReasoner) -> None:
        self.rt = rt
        self.clock = clock
        self.reasoner = reasoner

    def say(
        self, session: str, *turns: tuple[str, str], configuration: Mapping[str, Any] | None = None
    ) -> list[Message]:
        """Store (peer, content) pairs with one request."""
        drafts = [Draft(content, author, configuration=configuration) for author, content in turns]
        return messages.create(self.rt, PRINCIPAL, WORKSPACE, session, drafts)

    def join(self, session: str, **members: sessions.MemberConfig) -> Session:
        return sessions.add_peers(self.rt, PRINCIPAL, WORKSPACE, session, members)

    def work(self) -> list[RunReport]:
        """Until nothing is ready."""
        return Worker(self.rt).run_until_idle(30)

    def ready(self) -> list[str]:
        with self.rt.storage.read() as tx:
            return tx.tasks.ready(self.clock(), 100, outbox.latest(self.rt))

    def run(self, unit: str) -> RunReport:
        return run(self.rt, unit)

    def unit(self, kind: str = kinds.REPRESENTATION) -> str:
        """The only unit with tasks of that kind that is ready."""
        (result,) = {task.unit for task in self.tasks(kind, state="pending")} & set(self.ready())
        return result

    def tasks(self, kind: str | None = kinds.REPRESENTATION, **values: Any) -> list[Task]:
        chosen = values if kind is None else {"kind": kind, **values}
        with self.rt.storage.read() as tx:
            return tx.rows.page(Task, equals(**chosen) if chosen else TRUE)

    def conclusions(self, observer: str, observed: str | None = None) -> list[Conclusion]:
        """Live ones in the order in which they were stored."""
        with self.rt.storage.read() as tx:
            result = tx.rows.page(
                Conclusion, equals(observer=observer, observed=observed or observer, state="live")
            )
        return result

    def texts(self, observer: str, observed: str | None = None) -> list[str]:
        return [conclusion.content for conclusion in self.conclusions(observer, observed)]

    def counted(self, observer: str, observed: str | None = None) -> int:
        """The collection's own count of explicit conclusions."""
        with self.rt.storage.read() as tx:
            (collection,) = tx.rows.page(
                Collection, equals(observer=observer, observed=observed or observer)
            )
        return collection.explicit_count

    def summaries(self, session: str) -> dict[str, Summary]:
        return sessions.summaries(self.rt, PRINCIPAL, WORKSPACE, session)

    def status(self, **names: str) -> QueueStatus:
        return queue_status.status(self.rt, PRINCIPAL, WORKSPACE, **names)

    def counts(self, **names: str) -> tuple[int, int, int, int]:
        """Queue status: total, completed, in progress, pending."""
        result = self.status(**names)
        return result.total, result.completed, result.in_progress, result.pending

    def outcome(self, name: str) -> int:
        """Sum of one count over all tasks."""
        return sum(int(task.outcome.get(name, 0)) for task in self.tasks(None))
