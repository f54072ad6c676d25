"""What a store was built with: its token counts and its text index are only as good as the counter and the analysis that made them.

Both are recorded at the first start. A process that would count or analyse otherwise refuses to work on the store until it has been
brought up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memservice.domain import tokens
from memservice.domain.errors import ConfigurationError
from memservice.domain.filters import all_of, where
from memservice.domain.filters.ast import Compare
from memservice.domain.records import LIVE, Conclusion, Message, Session, Workspace
from memservice.domain.text.analysis import (
    ANALYSER,
    analyse,
)
from memservice.runtime import Runtime
from memservice.services import indexing
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import View

COUNTER, TEXT = "token_counter", "text_analysis"
ROWS_AT_ONCE = 500

Progress = Callable[[int], None]
"""Called with the number of rows that were done since the last call."""


def _present() -> dict[str, str]:
    return {COUNTER: tokens.counter_id(), TEXT: ANALYSER}


_MEND = {COUNTER: "memservice db recount", TEXT: "memservice db reindex"}
_WORDS = {COUNTER: "Its tokens were counted by", TEXT: "Its texts were analysed by"}


def settle(rt: Runtime) -> None:
    """Record what a new store is built with; then as `check`."""

    def record(view: View) -> None:
        for name, value in _present().items():
            if view.facts.get(name) is None:
                view.facts.set(name, value)

    rt.storage.write(record)
    check(rt)


def check(rt: Runtime) -> None:
    """Raise ConfigurationError if the store was built with another counter or another analysis than this process has."""
    with rt.storage.read() as view:
        recorded = {name: view.facts.get(name) for name in _MEND}
    for name, present in _present().items():
        built = recorded[name]
        if built is not None and built != present:
            raise ConfigurationError(
                f"{_WORDS[name]} {built!r}, but this release uses {present!r}. Stop every server and worker, then run: {_MEND[name]}"
            )


def recount(rt: Runtime, progress: Progress = lambda done: None) -> int:
    """Count every message's tokens again, one session a transaction; returns how many messages. May be run again after a break."""
    done, last = 0, 0
    while True:
        with rt.storage.read() as view:
            found = view.rows.page(Session, Compare("key", "gt", last), BY_KEY, limit=1)
        if not found:
            break
        last = found[0].key
        number = rt.storage.write(lambda view, key=last: _recount_session(view, key))  # type: ignore[misc]
        done += number
        progress(number)
    rt.storage.write(lambda view: view.facts.set(COUNTER, tokens.counter_id()))
    return done


def _recount_session(view: View, key: int) -> int:
    session = view.sessions.by_key(key, lock=True)
    if session is None:
        return 0
    through = 0
    for first in range(1, session.message_count + 1, ROWS_AT_ONCE):
        rows = []
        for message in view.messages.run(key, first, first + ROWS_AT_ONCE - 1):
            count = tokens.count(message.content)
            through += count
            rows.append(replace(message, tokens=count, tokens_through=through))
        view.rows.put(rows)
    view.sessions.save(replace(session, token_total=through))
    summaries = list(view.summaries.of_session(key).values())
    view.rows.put([replace(summary, tokens=tokens.count(summary.content)) for summary in summaries])
    return session.message_count


def reindex(rt: Runtime, progress: Progress = lambda done: None) -> int:
    """Analyse every message and conclusion again and replace the text index; returns how many rows. May be run again after a break."""
    done = 0
    with rt.storage.read() as view:
        workspaces = [workspace.key for workspace in view.rows.page(Workspace)]
    for workspace in workspaces:
        while rt.storage.write(lambda view, key=workspace: rt.storage.text.drop(view, key, ROWS_AT_ONCE)):  # type: ignore[misc]
            pass
        for step in (_reindex_messages, _reindex_conclusions):
            last = 0
            while True:
                number, last = rt.storage.write(lambda view, w=workspace, after=last, f=step: f(rt, view, w, after))  # type: ignore[misc]
                if not number:
                    break
                done += number
                progress(number)
    rt.storage.write(lambda view: view.facts.set(TEXT, ANALYSER))
    return done


def _reindex_messages(rt: Runtime, view: View, workspace: int, after: int) -> tuple[int, int]:
    condition = all_of(where(workspace_key=workspace), Compare("key", "gt", after))
    messages = view.rows.page(Message, condition, BY_KEY, limit=ROWS_AT_ONCE)
    if messages:
        authors = view.peers.by_keys(sorted({message.author_key for message in messages}))
        indexing.add_message_texts(rt, view, workspace, messages, [analyse(message.content) for message in messages], authors)
    return len(messages), messages[-1].key if messages else after


def _reindex_conclusions(rt: Runtime, view: View, workspace: int, after: int) -> tuple[int, int]:
    condition = all_of(where(workspace_key=workspace, state=LIVE), Compare("key", "gt", after))
    conclusions = view.rows.page(Conclusion, condition, BY_KEY, limit=ROWS_AT_ONCE)
    if conclusions:
        indexing.add_conclusion_texts(rt, view, workspace, conclusions)
    return len(conclusions), conclusions[-1].key if conclusions else after


def rows_to_do(rt: Runtime) -> tuple[int, int]:
    """How many rows `recount` and `reindex` go through, for a progress bar."""
    with rt.storage.read() as view:
        messages = view.rows.count(Message)
        return messages, messages + view.rows.count(Conclusion, where(state=LIVE))
