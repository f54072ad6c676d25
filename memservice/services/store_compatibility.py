"""Compatibility of a store with this release: its token counts and its text index depend on the
counter and the analyser that produced them.

Both are recorded at the first start. A process with another counter or analyser refuses to work on
the store until it has been recounted or reindexed.

The terms of related words stand beside those of the analyser, so a store without them works: tasks
add them while it is in use (`pipeline.indexing.reindex`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.errors import ConfigurationError
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import (
    ACTIVE,
    LIVE,
    PENDING,
    Conclusion,
    Document,
    Message,
    Session,
    Task,
    Workspace,
)
from memservice.domain.text.analysis import ANALYSER
from memservice.domain.text.relatives import RELATIVES
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.services.tasks import kinds, outbox
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.maintenance")

COUNTER, TEXT, RELATED = "token_counter", "text_analysis", "related_words"
BATCH_SIZE = 500

Progress = Callable[[int], None]
"""Called with the number of rows processed since the last call."""


def _current() -> dict[str, str]:
    return {COUNTER: tokens.counter_id(), TEXT: ANALYSER}


_REMEDY = {COUNTER: "memservice db recount", TEXT: "memservice db reindex"}
_ORIGIN = {COUNTER: "Its tokens were counted by", TEXT: "Its texts were analysed by"}


def initialise(rt: Runtime) -> None:
    """Record the counter and analyser of a new store; then `check`. If the texts of a store lack
    the terms of related words, create the tasks that add them.

    Always writes, so a store that can only be read is reported at the start: raises `Unavailable`.
    """

    def record(tx: Transaction) -> None:
        for name, value in _current().items():
            tx.facts.set(name, tx.facts.get(name) or value)

    rt.storage.write(record)
    check(rt)
    rt.storage.write(lambda tx: _relate(rt, tx))


def _relate(rt: Runtime, tx: Transaction) -> None:
    if tx.facts.get(RELATED) == RELATIVES:
        return
    tx.facts.set(RELATED, RELATIVES)
    workspaces = tx.rows.page(Workspace, equals(state=ACTIVE))
    tx.tasks.add([outbox.reindex(rt, workspace.key) for workspace in workspaces])
    if workspaces:
        log.info("tasks add related words to the text index of %d workspace(s)", len(workspaces))


def check(rt: Runtime) -> None:
    """Raise ConfigurationError if the store was built with another counter or analyser than this
    process has."""
    with rt.storage.read() as tx:
        recorded = {name: tx.facts.get(name) for name in _REMEDY}
    for name, current in _current().items():
        recorded_id = recorded[name]
        if recorded_id is not None and recorded_id != current:
            raise ConfigurationError(
                f"{_ORIGIN[name]} {recorded_id!r}, but this release uses {current!r}. Stop every "
                f"server and worker, then run: {_REMEDY[name]}"
            )


def recount(rt: Runtime, progress: Progress = lambda total: None) -> int:
    """Count every message's tokens again, one session per transaction; returns the number of
    messages. It can be repeated after an interruption."""
    total, last = 0, 0
    while True:
        with rt.storage.read() as tx:
            sessions = tx.rows.page(Session, Compare("key", "gt", last), BY_KEY, limit=1)
        if not sessions:
            break
        last = sessions[0].key
        number = rt.storage.write(lambda tx, key=last: _recount_session(tx, key))  # type: ignore[misc]
        total += number
        progress(number)
    rt.storage.write(lambda tx: tx.facts.set(COUNTER, tokens.counter_id()))
    return total


def _recount_session(tx: Transaction, key: int) -> int:
    session = tx.sessions.by_key(key, lock=True)
    if session is None:
        return 0
    through = 0
    for first in range(1, session.message_count + 1, BATCH_SIZE):
        rows = []
        for message in tx.messages.run(key, first, first + BATCH_SIZE - 1):
            count = tokens.count(message.content)
            through += count
            rows.append(replace(message, tokens=count, tokens_through=through))
        tx.rows.put(rows)
    tx.rows.change(Session, equals(key=key), token_total=through)
    tx.messages.revise(key)
    summaries = list(tx.summaries.of_session(key).values())
    tx.rows.put([replace(summary, tokens=tokens.count(summary.content)) for summary in summaries])
    return session.message_count


def reindex(rt: Runtime, progress: Progress = lambda total: None) -> int:
    """Analyse every message, conclusion and document again and replace the text index; returns
    the number of rows. It can be repeated after an interruption."""
    total = 0
    with rt.storage.read() as tx:
        workspace_keys = [workspace.key for workspace in tx.rows.page(Workspace)]
    for workspace_key in workspace_keys:
        while rt.storage.write(
            lambda tx, key=workspace_key: rt.storage.text.drop(tx, key, BATCH_SIZE)  # type: ignore[misc]
        ):
            pass
        for step in (_reindex_messages, _reindex_conclusions, _reindex_documents):
            last = 0
            while True:
                number, last = rt.storage.write(
                    lambda tx, w=workspace_key, after=last, f=step: f(rt, tx, w, after)  # type: ignore[misc]
                )
                if not number:
                    break
                total += number
                progress(number)
    rt.storage.write(_reindexed)
    return total


def _reindexed(tx: Transaction) -> None:
    tx.facts.set(TEXT, ANALYSER)
    tx.facts.set(RELATED, RELATIVES)
    tx.rows.delete(Task, equals(kind=kinds.REINDEX, state=PENDING))


def _reindex_messages(
    rt: Runtime, tx: Transaction, workspace_key: int, after: int
) -> tuple[int, int]:
    condition = all_of(equals(workspace_key=workspace_key), Compare("key", "gt", after))
    messages = tx.rows.page(Message, condition, BY_KEY, limit=BATCH_SIZE)
    if messages:
        authors = tx.peers.by_keys(sorted({message.author_key for message in messages}))
        indexing.add_message_texts(
            rt,
            tx,
            workspace_key,
            messages,
            [indexing.message_terms(message.content) for message in messages],
            authors,
        )
    return len(messages), messages[-1].key if messages else after


def _reindex_conclusions(
    rt: Runtime, tx: Transaction, workspace_key: int, after: int
) -> tuple[int, int]:
    condition = all_of(equals(workspace_key=workspace_key, state=LIVE), Compare("key", "gt", after))
    conclusions = tx.rows.page(Conclusion, condition, BY_KEY, limit=BATCH_SIZE)
    if conclusions:
        indexing.add_conclusion_texts(rt, tx, workspace_key, conclusions)
    return len(conclusions), conclusions[-1].key if conclusions else after


def _reindex_documents(
    rt: Runtime, tx: Transaction, workspace_key: int, after: int
) -> tuple[int, int]:
    condition = all_of(equals(workspace_key=workspace_key), Compare("key", "gt", after))
    documents = tx.rows.page(Document, condition, BY_KEY, limit=BATCH_SIZE)
    if documents:
        indexing.add_document_texts(rt, tx, workspace_key, documents)
    return len(documents), documents[-1].key if documents else after


def rows_to_do(rt: Runtime) -> tuple[int, int]:
    """The numbers of rows that `recount` and `reindex` process, for a progress bar."""
    with rt.storage.read() as tx:
        messages = tx.rows.count(Message)
        indexed = tx.rows.count(Conclusion, equals(state=LIVE)) + tx.rows.count(Document)
        return messages, messages + indexed
