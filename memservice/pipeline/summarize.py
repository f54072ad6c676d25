"""Summaries of sessions, short and long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from memservice.domain import tokens
from memservice.domain.records import DELETING, SHORT, Message, Session, Summary, Task
from memservice.pipeline.derive.inputs import utterance
from memservice.pipeline.handler import Handler, InputErased, Outcome, Prepared, nothing
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services.tasks import kinds
from memservice.services.v1 import metamessages
from memservice.spi.reasoner import Origin, Summarized, SummarizeRequest
from memservice.spi.storage import Transaction
from memservice.telemetry.events import Event, SummaryCreated

MAX_MESSAGES = 500
"""Maximum number of messages that one summary reads. Of a longer backlog it reads the newest."""


class _DueSummary(Struct, frozen=True):
    """A summary that is to be written."""

    kind: str
    upto: Message
    messages: Sequence[Message]
    previous: Summary | None
    instructions: str | None


class Summarize(Handler):
    """Handler of `summary` tasks. For a backlog, only the newest summary of each kind is
    written."""

    kind = kinds.SUMMARY

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return len(pending)

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        with rt.storage.read() as tx:
            session = tx.sessions.by_key(tasks[0].session_key or 0)
            if session is None or session.state == DELETING:
                return nothing(skipped="the session no longer exists")
            due_summaries = _due_summaries(tx, session, tasks)
            workspace = tx.workspaces.by_key(session.workspace_key)
        origin = Origin(session.workspace_key, workspace.slug if workspace else None)
        reasoner = rt.reasoner_for(choice.SUMMARIZE)
        limits = {SHORT: rt.settings.summary.max_tokens_short}
        summaries: list[tuple[_DueSummary, Summary]] = []
        answers: dict[str, Summarized] = {}
        for item in due_summaries:
            written = reasoner.summarize(
                SummarizeRequest(
                    kind=item.kind,
                    messages=[utterance(message) for message in item.messages],
                    previous=item.previous.content if item.previous else None,
                    max_tokens=limits.get(item.kind, rt.settings.summary.max_tokens_long),
                    instructions=item.instructions,
                    origin=origin,
                )
            )
            answers[item.kind] = written
            if written.content.strip():
                summaries.append(
                    (
                        item,
                        _summary(rt, session, item, written.content.strip(), written.spent.model),
                    )
                )

        def store(tx: Transaction) -> Outcome:
            summary_kinds: list[str] = []
            # Locked until commit: a message that is erased later removes the summary.
            tx.sessions.by_key(session.key, lock=True)
            for item, summary in summaries:
                message_keys = [message.key for message in item.messages]
                if len(tx.messages.positions(message_keys)) < len(message_keys):
                    raise InputErased
                # Another run may have covered more since.
                newest = tx.summaries.of_session(session.key).get(item.kind)
                if newest == item.previous:
                    tx.summaries.save(summary)
                    metamessages.note_summary(rt, tx, session, summary, len(item.messages))
                    summary_kinds.append(item.kind)
            return {"wanted": len(due_summaries), "stored": len(summary_kinds)} | (
                {"kinds": summary_kinds} if summary_kinds else {}
            )

        def events(outcome: Outcome) -> Iterable[Event]:
            for item, _ in summaries:
                if item.kind in outcome.get("kinds", ()):
                    yield _created(origin, session, item, answers[item.kind])

        return Prepared(store, events)


def _due_summaries(tx: Transaction, session: Session, tasks: Sequence[Task]) -> list[_DueSummary]:
    triggers = tx.messages.by_keys(
        [task.message_key for task in tasks if task.message_key is not None]
    )
    newest: dict[str, tuple[Message, str | None]] = {}
    for task in tasks:
        message = triggers.get(task.message_key or 0)
        for kind in task.payload.get("kinds", []) if message is not None else []:
            if message is not None and (kind not in newest or message.seq > newest[kind][0].seq):
                newest[kind] = (message, task.payload.get("instructions"))
    summaries = tx.summaries.of_session(session.key)
    covered = tx.messages.by_keys([summary.message_key for summary in summaries.values()])
    return [
        item
        for kind in sorted(newest)
        if (item := _needed(tx, session, kind, *newest[kind], summaries, covered)) is not None
    ]


def _needed(
    tx: Transaction,
    session: Session,
    kind: str,
    upto: Message,
    instructions: str | None,
    summaries: Mapping[str, Summary],
    covered: Mapping[int, Message],
) -> _DueSummary | None:
    previous = summaries.get(kind)
    last = covered.get(previous.message_key) if previous is not None else None
    start = last.seq if last is not None else 0
    if start >= upto.seq:
        return None
    messages = tx.messages.run(session.key, max(start + 1, upto.seq - MAX_MESSAGES + 1), upto.seq)
    return _DueSummary(kind, upto, messages, previous, instructions)


def _created(
    origin: Origin, session: Session, item: _DueSummary, written: Summarized
) -> SummaryCreated:
    return SummaryCreated(
        parent_category="summary",
        agent_type="summarizer",
        workspace_name=origin.workspace or "",
        session_name=session.slug,
        message_id=item.upto.uid,
        message_count=len(item.messages),
        message_seq_in_session=item.upto.seq,
        summary_type="short" if item.kind == SHORT else "long",
        input_tokens=written.spent.input_tokens,
        output_tokens=written.spent.output_tokens,
        previous_summary_tokens=item.previous.tokens if item.previous else 0,
        message_tokens=sum(message.tokens for message in item.messages),
        prompt_scaffold_tokens=written.scaffold_tokens,
    )


def _summary(
    rt: Runtime, session: Session, item: _DueSummary, content: str, model: str | None
) -> Summary:
    return Summary(
        workspace_key=session.workspace_key,
        session_key=session.key,
        kind=item.kind,
        content=content,
        message_key=item.upto.key,
        message_uid=item.upto.uid,
        tokens=tokens.count(content),
        reasoner=rt.reasoner_for(choice.SUMMARIZE).name,
        model=model,
        created_at=rt.clock(),
    )
